"""Reshape, transpose, broadcast, squeeze, concat, split, tile and shape: symbolic dims, edge cases, messages."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from argosy.errors import ModelError
from argosy.ir import Builder, TensorType
from argosy.ir.op import Op
from argosy.ops.view import (
    BitCast,
    Broadcast,
    Concat,
    DimValues,
    Reshape,
    Shape,
    Split,
    Squeeze,
    Tile,
    Transpose,
    Unsqueeze,
)
from tests.ops.agreement import apply, infer, tensor

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
SYMBOLIC = tensor("float32", "n", 3, "w")


@pytest.mark.parametrize(
    ("op", "expected", "text"),
    [
        (Reshape((-1, 12)), X.reshape(-1, 12), "float32[floordiv(n*w, 4), 12]"),
        (Reshape((0, -1)), X.reshape(2, -1), "float32[n, 3*w]"),
        (Reshape((0, 0, 2, -1)), X.reshape(2, 3, 2, 2), "float32[n, 3, 2, floordiv(w, 2)]"),
        (Reshape((-1,)), X.reshape(-1), "float32[3*n*w]"),
        (Transpose((2, 0, 1)), X.transpose(2, 0, 1), "float32[w, n, 3]"),
        (Transpose(), X.T, "float32[w, 3, n]"),
        (Unsqueeze((0, -1)), X[None, ..., None], "float32[1, n, 3, w, 1]"),
        (Unsqueeze((-2,)), X[:, :, None], "float32[n, 3, 1, w]"),
        (Broadcast((5, 1, 3, 1)), np.broadcast_to(X, (5, 2, 3, 4)), "float32[5, n, 3, w]"),
        (Tile((1, 2, 3)), np.tile(X, (1, 2, 3)), "float32[n, 6, 3*w]"),
        (Shape(), np.array([2, 3, 4]), "int64[3]"),
        (Shape(1), np.array([3, 4]), "int64[2]"),
        (Shape(-2, -1), np.array([3]), "int64[1]"),
        (Shape(2, 1), np.array([], np.int64), "int64[0]"),
        (BitCast(tensor("int32").dtype), X.view(np.int32), "int32[n, 3, w]"),
    ],
)
def test_views_of_symbolic_dims(op: Op, expected: np.ndarray, text: str) -> None:
    assert [str(kind) for kind in infer(op, SYMBOLIC)] == [text]
    (found,) = apply(op, SYMBOLIC, feeds=[X])
    np.testing.assert_array_equal(found, expected)


def test_reshape_of_empty_tensors() -> None:
    empty = np.zeros((0, 4), np.float32)
    assert apply(Reshape((0, -1)), tensor("float32", "n", 4), feeds=[empty])[0].shape == (0, 4)
    assert apply(Reshape((3, 0), allow_zero=True), tensor("float32", "n", 4), feeds=[empty])[0].shape == (3, 0)
    assert apply(Reshape(()), tensor("float32", 1), feeds=[np.ones(1, np.float32)])[0].shape == ()


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (Reshape((-1, -1)), "holds -1 more than once"),
        (Reshape((5, -1)), "24 is no multiple of 5"),
        (Reshape((2, 3)), r"the dims \[2, 3, 4\] can't be reshaped to \[2, 3\]: the sizes differ"),
        (Reshape((1, 1, 1, 0)), "copies axis 3"),
        (Reshape((0, -1), allow_zero=True), "both 0 and -1"),
        (Reshape((-2, 3)), "holds -2"),
        (Transpose((0, 1, 1)), "no permutation of the 3 axes"),
        (Squeeze((1,)), "axis 1 of .* is removed, so its size must be 1"),
        (Unsqueeze((0, 0)), "name one axis twice"),
        (Unsqueeze((4,)), "axis is 4, expected -4..3"),
        (Broadcast((2,)), "the dims 4 and 2 do not broadcast"),
        (Tile((1, 2)), "2 repeats are given for a tensor of rank 3"),
        (Split(2, 2, (3, 2)), r"the sizes \[3, 2\] do not add up to the dim 4 of axis 2"),
        (Split(3, 2), "axis is 3, expected -3..2"),
        (BitCast(tensor("int16").dtype), "the widths differ"),
    ],
)
def test_messages(op: Op, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        infer(op, tensor("float32", 2, 3, 4))


def test_squeeze() -> None:
    x = np.ones((1, 3, 1), np.float32)
    assert apply(Squeeze(), tensor("float32", 1, 3, 1), feeds=[x])[0].shape == (3,)
    assert apply(Squeeze((-1,)), tensor("float32", "n", 3, "w"), feeds=[x])[0].shape == (1, 3)
    # Whether n is 1 only the run knows, and so the rank.
    assert infer(Squeeze(), tensor("float32", "n", 1))[0] == TensorType(tensor("float32").dtype, None)


def test_what_an_unknown_operand_leaves_known() -> None:
    shape = tensor("int64", 2)
    assert str(infer(Reshape(), tensor("float32", "n"), shape)[0]) == "float32[reshape_0_0, reshape_1_0]"
    assert str(infer(Reshape(), tensor("float32", "n"), tensor("int64", "k"))[0]) == "float32[*]"
    assert str(infer(Broadcast(), tensor("float32", 3), shape)[0]) == "float32[broadcast_0_0, 3]"
    assert str(infer(Squeeze(), tensor("float32", "n", 1, 1), shape)[0]) == "float32[squeeze_0_0]"
    assert str(infer(Tile(), tensor("float32", "n"), tensor("int64", 1))[0]) == "float32[tile_0_0]"
    unranked = TensorType(tensor("float32").dtype, None)
    assert str(infer(Reshape((2, -1)), unranked)[0]) == "float32[2, reshape_1_0]"
    assert str(infer(Shape(), unranked)[0]) == "int64[shape_rank0]"
    assert [str(kind) for kind in infer(Split(0, 2), unranked)] == ["float32[*]", "float32[*]"]


def test_concat() -> None:
    (kind,) = infer(Concat(-1), tensor("int8", "n", "a"), tensor("int8", "n", "b"), tensor("int8", 4, 2))
    assert str(kind) == "int8[4, a + b + 2]"
    parts = [np.ones((2, 0), np.int8), np.zeros((2, 3), np.int8)]
    (found,) = apply(Concat(1), tensor("int8", "n", "a"), tensor("int8", "n", "b"), feeds=parts)
    np.testing.assert_array_equal(found, parts[1])
    for kinds, message in (
        ((tensor("int8", 2), tensor("int16", 2)), "element types int8 and int16"),
        ((tensor("int8", 2), tensor("int8", 2, 1)), "ranks 1 and 2"),
        ((tensor("int8", 2, 3), tensor("int8", 2, 4)), r"differ at axis 1 \(3 and 4\)"),
        ((tensor("int8"), tensor("int8")), "scalars can't be concatenated"),
    ):
        with pytest.raises(ModelError, match=message):
            infer(Concat(0), *kinds)


def test_split_in_equal_pieces_lets_the_last_be_smaller() -> None:
    x = np.arange(7)
    pieces = apply(Split(0, 3), tensor("int64", "n"), feeds=[x])
    assert [piece.tolist() for piece in pieces] == [[0, 1, 2], [3, 4, 5], [6]]
    sizes = apply(Split(-1, 2), tensor("int64", "n"), np.array([2, 5]), feeds=[x])
    assert [piece.tolist() for piece in sizes] == [[0, 1], [2, 3, 4, 5, 6]]


def test_views_take_every_element_type() -> None:
    for element in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4, np.complex64, np.bool_, object):
        x = np.array([0, 1, 1, 0]).astype(element)
        name = "string" if element is object else np.dtype(element).name
        (found,) = apply(Reshape((2, 2)), tensor(name, "n"), feeds=[x])
        assert found.dtype == x.dtype
        assert found.reshape(-1).tolist() == x.tolist()


def test_shapes_are_known_while_compiling() -> None:
    builder = Builder()
    x = builder.tensor_parameter("x", "float32", ("n", "c", 4))
    shape = builder.add(Shape(), x)
    head, tail = builder.add_all(Split(0, 2, (1, 2)), shape)
    turned = builder.add(Concat(0), tail, head, builder.add(DimValues((7,))))
    tiled = builder.add(Tile((2,)), head)
    assert [str(value) for value in turned.known.tolist()] == ["c", "4", "n", "7"]  # type: ignore[union-attr]
    assert [str(value) for value in tiled.known.tolist()] == ["n", "n"]  # type: ignore[union-attr]
    stretched = builder.add(Broadcast((3, 1)), head)
    assert stretched.known is not None
    assert stretched.known.shape == (3, 1)


@pytest.mark.parametrize("repeats", [(2, 29, 2**62, 64), (2**62, 2, 1, 1), (1, 1, 1, 2**63), (2**62, 2**62, 0, 1)])
@pytest.mark.parametrize("as_operand", [True, False])
def test_more_repeats_than_memory_can_be(repeats: tuple[int, ...], as_operand: bool) -> None:
    """numpy would crash, so none of its own checks may be relied upon."""
    x = np.ones((1, 2, 3, 4), np.float32)
    op, more = (Tile(), [np.array(repeats, np.uint64)]) if as_operand else (Tile(repeats), [])
    with pytest.raises(ModelError, match=r"repeats of \[1, 2, 3, 4\] make \[.*\], too large"):
        op.evaluate(x, *more)


@pytest.mark.parametrize("count", [0, 2, 4])
def test_as_many_repeats_as_axes_that_only_the_run_knows(count: int) -> None:
    with pytest.raises(ModelError, match=rf"the repeats are int64\[{count}\] for a tensor of rank 3"):
        infer(Tile(), tensor("float32", "n", 3, 4), tensor("int64", count))
    assert str(infer(Tile(), tensor("float32", "n", 3, 4), tensor("int64", 3))[0]).startswith("float32[tile_0_0,")
