"""Random numbers. Without a `seed` every session draws the same ones: results can be repeated."""

from __future__ import annotations

import numpy as np

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.dtype import BOOL, FLOAT32, INT32, INT64, DType
from argosy.ir.module import Value
from argosy.ir.types import Dims
from argosy.ops.dim_values import DimValues
from argosy.ops.random import Random
from argosy.ops.reduce import Reduce, Softmax
from argosy.ops.scan import Cumulative
from argosy.ops.view import Unsqueeze


def draw(
    node: Node,
    distribution: str,
    dtype: DType,
    parameters: tuple[float, float],
    dims: Dims | None,
    like: Value | None = None,
    seed: int | None = None,
) -> Value:
    """Draws of one node: its number among those of the program and its seed's bits make up the generator's key."""
    if seed is None:
        seed = int(np.float32(node.attr_float("seed", 0.0)).view(np.uint32))
    index = int(node.builder.namer.unique("random_").removeprefix("random_"))
    # Numbers are drawn in float32 at least, and rounded once.
    op = Random(distribution, dtype, *parameters, seed, index, dims)
    return node.add(op) if like is None else node.add(op, like)


def _parameters(node: Node) -> tuple[str, tuple[float, float]]:
    if node.proto.op_type.startswith("RandomNormal"):
        return "normal", (node.attr_float("mean", 0.0), node.attr_float("scale", 1.0))
    return "uniform", (node.attr_float("low", 0.0), node.attr_float("high", 1.0))


@onnx_op("RandomNormal", "RandomUniform")
def random(node: Node) -> Value:
    """Of a given shape."""
    distribution, parameters = _parameters(node)
    return draw(node, distribution, node.attr_dtype("dtype", FLOAT32), parameters, node.attr_ints("shape"))


@onnx_op("RandomNormalLike", "RandomUniformLike")
def random_like(node: Node) -> Value:
    """Of the shape, and where it is not given the type, of the input."""
    like = node.input(0)
    distribution, parameters = _parameters(node)
    return draw(node, distribution, node.attr_dtype("dtype", like.dtype), parameters, like.tensor.dims, like)


@onnx_op("Bernoulli", since=15)
def Bernoulli(node: Node) -> Value:
    """1 with the probability that the input gives, else 0."""
    x = node.input(0)
    drawn = draw(node, "uniform", x.dtype.compute, (0.0, 1.0), x.tensor.dims, x)
    target = node.attr_dtype("dtype", x.dtype)
    hit = node.pointwise("lt", drawn, node.builder.convert(x, x.dtype.compute))
    return hit if target is BOOL else node.builder.convert(hit, target)


@onnx_op("Multinomial", since=7)
def Multinomial(node: Node) -> Value:
    """Classes by their unnormalised log-probabilities [batch, classes]: how many partial sums a draw passes."""
    x = node.input(0)
    wide = x.dtype.compute
    shares = node.add(Softmax(-1), node.builder.convert(x, wide))
    sums = node.add(Cumulative("sum", exclusive=False, reverse=False), shares, node.constant(1, INT64))
    size = (x.shape[0], node.attr_int("sample_size", 1))
    drawn = node.add(Unsqueeze((2,)), draw(node, "uniform", wide, (0.0, 1.0), size))
    passed = node.pointwise(lambda u, s: (s <= u).convert(INT64), drawn, node.add(Unsqueeze((1,)), sums))
    found = node.add(Reduce("sum", (2,), keep_dims=False), passed)
    # The last sum may be a little below 1.
    last = node.constant(-1, INT64)
    count = node.pointwise("add", node.add(DimValues((x.shape[1],), scalar=True)), last)
    return node.builder.convert(node.pointwise("min", found, count), node.attr_dtype("dtype", INT32))
