"""If, Loop and Scan built without ONNX; the types of what crosses the border of a body."""

from __future__ import annotations

import numpy as np
import pytest

from argosy.errors import ModelError
from argosy.ir import Builder, DType, Env, MapType, Module, OptionalType, SequenceType, TensorType, Type
from argosy.ir.builder import Namer
from argosy.ir.dim import Symbol, bounds, symbol_dim
from argosy.ir.dtype import BOOL, FLOAT32, INT64, STRING
from argosy.ir.interpreter import run_module
from argosy.ops.border import Border, fits
from argosy.ops.control import If, Loop, Scan
from tests.ops.agreement import tensor


def scalar(kind: DType) -> TensorType:
    return TensorType(kind, ())


def body(namer: Namer, formula: str, kind: Type) -> Module:
    builder = Builder("branch", namer=namer)
    x = builder.parameter("x", kind)
    return builder.module([("y", builder.pointwise(formula, x))])


def test_a_conditional_of_the_builder() -> None:
    builder = Builder()
    condition = builder.parameter("c", scalar(BOOL))
    x = builder.tensor_parameter("x", "float32", ("n",))
    op = If(body(builder.namer, "neg", x.type), body(builder.namer, "abs", x.type))
    result = builder.add(op, condition, x, x)
    assert result.type == x.type
    module = builder.module({"y": result})
    values = np.array([-1, 2], np.float32)
    for taken, expected in ((True, -values), (False, np.abs(values))):
        (found,) = run_module(module, [np.array(taken), values], Env())
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ModelError, match=r"the condition is float32\[n\], expected a bool"):
        builder.add(op, x, x, x)


def test_a_loop_of_the_builder() -> None:
    """Powers of two by doubling, at most ten times and while below a limit."""
    builder = Builder()
    limit, start = builder.parameter("limit", scalar(FLOAT32)), builder.parameter("start", scalar(FLOAT32))
    inner = Builder("body", namer=builder.namer)
    inner.parameter("iteration", scalar(INT64))
    inner.parameter("condition", scalar(BOOL))
    value, most = inner.parameter("value", scalar(FLOAT32)), inner.parameter("most", scalar(FLOAT32))
    doubled = inner.pointwise(lambda v: v * 2.0, value)
    again = inner.pointwise("lt", doubled, most)
    loop = Loop(inner.module([("again", again), ("value", doubled), ("seen", doubled)]), 1)
    last, seen = builder.add_all(loop, builder.constant(np.array(10)), None, start, limit)
    assert str(last.type) == "float32[]"
    module = builder.module({"last": last, "seen": seen})
    final, every = run_module(module, [np.float32(10), np.float32(1)], Env())
    assert final == 16
    assert every.tolist() == [2, 4, 8, 16]


def test_a_scan_of_the_builder() -> None:
    builder = Builder()
    total, x = builder.parameter("total", scalar(FLOAT32)), builder.tensor_parameter("x", "float32", ("n",))
    inner = Builder("body", namer=builder.namer)
    state, element = inner.parameter("state", scalar(FLOAT32)), inner.parameter("element", scalar(FLOAT32))
    added = inner.pointwise("add", state, element)
    scan = Scan(inner.module([("state", added), ("sum", added)]), 1, (0,), (True,), (0,), (False,))
    _, sums = builder.add_all(scan, total, x)
    assert str(sums.type) == "float32[n]"
    (found,) = run_module(builder.module({"sums": sums}), [np.float32(0), np.arange(4, dtype=np.float32)], Env())
    assert found.tolist() == [3, 5, 6, 6]


def test_a_condition_has_one_element() -> None:
    module = body(Namer(), "neg", tensor("float32", 2))
    with pytest.raises(ModelError, match=r"a condition has the shape \[2\], expected one element"):
        If(module, module).evaluate(np.array([True, False]), np.zeros(2), np.zeros(2))


def test_dims_at_the_border() -> None:
    border = Border(frozenset({"n"}))
    n, inner = symbol_dim(Symbol("n")), symbol_dim(Symbol("inner", 2, 9))
    assert border.dim(n + 1) == n + 1
    assert border.dim(3, 3) == 3
    outside = border.dim(inner)
    assert outside != inner
    assert border.dim(inner) == outside  # one dim inside is one dim outside
    assert bounds(outside) == (2, 9)
    assert bounds(border.dim(inner, 12)) == (2, 12)
    assert bounds(border.dim(n, 12)) == (0, None)


def test_types_at_the_border() -> None:
    border = Border(frozenset({"n"}))
    row, matrix = tensor("float32", "n"), tensor("float32", "n", 2)
    assert border.type(row, row) == row
    assert border.type(row, matrix) == TensorType(FLOAT32, None)
    assert border.type(SequenceType(row), SequenceType(row)) == SequenceType(row)
    assert border.type(OptionalType(row), OptionalType(matrix)) == OptionalType(TensorType(FLOAT32, None))
    assert border.type(MapType(STRING, row), MapType(STRING, row)) == MapType(STRING, row)
    for other in (SequenceType(row), tensor("int8", "n"), OptionalType(row)):
        with pytest.raises(ModelError, match="found .* and .*, expected one type"):
            border.type(row, other)
    with pytest.raises(ModelError, match="found .* and .*, expected one type"):
        border.type(MapType(STRING, row), MapType(INT64, row))


def test_what_may_stand_for_what() -> None:
    row, other = tensor("float32", "n"), tensor("float32", 3, 4)
    assert fits(row, other)
    assert fits(OptionalType(row), other)
    assert fits(SequenceType(row), SequenceType(other))
    assert not fits(row, OptionalType(row))
    assert not fits(row, tensor("int8", "n"))
    assert not fits(MapType(STRING, row), MapType(INT64, row))
