"""The `light_*` nets of the onnx wheel with random weights.

They are the graphs of well-known nets as Caffe2 wrote them at opset 9. The wheel ships them with every weight
a splat of one constant, made by a ConstantOfShape node, and expects one value a thousand times: a compiler
that mixes up weights or layouts passes. Here every weight is seeded, and suits the node that uses it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from onnx import helper, numpy_helper

from benchmarks.models.family import Family, Preset
from benchmarks.models.graph import uniform
from benchmarks.models.inputs import Input

__all__ = ["FAMILY", "Light"]

NETS = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
QUICK = ("squeezenet", "shufflenet")
NORMS = ("BatchNormalization", "Mul", "Add")  # Caffe2 wrote a norm's scale and shift as Mul and Add
VIEWS = ("Reshape", "Unsqueeze")
IR_VERSION = 8


@dataclass(frozen=True, slots=True)
class Light:
    """`net` is one of the wheel's nets, without `light_`."""

    net: str


def shipped(net: str) -> onnx.ModelProto:
    """The model as the wheel ships it."""
    return onnx.load(Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{net}.onnx")


class Weights:
    """Draws weights by what they are used for."""

    def __init__(self, net: str, graph: onnx.GraphProto) -> None:
        self._net = net
        self._consumers: dict[str, list[tuple[onnx.NodeProto, int]]] = {}
        for node in graph.node:
            for index, name in enumerate(node.input):
                self._consumers.setdefault(name, []).append((node, index))

    def _use(self, name: str) -> tuple[onnx.NodeProto, int]:
        """The first node that computes with a weight, and the operand it is there; views are looked through."""
        node, index = self._consumers[name][0]
        return self._use(node.output[0]) if node.op_type in VIEWS else (node, index)

    def _users(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        return [user for user, _ in self._consumers.get(node.output[0], [])]

    def _feeds_a_sum(self, node: onnx.NodeProto) -> bool:
        return any(user.op_type == "Sum" for user in self._users(node))

    def _reach(self, node: onnx.NodeProto, fan_in: int) -> float:
        """Bound of a uniform weight that keeps the mean square: twice the variance where a Relu follows."""
        user: onnx.NodeProto | None = node
        while user is not None and user.op_type in ("Conv", "Gemm", *NORMS):
            user = next(iter(self._users(user)), None)
            if user is not None and user.op_type == "Conv":
                break
        relu = user is not None and user.op_type == "Relu"
        return math.sqrt((6 if relu else 3) / fan_in)

    def _bounds(self, name: str, shape: tuple[int, ...]) -> tuple[float, float]:
        node, operand = self._use(name)
        match node.op_type, operand:
            case "Conv", 1:
                reach = self._reach(node, math.prod(shape[1:]))
                return -reach, reach
            case "Gemm", 1:
                transposed = any(entry.name == "transB" and entry.i for entry in node.attribute)
                rows, columns = (
                    extent for extent in shape if extent > 1
                )  # one is stored with ones before, for a Reshape
                reach = self._reach(node, columns if transposed else rows)
                return -reach, reach
            case "BatchNormalization", 1:
                # The end of a residual branch is small, or the sum over many blocks would grow without bound.
                gain = 0.3 if self._feeds_a_sum(node) else 1.0
                return 0.6 * gain, 1.4 * gain
            case "BatchNormalization", 4:
                return 0.5, 1.5
            case "Mul", _:
                return 0.6, 1.4
        return -0.2, 0.2  # biases, shifts and means

    def draw(self, name: str, shape: tuple[int, ...]) -> onnx.TensorProto:
        """A weight in place of the one called `name`."""
        return numpy_helper.from_array(uniform(f"light_{self._net}/{name}", shape, *self._bounds(name, shape)), name)


def weights_of(graph: onnx.GraphProto) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes of all weights: the splats made by nodes, and the small ones that are stored.

    The stored ones are those of the trained net, and suit no other weights than its own.
    """
    stored = {entry.name: entry for entry in graph.initializer}
    for node in graph.node:
        if node.op_type == "ConstantOfShape":
            extents = numpy_helper.to_array(stored[node.input[0]])
            yield node.output[0], tuple(int(extent) for extent in extents)
    used = {name for node in graph.node for name in node.input}
    for name, entry in stored.items():
        if entry.data_type == onnx.TensorProto.FLOAT and name in used:
            yield name, tuple(entry.dims)


def build(sizes: Light) -> onnx.ModelProto:
    """The net with random weights; its image is fixed at 1x3x224x224, as shipped."""
    graph = shipped(sizes.net).graph
    weights = Weights(sizes.net, graph)
    drawn = {name: weights.draw(name, shape) for name, shape in weights_of(graph)}
    nodes = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    used = {name for node in nodes for name in node.input}
    kept = [entry for entry in graph.initializer if entry.name in used and entry.name not in drawn]
    stored = {entry.name for entry in graph.initializer}
    images = [entry for entry in graph.input if entry.name not in stored]
    rebuilt = helper.make_graph(nodes, f"light_{sizes.net}", images, graph.output, [*kept, *drawn.values()])
    opset = helper.make_opsetid("", 9)
    model = helper.make_model(rebuilt, opset_imports=[opset], ir_version=IR_VERSION, producer_name="argosy.benchmarks")
    onnx.checker.check_model(model)
    return model


def inputs(sizes: Light) -> tuple[Input, ...]:
    """What to run it with."""
    graph = shipped(sizes.net).graph
    stored = {entry.name for entry in graph.initializer}
    scale: dict[str, Any] = {"scale": 1.0}
    return tuple(
        Input(
            entry.name,
            "float32",
            tuple(dim.dim_value for dim in entry.type.tensor_type.shape.dim),
            "normal",
            scale,
        )
        for entry in graph.input
        if entry.name not in stored
    )


FAMILY = Family(
    "net of the onnx wheel with random weights",
    build,
    inputs,
    tuple(Preset(f"light_{net}", net not in QUICK, Light(net), ({},)) for net in NETS),
)
