"""Handlers that rearrange tensors, in every version: attributes that became inputs, defaults that changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.errors import ModelError
from tests.frontends.onnx.one_node import program, run

Array = NDArray[Any]
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


def same(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(found, expected)


def test_reshape_of_opset_1_has_an_attribute() -> None:
    same(run("Reshape", X, opset=1, shape=[0, -1]), X.reshape(2, -1))
    same(run("Reshape", X, ints(0, -1), opset=5), X.reshape(2, -1))


@pytest.mark.parametrize("axis", [0, 1, 3, -1])
def test_flatten(axis: int) -> None:
    before = int(np.prod(X.shape[:axis]))
    same(run("Flatten", X, axis=axis), X.reshape(before, -1))
    made = program("Flatten", [X], axis=axis, shapes=[("n", 3, "w")])
    expected = {0: "[1, 3*n*w]", 1: "[n, 3*w]", 3: "[3*n*w, 1]", -1: "[3*n, w]"}
    assert [str(kind) for kind in made.outputs.values()] == [f"float32{expected[axis]}"]


def test_flatten_of_a_scalar() -> None:
    same(run("Flatten", np.array(3.0), axis=0), [[3.0]])


@pytest.mark.parametrize("opset", [1, 11, 13])
def test_squeeze_and_unsqueeze(opset: int) -> None:
    row = X[:1, :, :1]
    if opset < 13:
        same(run("Squeeze", row, opset=opset, axes=[0, 2]), row[0, :, 0])
        same(run("Unsqueeze", X, opset=opset, axes=[0, 4]), X[None, ..., None])
    else:
        same(run("Squeeze", row, ints(0, -1), opset=opset), row[0, :, 0])
        same(run("Unsqueeze", X, ints(0, -1), opset=opset), X[None, ..., None])
    same(run("Squeeze", row, opset=opset), row[0, :, 0])


def test_concat_of_opset_1_is_along_axis_1() -> None:
    same(run("Concat", X, X, opset=1), np.concatenate([X, X], 1))
    same(run("Concat", X, X, opset=4, axis=2), np.concatenate([X, X], 2))
    with pytest.raises(ModelError, match="attribute 'axis' is missing"):
        program("Concat", [X, X], opset=4)


@pytest.mark.parametrize(
    ("opset", "inputs", "attributes", "sizes"),
    [
        (2, (), {"split": [1, 3]}, [1, 3]),
        (2, (), {}, [2, 2]),
        (13, (ints(3, 1),), {}, [3, 1]),
        (18, (ints(3, 1),), {}, [3, 1]),
        (18, (), {"num_outputs": 2}, [2, 2]),
    ],
)
def test_split(opset: int, inputs: tuple[Array, ...], attributes: dict[str, Any], sizes: list[int]) -> None:
    found = run("Split", X, *inputs, opset=opset, outputs=("a", "b"), axis=-1, **attributes)
    for part, expected in zip(found, np.split(X, np.cumsum(sizes)[:-1], -1), strict=True):
        same(part, expected)


def test_split_of_a_symbolic_axis_before_opset_18_is_even() -> None:
    made = program("Split", [X], opset=11, outputs=("a", "b"), shapes=[("n", 3, "w")], axis=2)
    assert [str(kind) for kind in made.outputs.values()] == ["float32[n, 3, floordiv(w, 2)]"] * 2
    with pytest.raises(ModelError, match="do not add up to the dim 3 of axis 1"):
        run("Split", X, opset=11, outputs=("a", "b"), axis=1)


def test_tile_of_opset_1_has_one_axis() -> None:
    tiles, axis = np.array(3, np.int64), np.array(1, np.int64)
    same(run("Tile", X, tiles, axis, opset=1, constant=[1, 2]), np.tile(X, (1, 3, 1)))
    same(run("Tile", X, ints(2, 1, 3), opset=6), np.tile(X, (2, 1, 3)))


def test_slice_of_opset_1_has_attributes() -> None:
    same(run("Slice", X, opset=1, starts=[0, -3], ends=[-1, 1000], axes=[0, 2]), X[:-1, :, -3:])
    same(run("Slice", X, opset=1, starts=[1], ends=[2]), X[1:2])
    same(run("Slice", X, ints(3), ints(-100), ints(2), ints(-2), opset=10), X[:, :, 3::-2])


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_pad_in_every_version(mode: str) -> None:
    pads = [0, 1, 2, 0, 0, 1]
    expected = np.pad(X, ((0, 0), (1, 0), (2, 1)), mode)  # type: ignore[call-overload]
    same(run("Pad", X, opset=1, paddings=pads, mode=mode), expected)
    same(run("Pad", X, opset=2, pads=pads, mode=mode), expected)
    same(run("Pad", X, ints(*pads), opset=11, mode=mode), expected)
    same(run("Pad", X, ints(1, 2, 0, 1), None, ints(1, -1), opset=18, mode=mode), expected)


def test_pad_value_as_an_attribute() -> None:
    expected = np.pad(X, ((0, 0), (1, 0), (0, 0)), constant_values=2.5)
    same(run("Pad", X, opset=2, pads=[0, 1, 0, 0, 0, 0], value=2.5), expected)
    with pytest.raises(ModelError, match="'mode' is 'wrap', expected one of constant, reflect, edge"):
        program("Pad", [X], opset=2, pads=[0] * 6, mode="wrap")


def test_shape_size_transpose_expand() -> None:
    same(run("Shape", X, opset=1), [2, 3, 4])
    same(run("Shape", X, start=-2, end=100), [3, 4])
    same(run("Size", X), 24)
    same(run("Transpose", X), X.T)
    same(run("Transpose", X, perm=[1, 0, 2]), X.transpose(1, 0, 2))
    same(run("Expand", X[:, :1], ints(5, 1, 3, 1)), np.broadcast_to(X[:, :1], (5, 2, 3, 4)))


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space_and_back(mode: str) -> None:
    x = np.arange(2 * 8 * 3 * 2, dtype=np.float32).reshape(2, 8, 3, 2)
    n, c, h, w = x.shape
    if mode == "DCR":
        expected = x.reshape(n, 2, 2, c // 4, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        expected = x.reshape(n, c // 4, 2, 2, h, w).transpose(0, 1, 4, 2, 5, 3)
    expected = expected.reshape(n, c // 4, h * 2, w * 2)
    same(run("DepthToSpace", x, blocksize=2, mode=mode), expected)
    same(run("SpaceToDepth", expected, blocksize=2, mode=mode), x)
    made = program("DepthToSpace", [x], blocksize=2, mode=mode, shapes=[("n", 8, "h", "w")])
    assert str(*made.outputs.values()) == "float32[n, 2, 2*h, 2*w]"
    with pytest.raises(ModelError, match="expected rank 4"):
        program("DepthToSpace", [X], blocksize=2)


def test_center_crop_pad() -> None:
    found = run("CenterCropPad", X, ints(4, 2), axes=[1, 2], constant=[1])
    same(found, np.pad(X, ((0, 0), (0, 1), (0, 0)))[:, :, 1:3])


@pytest.mark.parametrize("pads", [None, [0, 1, 0, 1]])
@pytest.mark.parametrize(("strides", "dilations"), [([1, 1], [1, 1]), ([2, 1], [1, 2])])
def test_col2im_sums_overlapping_blocks(pads: list[int] | None, strides: list[int], dilations: list[int]) -> None:
    image, block = (6, 7), (3, 2)
    before = pads or [0, 0, 0, 0]
    padded = [size + before[i] + before[2 + i] for i, size in enumerate(image)]
    counts = [(padded[i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(2)]
    rng = np.random.default_rng(0)
    columns = rng.integers(-4, 5, (2, 3 * 6, counts[0] * counts[1])).astype(np.float32)
    expected = np.zeros((2, 3, *padded), np.float32)
    cells = columns.reshape(2, 3, *block, *counts)
    for a, b, i, j in np.ndindex(*block, *counts):
        expected[:, :, i * strides[0] + a * dilations[0], j * strides[1] + b * dilations[1]] += cells[:, :, a, b, i, j]
    expected = expected[:, :, before[0] : before[0] + 6, before[1] : before[1] + 7]
    options = {} if pads is None else {"pads": pads}
    found = run("Col2Im", columns, ints(*image), ints(*block), strides=strides, dilations=dilations, **options)
    same(found, expected)


def test_unknown_attributes_are_refused() -> None:
    with pytest.raises(ModelError, match=r"Transpose \(opset \d+\) has no attribute 'color'\n  it has perm"):
        program("Transpose", [X], color=1)
