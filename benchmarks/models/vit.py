"""A vision transformer (Dosovitskiy et al. 2020): patches by a strided convolution, norms before the branches."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from benchmarks.models.convolutional import image_input
from benchmarks.models.family import Family, Preset
from benchmarks.models.graph import Dim, Graph
from benchmarks.models.inputs import Input
from benchmarks.models.transformer import layer_norm, linear, mlp, self_attention

__all__ = ["FAMILY", "ViT"]


@dataclass(frozen=True, slots=True)
class ViT:
    """`patch`: side of a patch in pixels; `image` is a multiple of it."""

    layers: int = 12
    width: int = 768
    heads: int = 12
    hidden: int = 3072
    patch: int = 16
    image: int = 224
    classes: int = 1000
    batch: Dim = "batch"


def embed(graph: Graph, sizes: ViT, image: str) -> str:
    """Patches as tokens after a class token, plus positions."""
    side = sizes.patch
    with graph.scope("patches"):
        kernel = graph.matrix("weight", (sizes.width, 3, side, side), 3 * side * side)
        bias = graph.weight("bias", (sizes.width,), -0.1, 0.1)
        grid = graph.op("Conv", image, kernel, bias, kernel_shape=[side] * 2, strides=[side] * 2)
        tokens = graph.op("Transpose", graph.op("Reshape", grid, graph.constant([0, 0, -1])), perm=[0, 2, 1])
    with graph.scope("class"):
        batch = graph.op("Slice", graph.op("Shape", image), graph.constant([0]), graph.constant([1]))
        shape = graph.op("Concat", batch, graph.constant([1, sizes.width]), axis=0)
        first = graph.op("Expand", graph.matrix("token", (1, 1, sizes.width), 1), shape)
    count = (sizes.image // side) ** 2 + 1
    positions = graph.matrix("positions", (1, count, sizes.width), 4)
    return graph.op("Add", graph.op("Concat", first, tokens, axis=1), positions)


def build(sizes: ViT) -> onnx.ModelProto:
    """The model for these sizes."""
    graph = Graph("vit")
    image = graph.input("image", "float32", (sizes.batch, 3, sizes.image, sizes.image))
    value = embed(graph, sizes, image)
    for layer in range(sizes.layers):
        with graph.scope(f"layer{layer}"):
            normed = layer_norm(graph, value, sizes.width, "attention_norm")
            value = graph.op("Add", value, self_attention(graph, normed, sizes.width, sizes.heads))
            normed = layer_norm(graph, value, sizes.width, "mlp_norm")
            value = graph.op("Add", value, mlp(graph, normed, sizes.width, sizes.hidden))
    with graph.scope("head"):
        first = graph.op("Gather", layer_norm(graph, value, sizes.width), graph.constant(0), axis=1)
        logits = linear(graph, first, (sizes.width, sizes.classes), "classes")
    graph.output(logits, "logits", "float32", (sizes.batch, sizes.classes))
    return graph.model()


def inputs(sizes: ViT) -> tuple[Input, ...]:
    """What to run it with."""
    return (image_input("image", sizes.batch, 3, sizes.image),)


FAMILY = Family(
    "image classifier of patches",
    build,
    inputs,
    (
        Preset("vit_b16", True, ViT(), ({"batch": 1}, {"batch": 3})),
        Preset("vit_small", False, ViT(2, 32, 4, 64, 8, 32, 10), ({"batch": 1}, {"batch": 3})),
    ),
)
