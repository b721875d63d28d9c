"""Layers that the convolutional families share.

Each keeps the mean square of its input near 1, so that nets of any depth give finite answers that differ.
"""

from __future__ import annotations

import math

from benchmarks.models.graph import Dim, Graph
from benchmarks.models.inputs import Input

__all__ = ["batch_norm", "classifier", "conv", "image_input"]


def image_input(name: str, batch: Dim, channels: int, side: Dim) -> Input:
    """A batch of square images of standard normal numbers."""
    return Input(name, "float32", (batch, channels, side, side), "normal", {"scale": 1.0})


def conv(
    graph: Graph,
    value: str,
    channels: tuple[int, int],
    kernel: int,
    *,
    stride: int = 1,
    groups: int = 1,
    dilation: int = 1,
    bias: bool = False,
) -> str:
    """A convolution of `channels` = (in, out) that keeps the image's size but for its stride."""
    shape = (channels[1], channels[0] // groups, kernel, kernel)
    weights = [graph.matrix("weight", shape, math.prod(shape[1:]), math.sqrt(2))]
    if bias:
        weights.append(graph.weight("bias", shape[:1], -0.1, 0.1))
    pad = dilation * (kernel - 1) // 2
    return graph.op(
        "Conv",
        value,
        *weights,
        dilations=[dilation] * 2,
        group=groups,
        kernel_shape=[kernel] * 2,
        pads=[pad] * 4,
        strides=[stride] * 2,
    )


def batch_norm(graph: Graph, value: str, channels: int, gain: float = 1.0) -> str:
    """A trained-looking normalisation: every channel has its own scale, shift, mean and variance.

    `gain` is small at the end of a residual branch, so that the sum over many blocks stays bounded.
    """
    statistics = [
        graph.weight("scale", (channels,), 0.6 * gain, 1.4 * gain),
        graph.weight("shift", (channels,), -0.2, 0.2),
        graph.weight("mean", (channels,), -0.2, 0.2),
        graph.weight("variance", (channels,), 0.5, 1.5),
    ]
    return graph.op("BatchNormalization", value, *statistics, epsilon=1e-5)


def classifier(graph: Graph, value: str, channels: int, classes: int) -> str:
    """Pool over the image, then a product: one number a class."""
    pooled = graph.op("Flatten", graph.op("GlobalAveragePool", value), axis=1)
    weight = graph.matrix("weight", (classes, channels), channels)
    return graph.op("Gemm", pooled, weight, graph.weight("bias", (classes,), -0.1, 0.1), transB=1)
