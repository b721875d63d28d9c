"""How many elements are needed, beside those that numpy takes of numbered ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

import argosy
from argosy.ir.dim import DimLike, evaluate
from argosy.ops.reading import module_reads

Take = Callable[[NDArray[Any]], NDArray[Any]]
"""What numpy takes of the elements of an image [2, 4, 9, 8]."""
IMAGE = (2, 4, 9, 8)
ROWS = np.array([5, 0, 5])


def model(nodes: list[Any], shape: tuple[Any, ...], **weights: Any) -> ModelProto:
    """y = f(x), of any shape, and perhaps z = g(x)."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    names = [name for name in ("y", "z") if any(name in node.output for node in nodes)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "g", [x], ends, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def needed(made: ModelProto, *results: int) -> DimLike:
    """How many elements of x are needed for some results, else for all."""
    main = argosy.load_onnx(made).main
    (count,) = module_reads(main, results or range(len(main.results)))
    assert count is not None
    return count


def taken(take: Take, shape: tuple[int, ...] = IMAGE) -> int:
    return int(np.unique(take(np.arange(np.prod(shape)).reshape(shape))).size)


def node(op: str, *more: str, **attributes: Any) -> Any:
    return helper.make_node(op, ["x", *more], ["y"], **attributes)


TAKING: list[tuple[str, Any, dict[str, Any], Take]] = [
    ("transpose", node("Transpose", perm=[3, 0, 1, 2]), {}, lambda x: x),
    ("slice", node("Slice", "b", "e", "a", "s"), {"b": [1], "e": [9], "a": [2], "s": [3]}, lambda x: x[:, :, 1:9:3]),
    ("gather", node("Gather", "i", axis=2), {"i": np.array([5, 0])}, lambda x: x[:, :, [5, 0]]),
    ("scalar index", node("Gather", "i", axis=0), {"i": np.array(1)}, lambda x: x[1]),
    ("many rows", node("Gather", "i", axis=0), {"i": np.array([0, 1, 0, 1, 1])}, lambda x: x),
    ("elements", node("GatherElements", "i", axis=1), {"i": np.array([[[[3]]]])}, lambda x: x[0, 3, 0, 0]),
    ("coordinates", node("GatherND", "i"), {"i": np.array([[1, 2], [0, 3]])}, lambda x: x[[1, 0], [2, 3]]),
    ("cut", node("Pad", "p"), {"p": [0, 0, -2, 3, 0, 0, -1, -1]}, lambda x: x[:, :, 2:-1, :-1]),
    ("padded", node("Pad", "p"), {"p": [1, 0, 0, 0, 0, 0, 2, 0]}, lambda x: x),
    ("1x1s2", node("Conv", "w", strides=[2, 2]), {"w": np.ones((3, 4, 1, 1))}, lambda x: x[:, :, ::2, ::2]),
    ("1x2s3", node("Conv", "w", strides=[1, 3]), {"w": np.ones((3, 4, 1, 2))}, lambda x: x[..., [0, 1, 3, 4, 6, 7]]),
    ("3x3", node("Conv", "w", pads=[1] * 4), {"w": np.ones((3, 4, 3, 3))}, lambda x: x),
    ("3x3 spread", node("Conv", "w", dilations=[2, 2]), {"w": np.ones((3, 4, 3, 3))}, lambda x: x),
    ("pool", node("MaxPool", kernel_shape=[2, 2], strides=[1, 3]), {}, lambda x: x[..., [0, 1, 3, 4, 6, 7]]),
    ("shrunk", node("Resize", "", "s"), {"s": np.array([1, 1, 1 / 3, 0.5])}, lambda x: x[:, :, ::3, ::2]),
    ("grown", node("Resize", "", "s", mode="linear"), {"s": np.array([1, 1, 2, 1.0])}, lambda x: x),
    ("sum", node("ReduceSum", "a"), {"a": [1]}, lambda x: x),
]


@pytest.mark.parametrize(("made", "weights", "take"), [case[1:] for case in TAKING], ids=[case[0] for case in TAKING])
def test_an_op_needs_what_numpy_takes(made: Any, weights: dict[str, Any], take: Take) -> None:
    kinds = {"w": np.float32, "s": np.float32 if made.op_type == "Resize" else np.int64}
    tensors = {name: np.asarray(value, kinds.get(name, np.int64)) for name, value in weights.items()}
    assert needed(model([made], IMAGE, **tensors)) == taken(take)


def test_what_follows_decides_how_much_is_needed() -> None:
    """A row of what is picked; both halves of a split, or one; parts that several read count each, up to the whole."""
    rows = {"rows": np.array([5, 0, 7]), "one": np.array(2)}
    picked = helper.make_node("Gather", ["x", "rows"], ["p"], axis=2)
    chosen = helper.make_node("Gather", ["p", "one"], ["y"], axis=2)
    assert needed(model([picked, chosen], IMAGE, **rows)) == taken(lambda x: x[:, :, 7])
    split = helper.make_node("Split", ["x"], ["y", "z"], axis=1, num_outputs=2)
    assert needed(model([split], IMAGE)) == taken(lambda x: x)
    for result in (0, 1):
        assert needed(model([split], IMAGE), result) == taken(lambda x: x[:, :2])
    ends = {"b": np.array([0]), "c": np.array([6]), "e": np.array([9]), "a": np.array([2])}
    parts = [
        helper.make_node("Slice", ["x", "b", "c", "a"], ["u"]),
        helper.make_node("Slice", ["x", "c", "e", "a"], ["v"]),
        helper.make_node("Concat", ["v", "u"], ["y"], axis=2),
    ]
    assert needed(model(parts, IMAGE, **ends)) == taken(lambda x: x)
    wide = [
        helper.make_node("Sigmoid", ["x"], ["u"]),
        helper.make_node("Mul", ["u", "x"], ["v"]),
        helper.make_node("Gather", ["v", "rows"], ["y"], axis=2),
    ]
    assert needed(model(wide, IMAGE, rows=rows["rows"])) == taken(lambda x: x[:, :, [5, 0, 7]]), "though read twice"
    size = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Cast", ["s"], ["y"], to=TensorProto.FLOAT)]
    assert needed(model(size, ("N", 3))) == 0, "sizes are known without a look at the elements"


@given(rows=st.integers(1, 40), picked=st.integers(0, 60))
def test_open_sizes_are_counted_at_those_of_the_run(rows: int, picked: int) -> None:
    made = model([helper.make_node("Gather", ["x", "i"], ["y"])], ("N", 8))
    made.graph.input.append(helper.make_tensor_value_info("i", TensorProto.INT64, ["M"]))
    main = argosy.load_onnx(made).main
    count, indices = module_reads(main, [0])
    assert count is not None
    assert indices is not None
    found = evaluate(count, {"N": rows, "M": picked}), evaluate(indices, {"N": rows, "M": picked})
    most = taken(lambda x: x[np.arange(picked) % rows], (rows, 8))
    assert found == (most, picked)
