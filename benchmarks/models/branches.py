"""A net of two independent branches that meet at the end: work for two streams, buffers that live at once."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from benchmarks.models.convolutional import batch_norm, classifier, conv, image_input
from benchmarks.models.family import Family, Preset
from benchmarks.models.graph import Dim, Graph
from benchmarks.models.inputs import Input

__all__ = ["FAMILY", "Branches"]


@dataclass(frozen=True, slots=True)
class Branches:
    """`depth`: convolutions of each branch; `width`: channels of each branch."""

    depth: int = 6
    width: int = 128
    classes: int = 100
    image: Dim = 112
    batch: Dim = "batch"


def build(sizes: Branches) -> onnx.ModelProto:
    """One branch of plain 3x3 convolutions, one of dilated depthwise and 1x1 ones with an average pool before."""
    graph = Graph("branches")
    image = graph.input("image", "float32", (sizes.batch, 3, sizes.image, sizes.image))
    with graph.scope("plain"):
        plain = graph.op("Relu", conv(graph, image, (3, sizes.width), 3, stride=2, bias=True))
        for layer in range(sizes.depth):
            with graph.scope(f"layer{layer}"):
                plain = graph.op("Relu", conv(graph, plain, (sizes.width, sizes.width), 3, bias=True))
    with graph.scope("dilated"):
        dilated = graph.op("AveragePool", image, kernel_shape=[2, 2], strides=[2, 2])
        dilated = conv(graph, dilated, (3, sizes.width), 1)
        for layer in range(sizes.depth):
            with graph.scope(f"layer{layer}"):
                dilated = conv(graph, dilated, (sizes.width, sizes.width), 3, groups=sizes.width, dilation=2)
                dilated = batch_norm(graph, conv(graph, dilated, (sizes.width, sizes.width), 1), sizes.width, 0.5)
                dilated = graph.op("HardSwish", dilated)
    with graph.scope("join"):
        both = graph.op("Concat", plain, dilated, axis=1)
        mixed = graph.op("Relu", conv(graph, both, (2 * sizes.width, sizes.width), 1, bias=True))
        embedding = graph.op("Flatten", graph.op("GlobalMaxPool", mixed), axis=1)
        logits = classifier(graph, mixed, sizes.width, sizes.classes)
        probabilities = graph.op("Softmax", logits, axis=-1)
    graph.output(probabilities, "probabilities", "float32", (sizes.batch, sizes.classes))
    graph.output(embedding, "embedding", "float32", (sizes.batch, sizes.width))
    return graph.model()


def inputs(sizes: Branches) -> tuple[Input, ...]:
    """What to run it with."""
    return (image_input("image", sizes.batch, 3, sizes.image),)


FAMILY = Family(
    "two independent convolutional branches, two outputs",
    build,
    inputs,
    (
        Preset("two_branches", False, Branches(), ({"batch": 1}, {"batch": 4})),
        Preset("two_branches_small", False, Branches(2, 8, 10, 24), ({"batch": 1}, {"batch": 3})),
    ),
)
