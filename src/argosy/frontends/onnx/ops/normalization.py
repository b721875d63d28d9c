"""Normalisations, composed of reductions and formulas; short floats are computed in float32 and rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.frontends.onnx.checks import check_channels
from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.dim import equal, floordiv
from argosy.ir.dtype import FLOAT32, FLOAT64, DType
from argosy.ir.formula import Expr
from argosy.ir.module import Value
from argosy.ops.pooling import Pool
from argosy.ops.reduce import Reduce
from argosy.ops.shapes import normalize_axis, product
from argosy.ops.view import Reshape, Unsqueeze


@dataclass(frozen=True, slots=True)
class Moments:
    """`x` in its compute type, its mean and its (population) variance, the reduced axes kept as 1."""

    x: Value
    mean: Value
    variance: Value


def mean_over(node: Node, x: Value, axes: Sequence[int]) -> Value:
    """The mean over `axes`, kept as 1."""
    return node.add(Reduce("mean", tuple(axes)), x)


def moments_of(node: Node, x: Value, axes: Sequence[int]) -> Moments:
    """The moments over `axes`."""
    wide = node.builder.convert(x, x.dtype.compute)
    mean = mean_over(node, wide, axes)
    squares = node.pointwise(lambda x, m: (x - m) * (x - m), wide, mean)
    return Moments(wide, mean, mean_over(node, squares, axes))


def standardized(
    node: Node, moments: Moments, epsilon: float, scale: Value, bias: Value | None, result: DType
) -> Value:
    """`(x - mean) * (scale / sqrt(variance + epsilon)) + bias`, rounded once to `result`."""
    wide = moments.x.dtype

    def formula(x: Expr, mean: Expr, variance: Expr, scale: Expr, *bias: Expr) -> Expr:
        standard = (x - mean) * (scale / (variance + epsilon).sqrt())
        moved = standard + bias[0] if bias else standard
        return moved if result is wide else moved.convert(result)

    return node.pointwise(formula, moments.x, moments.mean, moments.variance, *_parameters(node, wide, scale, bias))


def normalized(
    node: Node, moments: Moments, epsilon: float, scale: Value, bias: Value | None, result: DType
) -> tuple[Value, Value]:
    """Like `standardized`, for a scale larger than the moments; also gives 1 / sqrt(variance + epsilon)."""
    wide = moments.x.dtype
    inverse = node.pointwise(lambda v: 1.0 / (v + epsilon).sqrt(), moments.variance)

    def formula(x: Expr, mean: Expr, inverse: Expr, scale: Expr, *bias: Expr) -> Expr:
        standard = (x - mean) * inverse * scale
        moved = standard + bias[0] if bias else standard
        return moved if result is wide else moved.convert(result)

    return node.pointwise(formula, moments.x, moments.mean, inverse, *_parameters(node, wide, scale, bias)), inverse


def _parameters(node: Node, wide: DType, *given: Value | None) -> list[Value]:
    """The given ones among a scale and a bias, in the compute type; they must be floats."""
    present = [value for value in given if value is not None]
    for value in present:
        if not value.dtype.is_float:
            node.fail(f"a scale or bias has type {value.dtype}, expected a float type")
    return [node.builder.convert(value, wide) for value in present]


def by_channel(node: Node, parameter: Value, rank: int) -> Value:
    """A parameter [C] as [C, 1, …], to stand at axis 1 of a tensor of `rank`."""
    return node.add(Unsqueeze(tuple(range(1, rank - 1))), parameter) if rank > 2 else parameter


def _batch_normalization(node: Node, *, training: bool, spatial: bool = True) -> Sequence[Value | None]:
    x, scale, bias, mean, variance = (node.input(index) for index in range(5))
    epsilon, momentum = node.attr_float("epsilon", 1e-5), node.attr_float("momentum", 0.9)
    if spatial:
        check_channels(node, x, {"scale": scale, "B": bias, "mean": mean, "var": variance})
    axes = tuple(axis for axis in range(x.rank) if axis != 1) if spatial else (0,)

    def placed(parameter: Value) -> Value:
        return by_channel(node, parameter, x.rank) if spatial else parameter

    if not training:
        wide = x.dtype.compute
        given = Moments(
            node.builder.convert(x, wide),
            *(node.builder.convert(placed(value), wide) for value in (mean, variance)),
        )
        return [standardized(node, given, epsilon, placed(scale), placed(bias), x.dtype)]
    moments = moments_of(node, x, axes)
    y = standardized(node, moments, epsilon, placed(scale), placed(bias), x.dtype)
    saved = [node.add(Reshape(mean.shape, allow_zero=True), value) for value in (moments.mean, moments.variance)]

    def running(old: Value, new: Value) -> Value:
        wide = new.dtype
        kept = node.pointwise(lambda o, n: o * momentum + n * (1.0 - momentum), node.builder.convert(old, wide), new)
        return node.builder.convert(kept, old.dtype)

    return [
        y,
        running(mean, saved[0]),
        running(variance, saved[1]),
        *(node.builder.convert(v, mean.dtype) for v in saved),
    ]


@onnx_op("BatchNormalization", since=14)
def BatchNormalization(node: Node) -> Sequence[Value | None]:
    """By the given mean and variance; in training mode by those of the batch, the running ones being results."""
    return _batch_normalization(node, training=node.attr_flag("training_mode"))[: node.output_count]


@onnx_op("BatchNormalization")
def BatchNormalization_1(node: Node) -> Sequence[Value | None]:
    """Opsets 1 to 13: training where more than Y is asked for (and `is_test` is not set).

    With `spatial` 0 every place of an image has parameters of its own.
    """
    node.ignore("consumed_inputs")
    training = not node.attr_flag("is_test") and any(node.wants(index) for index in range(1, node.output_count))
    spatial = node.attr_flag("spatial", default=True)
    return _batch_normalization(node, training=training, spatial=spatial)[: node.output_count]


@onnx_op("InstanceNormalization")
def InstanceNormalization(node: Node) -> Value:
    """By the mean and variance of each image and channel."""
    node.ignore("consumed_inputs")
    x = node.input(0)
    if any(node.input(index).dtype is not x.dtype for index in (1, 2)):
        node.fail(f"scale and bias must have the type of the input, {x.dtype}")
    check_channels(node, x, {"scale": node.input(1), "B": node.input(2)})
    moments = moments_of(node, x, range(2, x.rank))
    scale, bias = (by_channel(node, node.input(index), x.rank) for index in (1, 2))
    return standardized(node, moments, node.attr_float("epsilon", 1e-5), scale, bias, x.dtype)


def stashed(node: Node, x: Value) -> Value:
    """`x` in the type that statistics are computed in: `stash_type`, but not below that of `x`."""
    return node.builder.convert(x, FLOAT64 if x.dtype is FLOAT64 else _stash_type(node, x).compute)


def _stash_type(node: Node, x: Value) -> DType:
    """The type of the statistics: float32 by default, that of `x` where the attribute is 0, "undefined"."""
    return node.attr_dtype("stash_type", FLOAT32) if node.attr_int("stash_type", 1) else x.dtype


@onnx_op("LayerNormalization", since=17)
def LayerNormalization(node: Node) -> Sequence[Value]:
    """By the mean and variance over the axes from `axis` on; also gives these (as 1 / deviation) in the stash type."""
    x = node.input(0)
    axes = range(normalize_axis(node.attr_int("axis", -1), x.rank), x.rank)
    moments = moments_of(node, stashed(node, x), axes)
    epsilon = node.attr_float("epsilon", 1e-5)
    y, inverse = normalized(node, moments, epsilon, node.input(1), node.optional(2), x.dtype)
    stash = _stash_type(node, x)
    results = (y, *(node.builder.convert(value, stash) for value in (moments.mean, inverse)))
    return results[: node.output_count]


@onnx_op("GroupNormalization", since=21)
def GroupNormalization(node: Node) -> Value:
    """By the mean and variance of each group of channels; scale and bias for each channel."""
    x = node.input(0)
    epsilon = node.attr_float("epsilon", 1e-5)
    standard = standardized_by_group(node, stashed(node, x), node.attr_int("num_groups"), epsilon)
    parameters = [node.builder.convert(by_channel(node, node.input(index), x.rank), standard.dtype) for index in (1, 2)]
    return node.builder.convert(node.pointwise(lambda x, s, b: x * s + b, standard, *parameters), x.dtype)


@onnx_op("GroupNormalization", since=18)
def GroupNormalization_18(node: Node) -> Value:
    """The same with scale and bias for each group; some models of these opsets have them for each channel."""
    x, groups, size = node.input(0), node.attr_int("num_groups"), node.input(1).shape[0]
    if x.rank > 1 and equal(size, groups) is False and equal(size, x.shape[1]):
        return GroupNormalization(node)
    moments = moments_of(node, _into_groups(node, x, groups), (2,))
    scale, bias = (node.add(Unsqueeze((1,)), node.input(index)) for index in (1, 2))
    standard = standardized(node, moments, node.attr_float("epsilon", 1e-5), scale, bias, x.dtype)
    return node.add(Reshape(x.shape, allow_zero=True), standard)


def standardized_by_group(node: Node, x: Value, groups: int, epsilon: float) -> Value:
    """`(x - mean) / sqrt(variance + epsilon)` by the moments of each group of channels, in the compute type of `x`."""
    moments = moments_of(node, _into_groups(node, x, groups), (2,))
    wide = moments.x.dtype
    standard = standardized(node, moments, epsilon, node.constant(1.0, wide), None, wide)
    return node.add(Reshape(x.shape, allow_zero=True), standard)


def _into_groups(node: Node, x: Value, groups: int) -> Value:
    """`x [N, C, …]` as `[N, groups, rest]`."""
    if x.rank < 2:
        node.fail(f"the input is {x.type}, expected [N, C, ...]")
    channels = x.shape[1]
    if groups < 1 or (isinstance(channels, int) and channels % groups):
        node.fail(f"{channels} channels do not divide into {groups} groups")
    return node.add(Reshape((x.shape[0], groups, floordiv(product(x.shape[1:]), groups)), allow_zero=True), x)


@onnx_op("RMSNormalization", since=23)
def RMSNormalization(node: Node) -> Value:
    """`x / sqrt(mean(x²) + epsilon) * scale` over the axes from `axis` on, in the type of the scale."""
    x, scale = node.input(0), node.input(1)
    axes = range(normalize_axis(node.attr_int("axis", -1), x.rank), x.rank)
    return root_mean_square(node, stashed(node, x), axes, node.attr_float("epsilon", 1e-5), scale, scale.dtype)[0]


def root_mean_square(
    node: Node, x: Value, axes: Sequence[int], epsilon: float, scale: Value, result: DType
) -> tuple[Value, Value]:
    """`x / sqrt(mean(x²) + epsilon) * scale` rounded once to `result`, and 1 / sqrt(mean(x²) + epsilon)."""
    mean = mean_over(node, node.pointwise(lambda x: x * x, x), axes)
    inverse = node.pointwise(lambda m: 1.0 / (m + epsilon).sqrt(), mean)
    scaled = node.pointwise(lambda x, i, s: x * i * s, x, inverse, node.builder.convert(scale, x.dtype))
    return node.builder.convert(scaled, result), inverse


@onnx_op("LRN")
def LRN(node: Node) -> Value:
    """`x / (bias + alpha/size * s)^beta`, s being the sum of squares over `size` neighbouring channels."""
    x = node.input(0)
    if x.rank < 2:
        node.fail(f"the input is {x.type}, expected [N, C, ...]")
    size = node.attr_int("size")
    alpha, beta, bias = node.attr_float("alpha", 1e-4), node.attr_float("beta", 0.75), node.attr_float("bias", 1.0)
    wide = node.builder.convert(x, x.dtype.compute)
    # The average over a window of channels, zeros beyond the ends included, is s / size.
    image = node.add(Reshape((x.shape[0], 1, x.shape[1], product(x.shape[2:])), allow_zero=True), wide)
    before = (size - 1) // 2
    pads = (before, 0, size - 1 - before, 0)
    window = Pool("average", (size, 1), (1, 1), pads, (1, 1), count_include_pad=True)
    average = node.add(window, node.pointwise(lambda x: x * x, image))
    average = node.add(Reshape(x.shape, allow_zero=True), average)
    scaled = node.pointwise(lambda x, a: x / (a * alpha + bias).pow(beta), wide, average)
    return node.builder.convert(scaled, x.dtype)


@onnx_op("LpNormalization")
def LpNormalization(node: Node) -> Value:
    """`x` divided by its p-norm along an axis; 0 where the norm is 0."""
    x = node.input(0)
    axis, p = node.attr_int("axis", -1), node.attr_int("p", 2)
    if p not in (1, 2):
        node.fail(f"attribute 'p' is {p}, expected 1 or 2")
    wide = node.builder.convert(x, x.dtype.compute)
    powers = node.pointwise("abs", wide) if p == 1 else node.pointwise(lambda x: x * x, wide)
    norm = node.add(Reduce("sum", (axis,)), powers)
    norm = node.pointwise("sqrt", norm) if p == 2 else norm
    return node.builder.convert(node.pointwise(lambda x, n: (n == 0.0).select(0.0, x / n), wide, norm), x.dtype)


@onnx_op("MeanVarianceNormalization", since=9)
def MeanVarianceNormalization(node: Node) -> Value:
    """`(x - mean) / (deviation + 1e-9)` over `axes`."""
    x = node.input(0)
    moments = moments_of(node, x, node.attr_ints("axes", (0, 2, 3)))
    standard = node.pointwise(lambda x, m, v: (x - m) / (v.sqrt() + 1e-9), moments.x, moments.mean, moments.variance)
    return node.builder.convert(standard, x.dtype)
