"""The interpreter: what it binds, what it refuses, and when it lets go of a value."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from argosy.errors import ArgosyError, InternalError, ModelError, UsageError
from argosy.ir import (
    Builder,
    Instruction,
    Module,
    Op,
    SequenceType,
    Symbol,
    TensorType,
    Type,
    Value,
    dtype,
    fresh,
    symbol_dim,
)
from argosy.ir.interpreter import Interpreter, bind_symbols, run_module
from argosy.ir.op import Env
from argosy.ops.dim_values import DimValues
from tests.ir.ops import Anything

F32 = dtype("float32")
N = symbol_dim(Symbol("N", 1, 8))


@dataclass(frozen=True, slots=True)
class Positive(Op):
    """The positive elements of a vector: a size that only the run knows."""

    name = "test_positive"
    upper: int | None = None

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(F32, (fresh("count", upper=self.upper),)),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        return (values[0][values[0] > 0],)


@dataclass(frozen=True, slots=True)
class Failing(Op):
    """Raises what it is told to, or gives too many results."""

    name = "test_failing"
    error: str

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(F32, ()),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        raise {"model": ModelError("no"), "value": ValueError("bad"), "memory": MemoryError()}[self.error]


def run(module: Module, *arguments: Any, env: Env | None = None) -> tuple[Any, ...]:
    return Interpreter(module).run(arguments, env or Env())


def test_results_come_in_order() -> None:
    b = Builder()
    x, y = b.tensor_parameter("x", "float32", [2]), b.tensor_parameter("y", "float32", [2])
    total = b.pointwise("add", x, y)
    module = b.module([("total", total), ("y", y), ("again", total)])
    found = run(module, np.array([1, 2], np.float32), np.array([3, 4], np.float32))
    assert [value.tolist() for value in found] == [[4, 6], [3, 4], [4, 6]]


# ---- symbols


def shaped(*dims: Any) -> Module:
    b = Builder()
    x = b.parameter("x", TensorType(F32, dims))
    y = b.parameter("y", TensorType(F32, (N, 2 * N)))
    return b.module({"x": x, "y": y})


@pytest.mark.parametrize(
    ("x", "y", "what"),
    [
        ((3, 4), (3, 6), None),
        ((3, 4, 1), (3, 6), r"x: expected float32\[N, 4\], found the shape \[3, 4, 1\]"),
        ((3, 5), (3, 6), r"x: expected float32\[N, 4\], found the shape \[3, 5\]"),
        ((3, 4), (2, 4), r"y: axis 0 is N = 3 elsewhere, found 2 here"),
        ((9, 4), (9, 18), r"x: N must be in 1..8, found 9"),
        ((0, 4), (0, 0), r"x: N must be in 1..8, found 0"),
    ],
)
def test_shapes_bind_symbols(x: tuple[int, ...], y: tuple[int, ...], what: str | None) -> None:
    module = shaped(N, 4)
    env = Env()
    arguments = [np.zeros(x, np.float32), np.zeros(y, np.float32)]
    if what is None:
        Interpreter(module).run(arguments, env)
        assert env.symbols == {"N": 3}
    else:
        with pytest.raises(UsageError, match=what):
            Interpreter(module).run(arguments, env)


def test_what_has_no_shape_binds_nothing() -> None:
    env = Env()
    bind_symbols(TensorType(F32, None), np.zeros(3), env, "x")
    bind_symbols(SequenceType(TensorType(F32, (N,))), [np.zeros(3)], env, "x")
    bind_symbols(TensorType(F32, (N,)), None, env, "x")
    assert env.symbols == {}


def test_symbols_in_attributes_have_the_sizes_of_the_run() -> None:
    b = Builder()
    b.tensor_parameter("x", "float32", ["N", "L"])
    length = symbol_dim(Symbol("L"))
    module = b.module({"y": b.add(DimValues((2 * length, length - 1)))})
    assert run(module, np.zeros((2, 5)))[0].tolist() == [10, 4]
    assert run(module, np.zeros((2, 7)))[0].tolist() == [14, 6]


def test_data_dependent_sizes_bind_symbols() -> None:
    b = Builder()
    x = b.tensor_parameter("x", "float32", ["N"])
    positive = b.add(Positive(), x)
    module = b.module({"count": b.add(DimValues(positive.shape)), "values": positive})
    count, values = run(module, np.array([1, -2, 3, 0], np.float32))
    assert count.tolist() == [2]
    assert values.tolist() == [1, 3]


def test_a_data_dependent_size_outside_its_bounds_is_an_error() -> None:
    b = Builder()
    x = b.tensor_parameter("x", "float32", ["N"])
    module = b.module({"y": b.add(Positive(1), x, source="node 3")})
    with pytest.raises(ArgosyError, match=r"node 3: test_positive_count0 must be in 0..1, found 2"):
        run(module, np.array([1, 2], np.float32))


def test_a_symbol_without_a_value_is_named() -> None:
    b = Builder()
    module = b.module({"y": b.add(DimValues((N, N + 1)), source="node 1")})
    with pytest.raises(ArgosyError, match="node 1"):
        run(module)


def test_bodies_see_the_symbols_outside_and_keep_theirs() -> None:
    b = Builder("body")
    b.tensor_parameter("x", "float32", ["K"])
    body = b.module({"y": b.add(DimValues((N,)))})
    outer = Env({"N": 3})
    assert run_module(body, [np.zeros(5)], outer.inner())[0].tolist() == [3]
    assert outer.symbols == {"N": 3}


# ---- errors of ops


def failing(error: str) -> Module:
    b = Builder()
    x = b.tensor_parameter("x", "float32", [2])
    return b.module({"y": b.add(Failing(error), x, None, source="Fail (node 3 → 'y')")})


def test_errors_name_the_node() -> None:
    x = np.zeros(2, np.float32)
    with pytest.raises(ModelError, match=r"Fail \(node 3 → 'y'\): no"):
        run(failing("model"), x)
    with pytest.raises(ModelError) as caught:
        run(failing("model"), x)
    assert caught.value.hint == "it read float32[2]"
    with pytest.raises(InternalError, match=r"test_failing failed: ValueError: bad \(operand shapes: \[2\], absent\)"):
        run(failing("value"), x)
    with pytest.raises(MemoryError):
        run(failing("memory"), x)


def test_the_wrong_number_of_results_is_a_defect() -> None:
    kind = TensorType(F32, ())
    instruction = Instruction(DimValues((1,)), (), (kind, kind), (None, None))
    with pytest.raises(InternalError, match="dims gave 1 results, declared 2"):
        run(Module("main", (), (instruction,), (), ()))


# ---- memory


def test_values_are_dropped_after_their_last_use() -> None:
    b = Builder()
    x = b.tensor_parameter("x", "float32", [4])
    y = x
    for _ in range(6):
        y = b.pointwise("neg", y)
    module = b.module({"y": y})
    made: list[weakref.ref[Any]] = []
    alive: list[int] = []

    def observe(_: Instruction, results: Sequence[Any]) -> None:
        made.append(weakref.ref(results[0]))
        alive.append(sum(ref() is not None for ref in made))

    Interpreter(module).run([np.zeros(4, np.float32)], Env(), observe)
    assert len(alive) == 6
    assert max(alive) <= 2


def test_what_is_returned_is_kept_and_what_nobody_reads_is_evaluated() -> None:
    b = Builder()
    x = b.tensor_parameter("x", "float32", [2])
    first = b.pointwise("neg", x)
    b.pointwise("neg", first)
    seen: list[str] = []
    module = b.module({"first": first})
    (found,) = Interpreter(module).run([np.ones(2, np.float32)], Env(), lambda i, _: seen.append(i.op.name))
    assert found.tolist() == [-1, -1]
    assert seen == ["pointwise", "pointwise"]


def test_an_interpreter_holds_no_values_and_serves_many_runs() -> None:
    interpreter = Interpreter(shaped(N, 4))
    before = [np.zeros((2, 4), np.float32), np.zeros((2, 4), np.float32)]
    refs = [weakref.ref(value) for value in before]
    interpreter.run(before, Env())
    del before
    gc.collect()
    assert [ref() for ref in refs] == [None, None]
    interpreter.run([np.zeros((3, 4), np.float32), np.zeros((3, 6), np.float32)], Env())


def test_preparation_of_a_body_ends_with_the_body() -> None:
    b = Builder("body")
    body = b.module({"y": b.constant([1, 2])})
    ref = weakref.ref(body)
    run_module(body, [], Env())
    run_module(body, [], Env())
    del body, b
    gc.collect()
    assert ref() is None


def test_an_op_without_evaluate_is_a_defect() -> None:
    b = Builder()
    module = b.module({"y": b.add(Anything(0, (TensorType(F32, ()),)))})
    with pytest.raises(InternalError, match="test_anything failed: NotImplementedError"):
        run(module)
