"""Generators of the ops with windows, places and steps: convolutions, pooling, resizing, signals, recurrence."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from PIL import Image

from argosy.ir import dim as dims
from argosy.ir.dim import DimLike
from argosy.ir.dtype import DTYPES
from argosy.ops.shapes import product
from tests.properties.generators.elements import FLOATS, indices_below
from tests.properties.sample import Binding, Draw, Operand, Sample, op

__all__ = ["GENERATORS"]

AUTO = ("explicit", "explicit", "same_upper", "same_lower")


def _window(draw: Draw, axes: int) -> dict[str, Any]:
    return {
        "strides": tuple(draw.one(1, 2, 3) for _ in range(axes)),
        "pads": tuple(draw.one(0, 1) for _ in range(2 * axes)),
        "dilations": tuple(draw.one(1, 1, 2) for _ in range(axes)),
    }


def _wide(draw: Draw, axes: int) -> list[DimLike]:
    """Sizes that every window drawn here fits into."""
    return [draw.size() + 5 for _ in range(axes)]


def conv(draw: Draw) -> Sample:
    axes, group = draw.one(1, 2), draw.one(1, 1, 2)
    inner, outer = draw.size(1), draw.size(1) * group
    kind, wide = draw.one(*((name, None) for name in FLOATS), ("int8", "int32"))
    x = draw.tensor(kind, [draw.size(), inner * group, *_wide(draw, axes)])
    weight = draw.tensor(kind, [outer, inner, *(draw.one(1, 2, 3) for _ in range(axes))])
    bias = draw.tensor(wide or kind, [outer]) if draw.flag() else None
    made = op("conv", **_window(draw, axes), group=group, auto_pad=draw.one(*AUTO), dtype=wide and DTYPES[wide])
    return draw.sample(made, x, weight, bias)


def conv_transpose(draw: Draw) -> Sample:
    axes, group = draw.one(1, 2), draw.one(1, 1, 2)
    inner, outer = draw.size(1), draw.size(1)
    kind = draw.one(*FLOATS)
    x = draw.tensor(kind, [draw.size(), inner * group, *_wide(draw, axes)])
    weight = draw.tensor(kind, [inner * group, outer, *(draw.one(1, 2, 3) for _ in range(axes))])
    bias = draw.tensor(kind, [outer * group]) if draw.flag() else None
    shape = draw.one((), (), tuple(draw.one(0, 1) for _ in range(axes)))
    auto = "explicit" if shape else draw.one("explicit", "same_upper", "same_lower")
    made = op("conv_transpose", **_window(draw, axes), group=group, auto_pad=auto, output_padding=shape)
    return draw.sample(made, x, weight, bias)


def pool(draw: Draw) -> Sample:
    axes, kind = draw.one(1, 2), draw.one("max", "average", "lp")
    x = draw.tensor(draw.one(*FLOATS), [draw.size(), draw.size(), *_wide(draw, axes)])
    options: dict[str, Any] = {"auto_pad": draw.one(*AUTO), "ceil_mode": draw.flag()}
    if kind == "max":
        options |= {"with_indices": draw.flag(), "column_major": draw.flag()}
    elif kind == "average":
        options["count_include_pad"] = draw.flag()
    made = op("pool", kind=kind, kernel=tuple(draw.one(2, 3) for _ in range(axes)), **_window(draw, axes), **options)
    return draw.sample(made, x)


def deform_conv(draw: Draw) -> Sample:
    group, offsets = draw.one(1, 2), draw.one(1, 2)
    inner, batch = draw.size(1) * 2, draw.size()
    height, width = _wide(draw, 2)
    kernel = (draw.one(1, 2, 3), draw.one(1, 2))
    options = _window(draw, 2)
    spatial = tuple(
        dims.floordiv(size + before + after - (taps - 1) * dilation - 1, stride) + 1
        for size, before, after, taps, dilation, stride in zip(
            (height, width), options["pads"][:2], options["pads"][2:], kernel, options["dilations"], options["strides"],
            strict=True,
        )
    )  # fmt: skip
    taps = kernel[0] * kernel[1]
    x = draw.tensor("float32", [batch, inner * group, height, width])
    weight = draw.tensor("float32", [2 * group, inner, *kernel])
    offset = draw.tensor("float32", [batch, offsets * taps * 2, *spatial])
    bias = draw.tensor("float32", [2 * group]) if draw.flag() else None
    mask = draw.tensor("float32", [batch, offsets * taps, *spatial]) if draw.flag() else None
    return draw.sample(op("deform_conv", **options, group=group, offset_group=offsets), x, weight, offset, bias, mask)


def col2im(draw: Draw) -> Sample:
    axes = draw.one(1, 2)
    image, block = _wide(draw, axes), [draw.one(1, 2) for _ in range(axes)]
    options = _window(draw, axes)
    blocks: DimLike = 1
    for axis in range(axes):
        total = image[axis] + options["pads"][axis] + options["pads"][axes + axis]
        extent = (block[axis] - 1) * options["dilations"][axis] + 1
        blocks = (dims.floordiv(total - extent, options["strides"][axis]) + 1) * blocks
    columns = draw.tensor(draw.one(*FLOATS), [draw.size(), draw.size(1) * product(tuple(block)), blocks])
    return draw.sample(op("col2im", **options), columns, draw.numbers(*image), draw.numbers(*block))


def resize(draw: Draw) -> Sample:
    axes = draw.one(1, 2)
    x = draw.tensor(draw.one("float32", "float16", "uint8"), [draw.size(), *draw.shape(axes, 1)])
    options: dict[str, Any] = {"mode": draw.one("nearest", "linear", "cubic"), "axes": tuple(range(1, axes + 1))}
    options["coordinates"] = draw.one("half_pixel", "asymmetric", "align_corners", "half_pixel_symmetric")
    if draw.flag():
        attribute, operand = draw.steered(*draw.shape(axes, 1))
        return draw.sample(op("resize", **options, sizes=attribute), x, None, None, operand)
    scales = tuple(draw.one(1.0, 2.0, 3.0, 1.5) for _ in range(axes))
    if draw.flag():
        return draw.sample(op("resize", **options, scales=scales), x)
    given = draw.tensor("float32", [axes], lambda _rng, _shape, _binding: np.array(scales))
    return draw.sample(op("resize", **options), x, None, given)


def grid_sample(draw: Draw) -> Sample:
    batch, axes = draw.size(), draw.one(2, 2, 3)
    x = draw.tensor(draw.one(*FLOATS), [batch, draw.size(), *draw.shape(axes, 1)])
    grid = draw.tensor("float32", [batch, *draw.shape(axes), axes])
    mode = draw.one("nearest", "linear", *(("cubic",) if axes == 2 else ()))
    padding = draw.one("zeros", "border", "reflection")
    return draw.sample(op("grid_sample", mode=mode, padding=padding, align_corners=draw.flag()), x, grid)


def _regions(draw: Draw) -> tuple[Operand, DimLike, Operand]:
    images, regions = draw.size(1), draw.size()
    x = draw.tensor(draw.one("float32", "float16"), [images, draw.size(), *draw.shape(2, 1)])
    return x, regions, draw.tensor("int64", [regions], indices_below(images, negative=False))


def roi_align(draw: Draw) -> Sample:
    x, regions, images = _regions(draw)
    made = op("roi_align", kind=draw.one("average", "max"), output=(2, 3), scale=0.5, samples=draw.one(0, 2))
    return draw.sample(made, x, draw.tensor("float32", [regions, 4], _corners), images)


def max_roi_pool(draw: Draw) -> Sample:
    x, regions, _ = _regions(draw)

    def fill(rng: np.random.Generator, shape: tuple[int, ...], binding: Binding) -> Any:
        return np.concatenate([np.zeros((shape[0], 1)), _corners(rng, (shape[0], 4), binding)], 1)

    return draw.sample(op("max_roi_pool", output=(2, 1), scale=1.0), x, draw.tensor(x.dtype, [regions, 5], fill))


def _corners(rng: np.random.Generator, shape: tuple[int, ...], _binding: Binding) -> Any:
    first = rng.uniform(-1, 3, (shape[0], 2))
    return np.concatenate([first, first + rng.uniform(0, 4, (shape[0], 2))], 1)


def non_max_suppression(draw: Draw) -> Sample:
    batch, count = draw.shape(2)
    boxes = draw.tensor("float32", [batch, count, 4])
    scores = draw.tensor("float32", [batch, draw.size(), count])
    most = draw.numbers(draw.one(0, 1, 3), scalar=draw.flag()) if draw.flag(0.8) else None
    share = draw.tensor("float32", draw.one((), (1,)), lambda _rng, shape, _: np.full(shape, 0.5))
    made = op("non_max_suppression", center_point_box=draw.flag())
    return draw.sample(made, boxes, scores, most, draw.one(None, share), draw.one(None, share))


def dft(draw: Draw) -> Sample:
    inverse, onesided = draw.one((False, False), (True, False), (False, True), (True, True))
    parts = 2 if inverse else 1
    shape = [*draw.shape(draw.one(1, 2), 2), parts]
    axis = draw.rng.randrange(len(shape) - 1)
    x = draw.tensor(draw.one(*FLOATS), shape)
    length = draw.one(None, draw.size(2))
    attribute, operand = (None, None) if length is None else draw.steered(length)
    given = None if attribute is None else attribute[0]
    if operand is not None:
        operand = draw.numbers(*([length] if length is not None else []), scalar=True)
    options = {"inverse": inverse, "onesided": onesided}
    if draw.flag():
        return draw.sample(op("dft", length=given, axis=axis, **options), x, operand)
    return draw.sample(op("dft", length=given, **options), x, operand, draw.numbers(axis, scalar=True))


def frames(draw: Draw) -> Sample:
    step, length = draw.one(1, 2, 3), draw.one(1, 2, 3)
    x = draw.tensor(draw.one(*FLOATS), [draw.size(), draw.size() + 4, draw.one(1, 2)])
    length_attribute = draw.one(None, length)
    step_attribute = draw.one(None, step)
    return draw.sample(
        op("frames", length=length_attribute, step=step_attribute),
        x,
        None if length_attribute is not None else draw.numbers(length, scalar=True),
        None if step_attribute is not None else draw.numbers(step, scalar=True),
    )


def _filled(value: float, _rng: np.random.Generator, shape: tuple[int, ...], _binding: Binding) -> Any:
    return np.full(shape, value)


def mel_weights(draw: Draw) -> Sample:
    edges = [draw.tensor("float32", (), partial(_filled, edge)) for edge in (0.0, 4000.0)]
    sizes = [draw.numbers(value, scalar=True) for value in (draw.one(1, 4), draw.one(8, 16), 8192)]
    return draw.sample(op("mel_weights", dtype=draw.dtype("float32", "float64")), *sizes, *edges)


def rnn(draw: Draw) -> Sample:
    kind, direction = draw.one("rnn", "gru", "lstm"), draw.one("forward", "reverse", "bidirectional")
    names = {"rnn": ("tanh",), "gru": ("sigmoid", "tanh"), "lstm": ("sigmoid", "tanh", "tanh")}[kind]
    both = 2 if direction == "bidirectional" else 1
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[kind]
    steps, batch, inputs, hidden = draw.size(), draw.size(), draw.size(1), draw.one(1, 2, 3)
    real = draw.one("float32", "float16", "float64")

    def state() -> Operand | None:
        return draw.tensor(real, [both, batch, hidden]) if draw.flag() else None

    def lengths(rng: np.random.Generator, shape: tuple[int, ...], binding: Binding) -> Any:
        return rng.integers(0, dims.evaluate(steps, binding) + 1, shape)

    operands = [
        draw.tensor(real, [steps, batch, inputs]),
        draw.tensor(real, [both, gates * hidden, inputs]),
        draw.tensor(real, [both, gates * hidden, hidden]),
        draw.tensor(real, [both, 2 * gates * hidden]) if draw.flag() else None,
        draw.tensor("int32", [batch], lengths) if draw.flag() else None,
        state(),
    ]
    if kind == "lstm":
        operands += [state(), draw.tensor(real, [both, 3 * hidden]) if draw.flag() else None]
    zeros = (0.0,) * (len(names) * both)
    made = op("rnn", kind=kind, direction=direction, activations=names * both, alphas=zeros, betas=zeros)
    return draw.sample(made, *operands)


def decode_image(draw: Draw) -> Sample:
    stream = io.BytesIO()
    Image.new("RGB", (draw.one(1, 3), draw.one(1, 2))).save(stream, "PNG")
    data = np.frombuffer(stream.getvalue(), np.uint8) if draw.flag(0.8) else np.zeros(3, np.uint8)
    size = draw.one(len(data))
    encoded = Operand(DTYPES["uint8"], (size,), lambda _rng, _shape, _binding: data)
    return draw.sample(op("decode_image", pixel_format=draw.one("RGB", "BGR", "Grayscale")), encoded)


GENERATORS: dict[str, Callable[[Draw], Sample]] = {
    "conv": conv,
    "conv_transpose": conv_transpose,
    "pool": pool,
    "deform_conv": deform_conv,
    "col2im": col2im,
    "resize": resize,
    "grid_sample": grid_sample,
    "roi_align": roi_align,
    "max_roi_pool": max_roi_pool,
    "non_max_suppression": non_max_suppression,
    "dft": dft,
    "frames": frames,
    "mel_weights": mel_weights,
    "rnn": rnn,
    "decode_image": decode_image,
}
