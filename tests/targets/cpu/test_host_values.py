"""Values that no kernel can hold (optionals, sequences, strings) go through the CPU target on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import argosy
from argosy.errors import UsageError

FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, ["N"])
X = np.array([1.5, -2.0], np.float32)


def session(nodes: list[Any], inputs: dict[str, Any], outputs: dict[str, Any]) -> argosy.Session:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_value_info(name, kind) for name, kind in inputs.items()],
        [helper.make_value_info(name, kind) for name, kind in outputs.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    return argosy.Session(argosy.compile(model, targets=("cpu",)).to_bytes(), device="cpu")


@pytest.mark.parametrize("value", [X, None])
@pytest.mark.parametrize("kind", [FLOATS, helper.make_sequence_type_proto(FLOATS)])
def test_an_optional_input(kind: Any, value: Any) -> None:
    """There or not, and beside a kernel."""
    made = session(
        [helper.make_node("OptionalHasElement", ["o"], ["has"]), helper.make_node("Neg", ["x"], ["y"])],
        {"o": helper.make_optional_type_proto(kind), "x": FLOATS},
        {"has": helper.make_tensor_type_proto(TensorProto.BOOL, []), "y": FLOATS},
    )
    given = [value] if value is not None and kind is not FLOATS else value
    found = made.run({"o": given, "x": X})
    assert found["has"].item() is (value is not None)
    np.testing.assert_array_equal(found["y"], -X)
    if value is None:
        assert made.run({"x": X})["has"].item() is False


def test_the_element_of_an_optional_goes_on_to_a_kernel() -> None:
    made = session(
        [helper.make_node("OptionalGetElement", ["o"], ["x"]), helper.make_node("Neg", ["x"], ["y"])],
        {"o": helper.make_optional_type_proto(FLOATS)},
        {"y": FLOATS},
    )
    for size in (2, 5):
        value = np.arange(size, dtype=np.float32)
        np.testing.assert_array_equal(made.run({"o": value})["y"], -value)


def test_an_element_of_a_sequence_goes_on_to_a_kernel_and_back_into_one() -> None:
    made = session(
        [
            helper.make_node("SequenceAt", ["s", "i"], ["x"]),
            helper.make_node("Neg", ["x"], ["y"]),
            helper.make_node("SequenceInsert", ["s", "y"], ["t"]),
        ],
        {
            "s": helper.make_sequence_type_proto(FLOATS),
            "i": helper.make_tensor_type_proto(TensorProto.INT64, []),
        },
        {"t": helper.make_sequence_type_proto(FLOATS)},
    )
    values = [X, np.zeros(3, np.float32)]
    for place in (0, 1, -1):
        found = made.run({"s": values, "i": np.array(place)})["t"]
        assert len(found) == 3
        for one, other in zip(found, [*values, -values[place]], strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 3)])
def test_an_input_of_undeclared_rank(shape: tuple[int, ...]) -> None:
    """Beside a kernel, and as an output as it is."""
    free = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    made = session(
        [
            helper.make_node("Mul", ["w", "w"], ["z"]),
            helper.make_node("Exp", ["w"], ["e"]),
            helper.make_node("ReduceSum", ["e"], ["s"], keepdims=0),
            helper.make_node("Mul", ["s", "x"], ["y"]),
        ],
        {"w": free, "x": FLOATS},
        {"z": free, "y": FLOATS},
    )
    w = np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    found = made.run({"w": w, "x": X})
    np.testing.assert_allclose(found["z"], w * w)
    assert found["z"].shape == shape
    np.testing.assert_allclose(found["y"], np.exp(w).sum() * X, rtol=1e-6)


@pytest.mark.parametrize("op", ["Concat", "Add", "MatMul", "Reshape"])
def test_what_a_host_step_refuses_is_the_caller_s_mistake(op: str) -> None:
    """Where only the run knows that shapes do not fit, the node is named, and nothing of numpy's is told."""
    free = helper.make_tensor_type_proto(TensorProto.INT64, None)
    attributes: dict[str, Any] = {"axis": 1} if op == "Concat" else {}
    made = session([helper.make_node(op, ["a", "b"], ["y"], **attributes)], {"a": free, "b": free}, {"y": free})
    with pytest.raises(UsageError, match=rf"^{op} \(node 0 → 'y'\)"):
        made.run({"a": np.ones((2, 3), np.int64), "b": np.full(4, 5)})
