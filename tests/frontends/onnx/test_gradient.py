"""Gradient of ai.onnx.preview.training: against differences of the forward model as onnx.reference evaluates it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import argosy
from argosy.errors import ArgosyError, ModelError, UnsupportedError
from argosy.frontends.onnx import load
from tests.frontends.onnx.one_node import NEWEST

Array = NDArray[Any]
DOMAIN = "ai.onnx.preview.training"
node = helper.make_node


def gradient(xs: Sequence[str], y: str, zs: Sequence[str] = (), *, at: Sequence[str] = (), out: str = "d") -> Any:
    """A Gradient node with the outputs `out` + x, at the named tensors themselves unless `at` names others."""
    outputs = [out + name for name in xs]
    given: dict[str, Any] = {"zs": list(zs)} if zs else {}
    return node("Gradient", list(at) or [*xs, *zs], outputs, domain=DOMAIN, name="grad", xs=list(xs), y=y, **given)


def model(
    nodes: Sequence[onnx.NodeProto], feeds: dict[str, Array], outputs: Sequence[str], constants: Sequence[str] = ()
) -> onnx.ModelProto:
    """A model over `feeds`, of which `constants` are initializers."""
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in feeds.items()
        if name not in constants
    ]
    graph = helper.make_graph(
        list(nodes),
        "training",
        inputs,
        [helper.make_tensor_value_info(name, TensorProto.DOUBLE, None) for name in outputs],
        [onnx.numpy_helper.from_array(feeds[name], name) for name in constants],
    )
    opsets = [helper.make_opsetid("", NEWEST), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets)


def run(made: onnx.ModelProto, feeds: dict[str, Array], target: str = "ref") -> dict[str, Array]:
    session = argosy.Session(argosy.compile(made, targets=[target], strict=True), device=target)
    return session.run({name: value for name, value in feeds.items() if name in session.inputs})


def differences(nodes: Sequence[onnx.NodeProto], feeds: dict[str, Array], y: str, x: str) -> Array:
    """The derivatives of the sum of `y` by each element of the input `x`."""
    evaluator = ReferenceEvaluator(model(nodes, feeds, [y]))
    result = np.zeros_like(feeds[x])
    for index in np.ndindex(*feeds[x].shape):
        ends = []
        for step in (1e-5, -1e-5):
            moved = feeds[x].copy()
            moved[index] += step
            results: Any = evaluator.run(None, {**feeds, x: moved})
            ends.append(np.sum(results[0]))
        result[index] = (ends[0] - ends[1]) / 2e-5
    return result


RNG = np.random.default_rng(1)
NETWORK = [
    node("Conv", ["x", "w", "c"], ["h"], pads=[1, 1, 1, 1], strides=[2, 2]),
    node("Relu", ["h"], ["r"]),
    node("AveragePool", ["r"], ["p"], kernel_shape=[2, 2], pads=[1, 1, 0, 0]),
    node("Flatten", ["p"], ["f"]),
    node("Gemm", ["f", "v", "b"], ["logits"], transB=1, alpha=0.5),
    node("LogSoftmax", ["logits"], ["shares"], axis=-1),
    node("Mul", ["shares", "target"], ["hits"]),
    node("ReduceSum", ["hits"], ["total"], keepdims=0),
    node("Neg", ["total"], ["loss"]),
]
FEEDS = {
    "x": RNG.standard_normal((2, 2, 6, 6)),
    "w": RNG.standard_normal((3, 2, 3, 3)),
    "c": RNG.standard_normal(3),
    "v": RNG.standard_normal((4, 27)),
    "b": RNG.standard_normal(4),
    "target": np.eye(4)[[1, 3]],
}


@pytest.mark.parametrize("target", ["ref", "cpu"])
@pytest.mark.parametrize("constants", [(), ("w", "c", "v", "b")])
def test_a_network(target: str, constants: tuple[str, ...]) -> None:
    """Weights that are inputs, and weights that are initializers."""
    xs = ["w", "c", "v", "b"]
    nodes = [*NETWORK, gradient(xs, "loss", ["x", "target"])]
    made = model(nodes, FEEDS, ["loss", *(f"d{name}" for name in xs)], constants)
    found = run(made, FEEDS, target)
    for name in xs:
        np.testing.assert_allclose(found[f"d{name}"], differences(NETWORK, FEEDS, "loss", name), rtol=1e-6, atol=1e-7)


ATTENTION = [
    node("MatMul", ["x", "q"], ["xq"]),
    node("MatMul", ["x", "k"], ["xk"]),
    node("Transpose", ["xk"], ["xkt"], perm=[0, 2, 1]),
    node("MatMul", ["xq", "xkt"], ["scores"]),
    node("Softmax", ["scores"], ["weights"]),
    node("MatMul", ["weights", "x"], ["mixed"]),
    node("ReduceMean", ["mixed", "last"], ["mean"]),
    node("Sub", ["mixed", "mean"], ["off"]),
    node("ReduceL2", ["off", "last"], ["norm"]),
    node("Div", ["off", "norm"], ["even"]),
    node("Mul", ["even", "scale"], ["normal"]),
    node("Tanh", ["normal"], ["y"]),
]


def test_attention_and_a_normalisation() -> None:
    feeds = {
        "x": RNG.standard_normal((2, 3, 4)),
        "q": RNG.standard_normal((4, 4)),
        "k": RNG.standard_normal((4, 4)),
        "scale": RNG.standard_normal(4),
        "last": np.array([-1]),
    }
    nodes = [*ATTENTION, gradient(["x", "q", "scale"], "y", ["k"])]
    found = run(model(nodes, feeds, ["dx", "dq", "dscale"], ["last"]), feeds)
    for name in ("x", "q", "scale"):
        np.testing.assert_allclose(found[f"d{name}"], differences(ATTENTION, feeds, "y", name), rtol=1e-5, atol=1e-7)


SQUARES = [node("Mul", ["a", "a"], ["square"], name="squared"), node("Mul", ["square", "b"], ["y"])]
PAIR = {"a": np.array([1.0, -2.0]), "b": np.array([3.0, 5.0])}


def test_a_gradient_that_stands_before_what_it_differentiates() -> None:
    found = run(model([gradient(["a", "b"], "y"), *SQUARES], PAIR, ["da", "db"]), PAIR)
    np.testing.assert_allclose(found["da"], 2 * PAIR["a"] * PAIR["b"])
    np.testing.assert_allclose(found["db"], PAIR["a"] ** 2)


def test_other_values_and_tensors_on_the_way() -> None:
    """Y by `square`, at a value of another input; and with everything else constant."""
    feeds = PAIR | {"other": np.array([7.0, 11.0])}
    nodes = [*SQUARES, gradient(["square"], "y", ["b"], at=["other", "a"]), gradient(["a"], "y", at=["other"], out="e")]
    found = run(model(nodes, feeds, ["dsquare", "ea"]), feeds)
    np.testing.assert_allclose(found["dsquare"], PAIR["a"])
    np.testing.assert_allclose(found["ea"], 2 * feeds["other"] * PAIR["b"])


def test_a_gradient_of_a_gradient() -> None:
    nodes = [*SQUARES, gradient(["a"], "y", ["b"]), gradient(["a"], "da", ["b"], out="d2")]
    found = run(model(nodes, PAIR, ["d2a"]), PAIR)
    np.testing.assert_allclose(found["d2a"], 2 * PAIR["b"])


def test_a_gradient_in_a_body() -> None:
    """Each iteration steps down the slope of (a - b)²."""
    body = helper.make_graph(
        [
            node("Sub", ["state", "b"], ["off"]),
            node("Mul", ["off", "off"], ["loss"]),
            gradient(["state"], "loss", out="d"),
            node("Mul", ["dstate", "rate"], ["step"]),
            node("Sub", ["state", "step"], ["next"]),
            node("Identity", ["go"], ["on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, ()),
            helper.make_tensor_value_info("go", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("state", TensorProto.DOUBLE, (2,)),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("next", TensorProto.DOUBLE, (2,)),
        ],
    )
    feeds = PAIR | {"n": np.array(40), "rate": np.array(0.25)}
    found = run(model([node("Loop", ["n", "", "a"], ["last"], body=body)], feeds, ["last"]), feeds)
    np.testing.assert_allclose(found["last"], PAIR["b"])


def refused(nodes: Sequence[onnx.NodeProto], kind: type[ArgosyError], feeds: dict[str, Array] = PAIR) -> str:
    with pytest.raises(kind) as caught:
        load(model(nodes, feeds, []))
    return str(caught.value)


def test_mistakes_are_named() -> None:
    def with_node(**changed: Any) -> str:
        given: dict[str, Any] = {"xs": ["a"], "y": "y"} | changed
        inputs, outputs = given.pop("inputs", ["a"]), given.pop("outputs", ["da"])
        made = node("Gradient", inputs, outputs, domain=DOMAIN, name="grad", **given)
        return refused([*SQUARES, made], ModelError)

    assert "grad: has 2 inputs, expected 1: a value for each name in 'xs' and 'zs'" in with_node(inputs=["a", "b"])
    assert "has 2 outputs, expected 1: one for each name in 'xs'" in with_node(outputs=["da", "db"])
    assert "'xs' and 'zs' are a, a, expected different names" in with_node(zs=["a"], inputs=["a", "a"])
    assert "grad: attribute 'y': reads 'z', which no node" in with_node(y="z")
    assert "grad: attributes 'xs' and 'zs': reads 'c', which no node" in with_node(xs=["c"])
    assert "'y' is 'b', which no node of this graph computes" in with_node(y="b")
    assert "attribute 'y' is missing" in refused(
        [*SQUARES, node("Gradient", ["a"], ["da"], domain=DOMAIN, xs=["a"])], ModelError
    )
    text = refused([*SQUARES, gradient(["a"], "y")], ModelError, {"a": np.array([1, 2]), "b": np.array([3, 4])})
    assert "grad: the differentiated value is int64[2], expected a tensor of floats" in text


def test_what_has_no_derivative_is_named() -> None:
    nodes = [node("Det", ["m"], ["d"], name="det"), node("Identity", ["d"], ["e"]), gradient(["m"], "d")]
    feeds = {"m": np.eye(3)}
    text = refused(nodes, UnsupportedError, feeds)
    assert "grad: there is no derivative of 1 instruction(s)" in text
    assert "det: determinant" in text
    assert "zs" in text


def test_another_name_of_a_tensor_is_told() -> None:
    nodes = [node("Identity", ["a"], ["same"]), node("Mul", ["same", "a"], ["y"]), gradient(["same"], "y")]
    text = refused(nodes, UnsupportedError)
    assert "'same' is the same tensor as 'a', so that the graph can't be cut at it alone" in text
    assert "name 'a' in its place" in text
