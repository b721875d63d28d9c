"""ResNet with bottleneck blocks (He et al. 2015); stride in the 3x3 convolution, as torchvision has it."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from benchmarks.models.convolutional import batch_norm, classifier, conv, image_input
from benchmarks.models.family import Family, Preset
from benchmarks.models.graph import Dim, Graph
from benchmarks.models.inputs import Input

__all__ = ["FAMILY", "ResNet"]

EXPANSION = 4


@dataclass(frozen=True, slots=True)
class ResNet:
    """`depths`: blocks of each stage; `width`: channels of the first stage's bottleneck."""

    depths: tuple[int, ...] = (3, 4, 6, 3)
    width: int = 64
    classes: int = 1000
    image: Dim = 224
    batch: Dim = "batch"


def bottleneck(graph: Graph, value: str, channels: int, width: int, stride: int) -> str:
    """1x1 down, 3x3, 1x1 up, beside an identity or, where the shape changes, a projection."""
    wide = width * EXPANSION
    branch = value
    for name, pair, kernel, step in (
        ("reduce", (channels, width), 1, 1),
        ("spatial", (width, width), 3, stride),
    ):
        with graph.scope(name):
            branch = graph.op("Relu", batch_norm(graph, conv(graph, branch, pair, kernel, stride=step), width))
    with graph.scope("expand"):
        branch = batch_norm(graph, conv(graph, branch, (width, wide), 1), wide, gain=0.3)
    if stride > 1 or channels != wide:
        with graph.scope("project"):
            value = batch_norm(graph, conv(graph, value, (channels, wide), 1, stride=stride), wide, gain=0.7)
    return graph.op("Relu", graph.op("Add", branch, value))


def build(sizes: ResNet) -> onnx.ModelProto:
    """The model for these sizes."""
    graph = Graph("resnet")
    value = graph.input("image", "float32", (sizes.batch, 3, sizes.image, sizes.image))
    with graph.scope("stem"):
        value = graph.op("Relu", batch_norm(graph, conv(graph, value, (3, sizes.width), 7, stride=2), sizes.width))
        value = graph.op("MaxPool", value, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    channels = sizes.width
    for stage, depth in enumerate(sizes.depths):
        width = sizes.width << stage
        for block in range(depth):
            with graph.scope(f"stage{stage}/block{block}"):
                value = bottleneck(graph, value, channels, width, 2 if stage and not block else 1)
            channels = width * EXPANSION
    with graph.scope("head"):
        logits = classifier(graph, value, channels, sizes.classes)
    graph.output(logits, "logits", "float32", (sizes.batch, sizes.classes))
    return graph.model()


def inputs(sizes: ResNet) -> tuple[Input, ...]:
    """What to run it with."""
    return (image_input("image", sizes.batch, 3, sizes.image),)


FAMILY = Family(
    "image classifier with residual bottlenecks",
    build,
    inputs,
    (
        Preset("resnet50", True, ResNet(), ({"batch": 1}, {"batch": 4})),
        Preset("resnet_small", False, ResNet((1, 2, 1), 8, 10, 48), ({"batch": 1}, {"batch": 3})),
    ),
)
