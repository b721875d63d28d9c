"""Writes the models of docs/three-questions.md into the folder that it is run in.

`wrong.onnx` is wrong on one device, `slow.onnx` slow and `quick.onnx` the same without what makes it so, `refused.onnx`
does not compile and `mended.onnx` does.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH = 64
IMPORTS = [helper.make_opsetid("", 20), helper.make_opsetid("com.example", 1)]


def weight(name: str, array: np.ndarray) -> onnx.TensorProto:
    """A float32 weight."""
    return numpy_helper.from_array(array.astype(np.float32), name)


def model(
    nodes: list[onnx.NodeProto], weights: list[onnx.TensorProto], rows: int | str, outputs: dict[str, list[int | str]]
) -> onnx.ModelProto:
    """A model of `nodes` from x [rows, WIDTH] to `outputs`, which have these shapes."""
    graph = helper.make_graph(
        nodes,
        "puzzle",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, WIDTH])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        weights,
    )
    return helper.make_model(graph, opset_imports=IMPORTS, ir_version=9)


def wrong() -> onnx.ModelProto:
    """Layers of which one gives numbers of about 100,000, more than a 16-bit float holds; the next makes them small."""
    random = np.random.default_rng(0)
    weights = [
        weight("w_up", random.standard_normal((WIDTH, WIDTH)) * 4000),
        weight("w_down", random.standard_normal((WIDTH, WIDTH)) / 4000),
        weight("w_out", random.standard_normal((WIDTH, 10)) / 8),
    ]
    nodes = [
        helper.make_node("Tanh", ["x"], ["small"], name="squash"),
        helper.make_node("MatMul", ["small", "w_up"], ["large"], name="up"),
        helper.make_node("MatMul", ["large", "w_down"], ["back"], name="down"),
        helper.make_node("Softplus", ["back"], ["soft"], name="soft"),
        helper.make_node("MatMul", ["soft", "w_out"], ["y"], name="out"),
    ]
    return model(nodes, weights, 4, {"y": [4, 10]})


def slow() -> onnx.ModelProto:
    """Two layers for any number of rows, and between them numbers that are written as text and read again."""
    return layers(through_text=True)


def quick() -> onnx.ModelProto:
    """The same without the text."""
    return layers(through_text=False)


def layers(*, through_text: bool) -> onnx.ModelProto:
    """Two layers for any number of rows."""
    random = np.random.default_rng(1)
    weights = [
        weight("w_in", random.standard_normal((WIDTH, WIDTH)) / 8),
        weight("w_out", random.standard_normal((WIDTH, WIDTH)) / 8),
    ]
    text = [
        helper.make_node("Cast", ["h"], ["text"], name="write", to=TensorProto.STRING),
        helper.make_node("Cast", ["text"], ["again"], name="read", to=TensorProto.FLOAT),
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w_in"], ["h"], name="in"),
        *(text if through_text else []),
        helper.make_node("Relu", ["again" if through_text else "h"], ["r"], name="relu"),
        helper.make_node("MatMul", ["r", "w_out"], ["y"], name="out"),
    ]
    return model(nodes, weights, "rows", {"y": ["rows", WIDTH]})


def refused() -> onnx.ModelProto:
    """Twelve layers, of which one has an op that nobody else knows."""
    random = np.random.default_rng(2)
    weights, nodes, value = [], [], "x"
    for number in range(12):
        weights.append(weight(f"w{number}", random.standard_normal((WIDTH, WIDTH)) / 8))
        op, domain = ("Wobble", "com.example") if number == 7 else ("Tanh", "")
        nodes.append(helper.make_node("MatMul", [value, f"w{number}"], [f"h{number}"], name=f"layer{number}"))
        nodes.append(helper.make_node(op, [f"h{number}"], [f"a{number}"], name=f"act{number}", domain=domain))
        value = f"a{number}"
    nodes.append(helper.make_node("Identity", [value], ["y"], name="end"))
    return model(nodes, weights, 4, {"y": [4, WIDTH]})


def mended() -> onnx.ModelProto:
    """The same, and what the op is: a function, x sigmoid(x)."""
    whole = refused()
    body = [
        helper.make_node("Sigmoid", ["x"], ["s"], name="gate"),
        helper.make_node("Mul", ["x", "s"], ["y"], name="gated"),
    ]
    whole.functions.append(helper.make_function("com.example", "Wobble", ["x"], ["y"], body, IMPORTS[:1]))
    return whole


if __name__ == "__main__":
    for build in (wrong, slow, quick, refused, mended):
        onnx.save(build(), f"{build.__name__}.onnx")
