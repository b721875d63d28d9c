"""Handlers that pick, place and order elements, where versions or compositions matter; against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

from tests.frontends.onnx.one_node import model, program, run

Array = NDArray[Any]
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def agree(op: str, *inputs: Array | None, opset: int, **options: Any) -> None:
    """Our result is ONNX Runtime's: element type, shape and values."""
    proto = model(op, inputs, opset=opset, **options)
    proto.ir_version = 9
    for output in proto.graph.output:
        output.ClearField("type")
    session_options = onnxruntime.SessionOptions()
    session_options.log_severity_level = 4
    names = {f"x{index}": value for index, value in enumerate(inputs) if value is not None}
    typed = program(op, inputs, opset=opset, **options)
    for output, kind in zip(proto.graph.output, typed.outputs.values(), strict=True):
        element = np.dtype(kind.dtype.numpy)  # type: ignore[union-attr]
        output.type.tensor_type.elem_type = onnx_type(element)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), session_options, ["CPUExecutionProvider"])
    expected = session.run(None, names)
    found = run(op, *inputs, opset=opset, **options)
    for ours, theirs in zip(found if "outputs" in options else [found], expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def onnx_type(element: np.dtype[Any]) -> int:
    from onnx import TensorProto, helper  # noqa: PLC0415

    return TensorProto.STRING if element.kind == "O" else helper.np_dtype_to_tensor_dtype(element)


@pytest.mark.parametrize("opset", [9, 11, 13])
def test_scatter(opset: int) -> None:
    indices, updates = np.array([[[0, 1, 1, 0]]]), np.full((1, 1, 4), -1, np.float32)
    agree("Scatter" if opset < 11 else "ScatterElements", X, indices, updates, opset=opset, axis=1)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter_nd(reduction: str) -> None:
    indices, updates = np.array([[[1, 2]], [[0, -1]]]), X[:, :1]
    agree("ScatterND", X, indices, updates, opset=18, reduction=reduction)


@pytest.mark.parametrize(("opset", "attributes"), [(1, {"k": 2}), (10, {}), (11, {"largest": 0}), (11, {"axis": 1})])
def test_topk(opset: int, attributes: dict[str, Any]) -> None:
    x = np.array([[3, 1, 3, 2], [0, 0, 0, -1], [7, 8, 9, 9]], np.float32)
    inputs = (x,) if opset == 1 else (x, np.array([2]))
    if opset >= 10:
        agree("TopK", *inputs, opset=opset, outputs=("v", "i"), **attributes)
    else:
        values, places = run("TopK", *inputs, opset=opset, outputs=("v", "i"), **attributes)
        np.testing.assert_array_equal(places, [[0, 2], [0, 1], [2, 3]])
        np.testing.assert_array_equal(values, np.take_along_axis(x, places, -1))


@pytest.mark.parametrize("attributes", [{}, {"sorted": 0}, {"axis": 0}, {"axis": -1, "sorted": 0}])
@pytest.mark.parametrize("element", [np.int64, np.float32])
def test_unique(attributes: dict[str, Any], element: Any) -> None:
    x = np.array([[2, 1, 2], [0, 1, 0], [2, 1, 2]], element)
    agree("Unique", x, opset=11, outputs=("y", "first", "inverse", "counts"), **attributes)


@pytest.mark.parametrize("axis", [0, -1, 2])
@pytest.mark.parametrize("depth", [np.array(3), np.array([4])])
def test_one_hot(axis: int, depth: Array) -> None:
    agree("OneHot", np.array([[0, 2], [-1, 9]]), depth, np.array([5, 7], np.int64), opset=11, axis=axis)


def test_gather_and_relatives() -> None:
    agree("Gather", X, np.array([[-1, 0]], np.int32), opset=13, axis=1)
    agree("GatherElements", X, np.array([[[0, -1]], [[1, 2]]]), opset=13, axis=2)
    agree("GatherND", X, np.array([[[0, 1]], [[2, -1]]]), opset=13, batch_dims=1)
    agree("Compress", X, np.array([True, False, True]), opset=11, axis=1)
    agree("Compress", X, np.array([True, False, True]), opset=11)
    agree("NonZero", X - 3, opset=13)
    agree("Where", X > 3, X, np.zeros(4, np.float32), opset=16)
    agree("Where", X[0] > 3, np.array(["a", "b", "c", "d"], object), np.array([["x"]], object), opset=16)


@pytest.mark.parametrize("seed", range(3))
def test_non_max_suppression(seed: int) -> None:
    rng = np.random.default_rng(seed)
    corners = rng.random((2, 20, 2), np.float32)
    boxes = np.concatenate([corners, corners + 0.4 * rng.random((2, 20, 2), np.float32)], -1)
    scores = rng.random((2, 3, 20), np.float32)
    limits = np.array([4]), np.array([0.3], np.float32), np.array([0.1], np.float32)
    for centered in (0, 1):
        agree("NonMaxSuppression", boxes, scores, *limits, opset=11, center_point_box=centered)
        agree("NonMaxSuppression", boxes, scores, limits[0], opset=11, center_point_box=centered)


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_cumsum(exclusive: int, reverse: int) -> None:
    agree("CumSum", X, np.array(-2), opset=14, exclusive=exclusive, reverse=reverse)


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("axis", [-2, 1])
def test_tensor_scatter(mode: str, axis: int) -> None:
    cache, rng = np.zeros((2, 5, 4, 3), np.float32), np.random.default_rng(0)
    shape = list(cache.shape)
    shape[axis] = 2
    update, starts = rng.random(shape, np.float32), np.array([2, 3 if mode == "circular" else 0])
    expected = cache.copy()
    for batch in range(2):
        for step in range(2):
            place = (starts[batch] + step) % cache.shape[axis]
            np.moveaxis(expected[batch], axis if axis < 0 else axis - 1, 0)[place] = np.moveaxis(
                update[batch], axis if axis < 0 else axis - 1, 0
            )[step]
    np.testing.assert_array_equal(run("TensorScatter", cache, update, starts, axis=axis, mode=mode), expected)
    first = run("TensorScatter", cache, update, axis=axis, mode=mode)
    np.testing.assert_array_equal(np.take(first, [0, 1], axis), update)
