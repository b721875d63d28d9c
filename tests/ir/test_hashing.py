"""What a program's identity depends on, and what not."""

from __future__ import annotations

import subprocess
import sys
from types import MappingProxyType

import numpy as np
from hypothesis import HealthCheck, given, settings

from argosy.ir import Builder, Module, Op, Program, Symbol, TensorType, Value, dtype, symbol_dim
from argosy.ir.builder import Namer
from argosy.ir.hashing import model_hash
from argosy.ir.parser import parse_program
from argosy.ir.printer import print_program
from tests.ir.ops import Anything, Bodies, Counted
from tests.ir.programs import programs
from tests.ir.structure import literals_in

BATCH = Symbol("N")


def program(
    *,
    batch: Symbol = BATCH,
    inputs: tuple[str, str] = ("x", "w"),
    output: str = "y",
    weight: float = 2.0,
    names: str = "a",
    module: str = "main",
    body: str = "body",
    taken: tuple[str, ...] = (),
    op: Op | None = None,
    swapped: bool = False,
) -> Program:
    """A program with a knob for everything that may or may not count."""
    namer = Namer(taken)
    inner = Builder(body, namer=namer)
    p = inner.tensor_parameter(f"{names}_p", "int64", [])
    bodies = Bodies(inner.module({f"{names}_r": inner.pointwise("neg", p, names=[f"{names}_n"])}))
    b = Builder(module, namer=namer)
    x = b.parameter(inputs[0], TensorType(dtype("float32"), (symbol_dim(batch), 16)))
    w = b.tensor_parameter(inputs[1], "float32", [16])
    scale = b.constant(np.full(16, weight, np.float32), name=f"{names}_scale")
    y = b.pointwise("sub", *((w, x) if swapped else (x, w)), names=[f"{names}/sub"], source=f"{names}/node")
    y = b.pointwise("mul", y, scale)
    rows, columns = b.add_all(Counted(), y)
    b.add_all(bodies, rows)
    b.add_all(op or Anything(1, (rows.type, columns.type)), y)
    return Program(b.module({output: y, "rows": rows, "columns": columns}))


def test_names_inside_and_metadata_do_not_count() -> None:
    reference = model_hash(program())
    assert len(reference) == 64
    assert model_hash(program()) == reference
    assert model_hash(program(names="zz")) == reference
    assert model_hash(program(module="other", body="another")) == reference
    told = Program(program().main, MappingProxyType({"producer": "someone"}))
    assert model_hash(told) == reference


def test_names_of_data_dependent_symbols_do_not_count() -> None:
    taken = ("test_counted_rows0", "test_counted_columns0", "test_counted_columns1")
    other = program(taken=taken)
    assert "test_counted_rows1" in print_program(other)
    assert model_hash(other) == model_hash(program())


def test_everything_else_counts() -> None:
    different = [
        program(),
        program(inputs=("x", "v")),
        program(inputs=("w", "x")),
        program(output="z"),
        program(weight=2.5),
        program(batch=Symbol("M")),
        program(batch=Symbol("N", 1)),
        program(batch=Symbol("N", 0, 8)),
        program(batch=Symbol("N", 4, 4)),
        program(op=Anything(2)),
        program(op=Anything(True)),
        program(op=Anything(1.0)),
        program(op=Counted(8)),
        program(op=Counted(9)),
        program(swapped=True),
    ]
    assert len({model_hash(each) for each in different}) == len(different)


def test_the_order_of_inputs_and_outputs_counts() -> None:
    def outputs(first: str, second: str) -> Program:
        b = Builder()
        x = b.tensor_parameter("x", "float32", [2])
        values: dict[str, Value] = {"a": x, "b": b.pointwise("neg", x)}
        return Program(b.module([(first, values[first]), (second, values[second])]))

    assert model_hash(outputs("a", "b")) != model_hash(outputs("b", "a"))


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(programs)
def test_a_program_read_back_has_the_same_hash(original: Program) -> None:
    literals = {literal.digest: literal for literal in literals_in(original)}
    assert model_hash(parse_program(print_program(original), literals)) == model_hash(original)


def test_the_hash_is_the_same_in_another_process() -> None:
    # Sets of symbols and strings are ordered by a hash that changes with every process.
    code = "from tests.ir.test_hashing import program, model_hash; print(model_hash(program()))"
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(path for path in sys.path if path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == model_hash(program())


def test_the_hash_of_a_known_program_does_not_change() -> None:
    b = Builder()
    x = b.tensor_parameter("x", "float32", ["N", 4])
    y = b.pointwise(lambda a, c: (a < 0).select(a * 0.1, c), x, b.constant(np.array([1, 2, 3, 4], np.float32)))
    main: Module = b.module({"y": y})
    # Artifacts are merged by this: whoever changes the canonical text makes all of them strangers.
    assert model_hash(Program(main)) == "fd80e6d72c360bb6b9906a32945ede0091cd4585735a406aa62a7aecabd82bcb"
