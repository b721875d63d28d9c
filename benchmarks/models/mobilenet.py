"""MobileNetV2 (Sandler et al. 2018): inverted residuals with depthwise convolutions and Relu6."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from benchmarks.models.convolutional import batch_norm, classifier, conv, image_input
from benchmarks.models.family import Family, Preset
from benchmarks.models.graph import Dim, Graph
from benchmarks.models.inputs import Input

__all__ = ["FAMILY", "MobileNet"]

# Expansion, channels, blocks and stride of each stage: table 2 of the paper.
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


@dataclass(frozen=True, slots=True)
class MobileNet:
    """`stages`: (expansion, channels, blocks, stride) of each; `stem` and `last`: channels before and after them."""

    stages: tuple[tuple[int, int, int, int], ...] = STAGES
    stem: int = 32
    last: int = 1280
    classes: int = 1000
    image: Dim = 224
    batch: Dim = "batch"


def relu6(graph: Graph, value: str) -> str:
    """min(max(x, 0), 6), as exporters write it."""
    return graph.op("Clip", value, graph.constant(0.0, "float32"), graph.constant(6.0, "float32"))


def inverted_residual(graph: Graph, value: str, channels: tuple[int, int], expansion: int, stride: int) -> str:
    """Widen, filter each channel by itself, narrow; add the input where the shape stays."""
    wide = channels[0] * expansion
    branch = value
    if expansion > 1:
        with graph.scope("expand"):
            branch = relu6(graph, batch_norm(graph, conv(graph, branch, (channels[0], wide), 1), wide))
    with graph.scope("depthwise"):
        branch = conv(graph, branch, (wide, wide), 3, stride=stride, groups=wide)
        branch = relu6(graph, batch_norm(graph, branch, wide))
    with graph.scope("project"):
        branch = batch_norm(graph, conv(graph, branch, (wide, channels[1]), 1), channels[1], gain=0.7)
    return graph.op("Add", value, branch) if stride == 1 and channels[0] == channels[1] else branch


def build(sizes: MobileNet) -> onnx.ModelProto:
    """The model for these sizes."""
    graph = Graph("mobilenet")
    value = graph.input("image", "float32", (sizes.batch, 3, sizes.image, sizes.image))
    with graph.scope("stem"):
        value = relu6(graph, batch_norm(graph, conv(graph, value, (3, sizes.stem), 3, stride=2), sizes.stem))
    channels = sizes.stem
    for stage, (expansion, wanted, blocks, first_stride) in enumerate(sizes.stages):
        for block in range(blocks):
            with graph.scope(f"stage{stage}/block{block}"):
                stride = 1 if block else first_stride
                value = inverted_residual(graph, value, (channels, wanted), expansion, stride)
            channels = wanted
    with graph.scope("head"):
        value = relu6(graph, batch_norm(graph, conv(graph, value, (channels, sizes.last), 1), sizes.last))
        logits = classifier(graph, value, sizes.last, sizes.classes)
    graph.output(logits, "logits", "float32", (sizes.batch, sizes.classes))
    return graph.model()


def inputs(sizes: MobileNet) -> tuple[Input, ...]:
    """What to run it with."""
    return (image_input("image", sizes.batch, 3, sizes.image),)


FAMILY = Family(
    "image classifier with depthwise convolutions",
    build,
    inputs,
    (
        Preset("mobilenet_v2", True, MobileNet(), ({"batch": 1}, {"batch": 4})),
        Preset(
            "mobilenet_small",
            False,
            MobileNet(((1, 8, 1, 1), (4, 12, 2, 2), (4, 16, 2, 2)), 8, 48, 10, 32),
            ({"batch": 1}, {"batch": 3}),
        ),
    ),
)
