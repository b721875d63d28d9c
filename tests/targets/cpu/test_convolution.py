"""Convolutions on the CPU agree with the interpreter: windows, groups, what follows, nets of blocked images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import argosy
from argosy.host_cpu import cpu_features
from argosy.ir import Builder, Env, Module, Program, TensorType, Value
from argosy.ir.dtype import FLOAT32
from argosy.ir.interpreter import Interpreter
from argosy.ops.convolution import Conv, ConvTranspose
from argosy.ops.joining import Concat
from argosy.ops.pooling import Pool
from argosy.ops.reduce import Reduce
from argosy.ops.slicing import Slice
from argosy.ops.view import Reshape, Transpose
from argosy.targets.cpu.arch import ARCHS
from tests.targets.cpu.against_ref import agree, check
from tests.targets.cpu.loops import needs_compiler

pytestmark = needs_compiler

RANDOM = np.random.default_rng(3)

CASES: list[tuple[str, Sequence[int], Sequence[int], dict[str, Any]]] = [
    ("1x1", (1, 32, 14, 14), (64, 32, 1, 1), {}),
    ("3x3", (2, 64, 13, 17), (48, 64, 3, 3), {"pads": 1}),
    ("stem", (1, 3, 32, 32), (20, 3, 7, 7), {"pads": 3, "strides": 2}),
    ("short lines", (1, 24, 7, 7), (40, 24, 3, 3), {"pads": 1}),
    ("uneven", (1, 24, 9, 7), (33, 24, 3, 2), {"pads": (0, 1, 2, 0), "dilations": (2, 1), "strides": (1, 2)}),
    ("1-d", (2, 5, 30), (7, 5, 4), {"pads": (1, 2)}),
    ("3-d", (1, 17, 5, 6, 7), (18, 17, 3, 2, 3), {"pads": (1, 0, 1, 1, 1, 1), "strides": (1, 2, 1)}),
    ("same", (1, 16, 20, 21), (16, 16, 3, 3), {"auto_pad": "same_upper", "strides": 2}),
    ("planar, no halo", (2, 1, 20, 37), (20, 1, 3, 5), {"strides": (2, 1)}),
    ("planar, same", (1, 4, 19, 21), (24, 4, 3, 4), {"auto_pad": "same_lower", "strides": (1, 2)}),
    ("planar, 1-d", (2, 1, 400), (18, 1, 25), {"pads": (12, 3), "strides": 5}),
    ("planar, 3-d", (1, 2, 6, 7, 19), (17, 2, 2, 3, 3), {"pads": (1, 0, 1, 0, 1, 1), "dilations": (1, 2, 1)}),
    ("few channels, dilated", (1, 3, 12, 40), (16, 3, 3, 3), {"pads": 2, "dilations": 2}),
    ("one channel", (1, 3, 5, 5), (1, 3, 3, 3), {}),
    ("a plane of whole pages", (1, 32, 62, 62), (32, 32, 3, 3), {"pads": 1}),
    ("depthwise", (1, 32, 14, 14), (32, 1, 3, 3), {"pads": 1, "group": 32}),
    ("depthwise, strided", (2, 40, 15, 13), (40, 1, 5, 5), {"pads": 2, "group": 40, "strides": 2}),
    ("depthwise, dilated", (1, 24, 15, 30), (24, 1, 3, 3), {"pads": 1, "group": 24, "dilations": 2}),
    ("depthwise, 1-d", (1, 24, 30), (24, 1, 7), {"pads": 3, "group": 24}),
    ("depthwise, 3-d", (1, 24, 5, 8, 30), (24, 1, 3, 3, 3), {"pads": 1, "group": 24}),
    ("depthwise, wide", (1, 20, 4, 30), (20, 1, 1, 11), {"group": 20}),
    ("two for each", (1, 48, 14, 14), (96, 1, 3, 3), {"pads": 1, "group": 48}),
    ("groups of 16", (1, 64, 14, 14), (128, 16, 3, 3), {"pads": 1, "group": 4}),
    ("groups of 4", (1, 64, 14, 14), (64, 4, 3, 3), {"pads": 1, "group": 16}),
    ("groups across blocks", (1, 136, 9, 9), (136, 34, 1, 1), {"group": 4}),
    ("groups of 10", (1, 20, 14, 14), (30, 10, 3, 3), {"group": 2}),
    ("an image beyond the second cache", (1, 64, 60, 90), (40, 64, 3, 3), {"strides": 2}),
    ("weights beyond the second cache", (1, 260, 6, 6), (272, 260, 3, 3), {"pads": 1, "strides": 2}),
    ("no channels", (1, 0, 7, 9), (16, 0, 3, 3), {"pads": 1}),
    ("no images", (0, 16, 8, 8), (16, 16, 3, 3), {}),
]
SIZES = ("batch", "", "height", "width", "depth")


def convolution(rank: int, fields: dict[str, Any]) -> Conv:
    """The op; numbers stand for all axes."""

    def each(name: str, default: int, count: int) -> tuple[int, ...]:
        value = fields.get(name, default)
        return tuple(value) if isinstance(value, tuple) else (value,) * count

    spatial = rank - 2
    return Conv(
        each("strides", 1, spatial), each("pads", 0, 2 * spatial), each("dilations", 1, spatial),
        fields.get("group", 1), fields.get("auto_pad", "explicit"),
    )  # fmt: skip


def weights(shape: Sequence[int]) -> Any:
    """Random weights that keep the size of what they are applied to."""
    return (RANDOM.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def image(shape: Sequence[int]) -> Any:
    """A random image."""
    return RANDOM.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("note", "x", "weight", "fields"), CASES, ids=[case[0] for case in CASES])
@pytest.mark.parametrize("symbolic", [False, True], ids=["bound", "symbolic"])
def test_windows(note: str, x: Sequence[int], weight: Sequence[int], fields: dict[str, Any], symbolic: bool) -> None:
    build = Builder()
    dims = [SIZES[axis] if symbolic and axis != 1 else size for axis, size in enumerate(x)]
    source = build.tensor_parameter("x", "float32", dims)
    bias = build.constant(image(weight[:1]))
    result = build.add(convolution(len(x), fields), source, build.constant(weights(weight)), bias)
    module = build.module({"y": build.pointwise(lambda y: y.max(0.0) * 1.5, result)})
    symbols = {SIZES[axis]: size for axis, size in enumerate(x) if axis != 1} if symbolic else {}
    check(module, [([image(x)], symbols)], note)


LEVELS = [level.name for level in ARCHS.values() if level.system == "linux" and level.features <= cpu_features()]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("size", [(7, 9), (2, 3, 7)], ids=str)
def test_pixels_of_short_lines(level: str, size: tuple[int, ...]) -> None:
    """Windows of one pixel over short lines, with what is added, into an image with a halo: tiles of several lines."""
    build = Builder()
    rank, window = len(size) + 2, (1,) * len(size)
    x = build.tensor_parameter("x", "float32", [2, 40, *size])
    rest = build.tensor_parameter("rest", "float32", [2, 72, *size])
    first = build.add(
        convolution(rank, {}), x, build.constant(weights((72, 40, *window))), build.constant(image((72,)))
    )
    added = build.pointwise(lambda y, r: (y + r).max(0.0), first, rest)
    wide = tuple(3 for _ in size)
    module = build.module(
        {"y": build.add(convolution(rank, {"pads": 1}), added, build.constant(weights((20, 72, *wide))))}
    )
    arguments = [image((2, 40, *size)), image((2, 72, *size))]
    artifact = argosy.compile(Program(module), targets=(level,), strict=True)
    (expected,) = Interpreter(module).run(arguments, Env())
    feeds = dict(zip(module.parameter_names, arguments, strict=True))
    agree(argosy.Session(artifact, device="cpu").run(feeds)["y"], expected, level)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("length", [*range(60, 84, 3), 145, 161])
def test_lines_end_anywhere(level: str, length: int) -> None:
    """The last vector of a line ends with it, also where it is all of a tile."""
    build = Builder()
    x = build.tensor_parameter("x", "float32", [2, 1, 5 * length])
    given = {"pads": (12, 8), "strides": 5}
    module = build.module({"y": build.add(convolution(3, given), x, build.constant(weights((18, 1, 25))))})
    argument = image((2, 1, 5 * length))
    artifact = argosy.compile(Program(module), targets=(level,), strict=True)
    (expected,) = Interpreter(module).run([argument], Env())
    assert expected.shape[-1] == length
    agree(argosy.Session(artifact, device="cpu").run({"x": argument})["y"], expected, level)


@pytest.mark.parametrize("accuracy", ["exact", "standard", "relaxed"])
@pytest.mark.parametrize("size", [(30, 33), (12, 12), (13, 15), (7, 7), (2, 3)], ids=str)
def test_accuracies(accuracy: str, size: tuple[int, int]) -> None:
    """Direct sums, F(2 x 2) and F(4 x 4), with tiles that hang over the image."""
    build = Builder()
    x = build.tensor_parameter("x", "float32", [2, 24, *size])
    rest = build.tensor_parameter("rest", "float32", [2, 100, *size])
    result = build.add(convolution(4, {"pads": 1}), x, build.constant(weights((100, 24, 3, 3))))
    module = build.module({"y": build.pointwise(lambda y, r: (y + r).max(0.0), result, rest)})
    arguments = [image((2, 24, *size)), image((2, 100, *size))]
    artifact = argosy.compile(Program(module), targets=("cpu",), strict=True, accuracy=accuracy)
    (expected,) = Interpreter(module).run(arguments, Env())
    limit = 1e-4 if accuracy == "relaxed" else 1e-5
    for threads in (1, 3):  # which share the tiles, or the channels of the same tiles
        session = argosy.Session(artifact, device="cpu", threads=threads)
        found = session.run(dict(zip(("x", "rest"), arguments, strict=True)))
        np.testing.assert_allclose(found["y"], expected, limit, limit)


@pytest.mark.parametrize("symbolic", [False, True], ids=["bound", "symbolic"])
def test_images_of_few_channels(symbolic: bool) -> None:
    """As a program gets them, turned from channels last, made by a convolution, read twice."""
    build = Builder()
    height, width = ("height", "width") if symbolic else (18, 21)
    last = build.tensor_parameter("last", "float32", ["batch" if symbolic else 2, height, width, 3])
    first = build.add(Transpose((0, 3, 1, 2)), last)
    stem = build.add(convolution(4, {"pads": 1, "strides": 2}), first, build.constant(weights((20, 3, 3, 3))))
    wide = build.add(convolution(4, {"pads": 2}), first, build.constant(weights((33, 3, 5, 5))))
    few = build.add(convolution(4, {}), stem, build.constant(weights((4, 20, 1, 1))))
    again = build.add(convolution(4, {"pads": 1}), few, build.constant(weights((16, 4, 3, 3))))
    module = build.module({"wide": wide, "again": build.pointwise(lambda v: v.max(0.0), again)})
    symbols = {"batch": 2, "height": 18, "width": 21} if symbolic else {}
    check(module, [([image((2, 18, 21, 3))], symbols)])


@pytest.mark.parametrize("symbolic", [False, True], ids=["bound", "symbolic"])
@pytest.mark.parametrize(
    ("channels", "groups", "spatial"), [(24, 3, (9, 8)), (136, 4, (7, 6)), (40, 5, (11,)), (18, 2, (3, 4, 5))]
)
def test_channels_in_another_order(channels: int, groups: int, spatial: Sequence[int], *, symbolic: bool) -> None:
    """A channel shuffle and pieces of the channels between convolutions and a pooling."""
    build, rank = Builder(), len(spatial)
    names = SIZES[2 : 2 + rank]
    dims: list[int | str] = ["batch", 20, *names] if symbolic else [2, 20, *spatial]
    one = (1,) * rank
    x = build.tensor_parameter("x", "float32", dims)
    image_of = build.add(convolution(rank + 2, {}), x, build.constant(weights((channels, 20, *one))))
    batch, _, *sizes = image_of.shape
    parts = build.add(Reshape((batch, groups, channels // groups, *sizes)), image_of)
    turned = build.add(Transpose((0, 2, 1, *range(3, 3 + rank))), build.pointwise(lambda v: v.max(0.0), parts))
    shuffled = build.add(Reshape((batch, channels, *sizes)), turned)
    fields = {"pads": 1, "group": channels}
    deep = build.add(convolution(rank + 2, fields), shuffled, build.constant(weights((channels, 1, *(3,) * rank))))
    part = build.add(Slice((5,), (channels - 2,), (1,)), image_of)
    whole = build.add(convolution(rank + 2, {}), part, build.constant(weights((17, channels - 7, *one))))
    pool = Pool("max", (2,) * rank, one, (0,) * 2 * rank, one)
    module = build.module({"deep": deep, "whole": whole, "pooled": build.add(pool, part)})
    symbols = {"batch": 2, **dict(zip(names, spatial, strict=True))} if symbolic else {}
    check(module, [([image((2, 20, *spatial))], symbols)])


SCALED: list[tuple[Sequence[int], Sequence[int], dict[str, Any]]] = [
    ((1, 32, 14, 15), (48, 32, 3, 3), {"pads": 1}),
    ((2, 24, 9, 9), (40, 24, 1, 1), {"strides": 2}),
    ((1, 40, 9, 9), (40, 1, 3, 3), {"pads": 1, "group": 40}),
    ((1, 24, 9, 9), (36, 8, 3, 3), {"group": 3}),
    ((1, 5, 30), (7, 5, 4), {}),
    ((1, 5, 4, 6, 7), (6, 5, 2, 2, 2), {}),
]


@pytest.mark.parametrize(("x", "weight", "fields"), SCALED, ids=[str(case[1:]) for case in SCALED])
@pytest.mark.parametrize("bias", [False, True], ids=["bare", "with bias"])
def test_scales_behind_a_convolution(
    x: Sequence[int], weight: Sequence[int], fields: dict[str, Any], *, bias: bool
) -> None:
    """A normalisation, then a scale and a shift of all channels."""
    build = Builder()
    source = build.tensor_parameter("x", "float32", [SIZES[0], *x[1:]])
    operands = [build.constant(image(weight[:1]))] if bias else []
    result = build.add(convolution(len(x), fields), source, build.constant(weights(weight)), *operands)
    numbers = [
        build.constant(array.reshape(-1, *(1,) * (len(x) - 2)))
        for array in (image(weight[:1]), np.abs(image(weight[:1])) + 0.5, image(weight[:1]))
    ]
    normal = build.pointwise(lambda v, m, s, t: (v - m) * s + t, result, *numbers)
    moved = build.pointwise(lambda v: (1.5 - v) / 3.0, normal)
    check(build.module({"y": build.pointwise(lambda v: v.max(0.0), moved)}), [([image(x)], {SIZES[0]: x[0]})])


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float64"])
def test_element_types(kind: str) -> None:
    build = Builder()
    x = build.tensor_parameter("x", kind, [1, 8, 9, 9])
    numpy_type = x.dtype.numpy
    result = build.add(convolution(4, {"pads": 1}), x, build.constant(weights((12, 8, 3, 3)).astype(numpy_type)))
    check(build.module({"y": result}), [([image((1, 8, 9, 9)).astype(numpy_type)], {})], kind)


def net(symbolic: bool) -> Module:
    """Convolutions, a residual, joins, pooling, gates: values that stay blocked from one op to the next."""
    build = Builder()
    height, width = ("height", "width") if symbolic else (17, 15)
    value: Value = build.tensor_parameter("x", "float32", ["batch" if symbolic else 2, 3, height, width])

    def conv(value: Value, channels: int, outputs: int, **fields: Any) -> Value:
        kernel = fields.pop("kernel", 3)
        shape = (outputs, channels // fields.get("group", 1), kernel, kernel)
        fields.setdefault("pads", kernel // 2)
        return build.add(
            convolution(4, fields), value, build.constant(weights(shape)), build.constant(image((outputs,)))
        )

    def relu(value: Value) -> Value:
        return build.pointwise(lambda v: v.max(0.0), value)

    stem = relu(conv(value, 3, 32, kernel=5, strides=2))
    pooled = build.add(Pool("max", (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)), stem)
    branch = relu(conv(relu(conv(pooled, 32, 48)), 48, 32, kernel=1))
    added = build.pointwise(lambda a, b: (a + b).max(0.0), branch, pooled)
    means = build.add(Reduce("mean", (2, 3)), added)
    gate = build.pointwise(lambda v: 1.0 / ((-v).exp() + 1.0), conv(means, 32, 32, kernel=1))
    gated = build.pointwise(lambda a, g: a * g, added, gate)
    deep = conv(gated, 32, 32, group=32)
    joined = build.add(Concat(1), deep, added, conv(added, 32, 20, kernel=1))
    average = build.add(Pool("average", (2, 2), (2, 2), (0, 0, 1, 1), (1, 1), ceil_mode=True), joined)
    last = conv(average, 84, 24, strides=2)
    return build.module({"y": last, "added": added, "z": build.add(Reduce("max", (2, 3), keep_dims=False), last)})


@pytest.mark.parametrize("symbolic", [False, True], ids=["bound", "symbolic"])
def test_nets_of_blocked_images(symbolic: bool) -> None:
    cases: list[tuple[list[Any], dict[str, int]]] = [([image((2, 3, 17, 15))], {})]
    if symbolic:
        shapes = ((2, 17, 15), (1, 33, 40), (3, 8, 5))
        cases = [
            ([image((batch, 3, height, width))], {"batch": batch, "height": height, "width": width})
            for batch, height, width in shapes
        ]
    check(net(symbolic), cases)


@pytest.mark.parametrize("places", [slice(0, 1), slice(2, 3), slice(-1, None), slice(1, 4)])
@pytest.mark.parametrize("axis", [2, 3])
def test_a_part_of_an_image_between_convolutions(axis: int, places: slice) -> None:
    """Also one place of an axis, which leaves nothing of the axis to walk along."""
    shape = (1, 24, 6, 7)
    start, stop, _ = places.indices(shape[axis])
    builder = Builder()
    x = builder.parameter("x", TensorType(FLOAT32, shape))
    image = builder.add(convolution(4, {}), x, builder.constant(weights((32, 24, 1, 1))))
    part = builder.pointwise("abs", builder.add(Slice((start,), (stop,), (axis,)), image))
    weight = builder.constant(weights((40, 32, 1, 1)))
    y, z = builder.add(convolution(4, {}), part, weight), builder.add(convolution(4, {}), image, weight)
    check(builder.module({"part": part, "y": y, "z": z}), [([RANDOM.standard_normal(shape).astype(np.float32)], {})])


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_levels(level: str) -> None:
    module = net(symbolic=False)
    x = image((2, 3, 17, 15))
    try:
        session = argosy.Session(argosy.compile(Program(module), targets=(level,), strict=True), device="cpu")
    except argosy.errors.ArgosyError as refusal:
        pytest.skip(str(refusal))
    found = session.run({"x": x})
    for name, expected in zip(module.result_names, Interpreter(module).run([x], Env()), strict=True):
        agree(found[name], np.asarray(expected), f"{level}, {name}")


TRANSPOSED: list[tuple[Sequence[int], Sequence[int], ConvTranspose]] = [
    ((1, 24, 10, 12), (24, 24, 2, 2), ConvTranspose((2, 2), (0,) * 4, (1, 1))),
    ((2, 20, 7, 9), (20, 33, 3, 3), ConvTranspose((2, 2), (1, 1, 1, 1), (1, 1), output_padding=(1, 1))),
    ((1, 32, 25), (32, 16, 16), ConvTranspose((8,), (4, 4), (1,))),
    ((1, 5, 6, 7), (5, 4, 3, 2), ConvTranspose((1, 1), (1, 0, 0, 1), (2, 1))),
    ((1, 5, 6, 7), (5, 4, 1, 1), ConvTranspose((2, 3), (0,) * 4, (1, 1))),
    ((1, 3, 4, 5, 3), (3, 2, 2, 2, 2), ConvTranspose((1, 2, 1), (0,) * 6, (1, 1, 1))),
    ((1, 6, 6, 7), (6, 4, 4, 4), ConvTranspose((2, 2), (0,) * 4, (1, 1), auto_pad="same_upper")),
    ((2, 6, 9), (6, 4, 4), ConvTranspose((3,), (1, 0), (2,), group=2)),
    ((1, 6, 6, 7), (6, 4, 3, 3), ConvTranspose((5, 4), (0,) * 4, (1, 1))),
]


@pytest.mark.parametrize(("x", "weight", "op"), TRANSPOSED, ids=[str(case[1:]) for case in TRANSPOSED])
@pytest.mark.parametrize("symbolic", [False, True], ids=["bound", "symbolic"])
def test_transposed(x: Sequence[int], weight: Sequence[int], op: ConvTranspose, symbolic: bool) -> None:
    build = Builder()
    dims = [SIZES[axis] if symbolic and axis != 1 else size for axis, size in enumerate(x)]
    outputs = weight[1] * op.group
    result = build.add(
        op, build.tensor_parameter("x", "float32", dims), build.constant(weights(weight)),
        build.constant(image((outputs,))),
    )  # fmt: skip
    module = build.module({"y": build.pointwise(lambda y: y.max(0.0), result)})
    check(module, [([image(x)], {SIZES[axis]: size for axis, size in enumerate(x) if axis != 1} if symbolic else {})])
