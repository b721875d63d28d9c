"""The builder: types as they come, names of data-dependent dims, and shapes known through shape arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.errors import ArgosyError, ModelError
from argosy.ir import Builder, Constant, Literal, Program, Symbol, TensorType, Value, dtype, symbol_dim
from argosy.ir.builder import KNOWN_LIMIT, Namer
from argosy.ir.dim import floordiv
from argosy.ir.interpreter import Interpreter
from argosy.ir.op import Env
from argosy.ir.validate import validate
from argosy.ops.dim_values import Shape
from argosy.ops.index import Gather
from argosy.ops.joining import Concat
from argosy.ops.view import Reshape
from tests.ir.ops import Anything, Counted

N, L = symbol_dim(Symbol("N")), symbol_dim(Symbol("L"))


def known(value: Value) -> list[Any] | None:
    return None if value.known is None else value.known.tolist()


# ---- known values


def test_shape_arithmetic_of_an_exporter_gives_dims() -> None:
    """`x.reshape(x.shape[0], x.shape[1] // 2, -1)` as exporters write it, and what a run makes of it."""
    b = Builder()
    x = b.tensor_parameter("x", "float32", ["N", "L", 6])
    shape = b.add(Shape(), x)
    assert known(shape) == [N, L, 6]
    rows = b.add(Gather(0), shape, b.constant(np.array([0])))
    length = b.add(Gather(0), shape, b.constant(np.array([1])))
    assert (known(rows), known(length)) == ([N], [L])
    half = b.pointwise("div", length, b.constant(np.array([2])))
    target = b.add(Concat(0), rows, half, b.constant(np.array([12])))
    assert known(target) == [N, floordiv(L, 2), 12]
    y = b.add(Reshape(), x, target)
    assert y.shape == (N, floordiv(L, 2), 12)
    main = b.module({"y": y})
    validate(main)
    (found,) = Interpreter(main).run([np.zeros((3, 4, 6), np.float32)], Env())
    assert found.shape == (3, 2, 12)


def test_constants_are_known_where_they_are_small() -> None:
    b = Builder()
    assert known(b.constant(np.arange(KNOWN_LIMIT))) == list(range(KNOWN_LIMIT))
    assert known(b.constant(np.arange(KNOWN_LIMIT + 1))) is None
    assert known(b.constant(np.ones(16, np.float32))) == [1.0] * 16
    assert known(b.constant(np.ones(17, np.float32))) is None  # data, not shapes
    assert known(b.constant(np.array(["a"], object))) is None
    assert known(b.constant(Literal.splat(2, dtype("int64"), (3,)))) == [2, 2, 2]
    assert known(b.tensor_parameter("x", "int64", [2])) is None


# ---- parameters, constants, names


def test_words_are_symbols() -> None:
    x = Builder().tensor_parameter("x", "float16", ["N", 3, N + 1])
    assert x.type == TensorType(dtype("float16"), (N, 3, N + 1))
    assert x.name == "x"


def test_parameters_have_names_of_their_own() -> None:
    b = Builder("net")
    b.tensor_parameter("x", "float32", [])
    with pytest.raises(ArgosyError, match="module net: two parameters are called 'x'"):
        b.tensor_parameter("x", "int8", [2])


def test_equal_unnamed_constants_are_one() -> None:
    b = Builder()
    one, again = b.constant(np.array([1, 2])), b.constant([1, 2])
    assert one is again
    assert b.constant([1, 2], name="named") is not one
    assert b.constant(np.array([1, 2], np.int32)) is not one
    assert b.constant([1.0, 2.0], dtype("float32")).dtype is dtype("float32")
    large = np.zeros(KNOWN_LIMIT, np.float32)
    assert b.constant(large) is not b.constant(large)  # comparing them would cost a hash of the weights
    assert isinstance(one.instruction.op, Constant)
    assert one.constant == Literal.of([1, 2])


def test_conversion_to_the_same_type_is_nothing() -> None:
    b = Builder()
    x = b.tensor_parameter("x", "float32", [2])
    assert b.convert(x, dtype("float32")) is x
    assert b.convert(x, dtype("int8")).dtype is dtype("int8")


def test_names_and_sources_are_kept() -> None:
    b = Builder()
    x = b.tensor_parameter("x", "float32", [2])
    y = b.pointwise("neg", x, names=["y"], source="Neg (node 0 → 'y')")
    assert (y.name, y.instruction.source) == ("y", "Neg (node 0 → 'y')")
    z = b.at("block").pointwise("neg", y)
    assert (z.name, z.instruction.source) == ("", "block")


def test_a_contradiction_is_told_of_the_node() -> None:
    b = Builder()
    x, y = b.tensor_parameter("x", "float32", [2]), b.tensor_parameter("y", "float32", [3])
    with pytest.raises(ModelError, match="node 7: the dims 2 and 3 do not broadcast"):
        b.pointwise("add", x, y, source="node 7")
    with pytest.raises(ModelError, match="pointwise: the dims 2 and 3"):
        b.pointwise("add", x, y)


# ---- data-dependent dims


def test_data_dependent_dims_have_names_of_their_own() -> None:
    b = Builder()
    b.tensor_parameter("x", "float32", ["test_counted_rows0"])
    first, second = b.add_all(Counted())
    (rows, two), (again, columns) = first.shape, second.shape
    assert rows == again == symbol_dim(Symbol("test_counted_rows1", 1, 7))
    assert two == 2
    assert columns == symbol_dim(Symbol("test_counted_columns0"))
    other, _ = b.add_all(Counted())
    assert other.shape[0] == symbol_dim(Symbol("test_counted_rows2", 1, 7))


def test_bodies_share_the_names() -> None:
    outer = Builder()
    inner = Builder("body", namer=outer.namer)
    assert outer.add(Counted()).shape[0] != inner.add(Counted()).shape[0]


def test_the_namer_steps_over_what_is_taken() -> None:
    namer = Namer(["a0"])
    assert [namer.unique("a"), namer.unique("a")] == ["a1", "a2"]
    namer.reserve(["a3"])
    assert namer.unique("a") == "a4"


# ---- keeping instructions of another module


def kept(change: bool) -> tuple[Builder, Value, Value]:
    old = Builder()
    x = old.tensor_parameter("x", "float32", ["N"])
    counted = old.add(Counted(), x)
    y = old.pointwise("neg", counted, names=["y"], source="node")
    new = Builder(namer=old.namer)
    x_again = new.adopt(x.instruction)
    operand = new.pointwise("neg", x_again) if change else x_again
    (counted_again, _) = new.keep(counted.instruction, [operand])
    (y_again,) = new.keep(y.instruction, [counted_again])
    validate(new.module({"y": y_again}))
    return new, y, y_again


def test_unchanged_instructions_are_shared() -> None:
    _, y, again = kept(change=False)
    assert again == y
    assert again.instruction is y.instruction


def test_moved_instructions_keep_types_names_and_symbols() -> None:
    _, y, again = kept(change=True)
    assert again.instruction is not y.instruction
    assert again.type == y.type
    assert (again.name, again.instruction.source) == ("y", "node")


def test_operands_of_other_types_are_inferred_again() -> None:
    old = Builder()
    x = old.tensor_parameter("x", "float32", ["N", 2])
    y = old.pointwise("neg", x)
    counted, _ = old.add_all(Counted(), y)
    new = Builder(namer=old.namer)
    x4 = new.tensor_parameter("x", "float32", [4, 2])
    (y4,) = new.keep(y.instruction, [x4])
    assert y4.shape == (4, 2)
    counted4 = new.keep(counted.instruction, [y4])[0]
    assert counted4.shape == counted.shape  # its own symbol, not a new one
    validate(new.module({"y": counted4}))


def test_operands_with_other_known_values_are_inferred_again() -> None:
    old = Builder()
    x = old.tensor_parameter("x", "float32", [6])
    target = old.constant(np.array([2, 3]))
    y = old.add(Reshape(), x, target)
    new = Builder(namer=old.namer)
    (again,) = new.keep(y.instruction, [new.adopt(x.instruction), new.constant(np.array([3, 2]))])
    assert again.shape == (3, 2)


# ---- modules and programs


def test_a_module_holds_what_was_built() -> None:
    b = Builder("net")
    x = b.tensor_parameter("x", "float32", ["N"])
    w = b.constant(np.ones(1000, np.float32), name="w")
    y = b.pointwise("mul", x, w)
    b.add_all(Anything(0), y, None)
    main = b.module([("y", y), ("x", x)])
    assert main.name == "net"
    assert main.parameter_names == ("x",)
    assert main.result_names == ("y", "x")
    assert [instruction.op.name for instruction in main.instructions] == ["constant", "pointwise", "test_anything"]
    program = Program(main)
    assert program.inputs == {"x": x.type}
    assert program.outputs == {"y": y.type, "x": x.type}
    assert program.symbols == {"N": Symbol("N")}
    assert program.literals == (w.constant,)
    assert [entry.op.name for entry in main.walk()] == ["parameter", "constant", "pointwise", "test_anything"]
