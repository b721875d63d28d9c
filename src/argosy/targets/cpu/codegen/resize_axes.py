"""How each axis of a resize is scaled, as C: scales, sizes and regions that may be known only when the program runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.ir import dim as dims
from argosy.ir.dim import DimLike
from argosy.ir.dtype import FLOAT64
from argosy.ir.module import Instruction, Value
from argosy.ops.resize import Resize
from argosy.ops.shapes import normalize_axis
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.element import Elements
from argosy.targets.cpu.codegen.result_sizes import optional
from argosy.targets.lowering.accesses import DeclinedError, axes_access, op_of, present

__all__ = ["ResizedAxis", "place_text", "resize_sizes", "resized_axes"]


@dataclass(frozen=True, slots=True)
class ResizedAxis:
    """One axis; `scale`, `low` and `high` are C expressions over float64. `still` says that nothing happens to it."""

    axis: int
    size: DimLike
    output: DimLike
    scale: str
    low: str
    high: str
    still: bool


def resized_axes(elements: Elements, instruction: Instruction) -> list[ResizedAxis]:
    """The axes that the op names, with what their scales are."""
    op, x, result = op_of(instruction, Resize), present(instruction, 0), instruction.result()
    axes = _axes(op, x.rank)
    scales = _scales(elements, instruction, axes)
    crop = op.coordinates == "tf_crop_and_resize"
    region = _floats(elements, op.roi, optional(instruction, 1), 2 * len(axes)) if crop else None
    found = []
    for place, axis in enumerate(axes):
        low, high = (region[place], region[len(axes) + place]) if region else ("0.0", "1.0")
        same = bool(dims.equal(x.shape[axis], result.shape[axis]))
        still = same and not crop and (scales[place] == scalar.constant(1.0, FLOAT64) or _by_size(op, instruction))
        found.append(ResizedAxis(axis, x.shape[axis], result.shape[axis], scales[place], low, high, still))
    return found


def resize_sizes(elements: Elements, instruction: Instruction) -> Sequence[Sequence[DimLike]]:
    """The dims of the result."""
    op, x = op_of(instruction, Resize), present(instruction, 0)
    text, shape = elements.text, list(x.shape)
    axes = _axes(op, x.rank)
    scales = _scales(elements, instruction, axes)
    sizes = _sizes(elements, instruction)
    for place, axis in enumerate(axes):
        size = text.dim(x.shape[axis])
        if sizes is None:
            shape[axis] = elements.local(f"scaled_size({size}, {scales[place]})", 0)
        elif op.aspect == "stretch":
            shape[axis] = sizes[place]
        else:
            shape[axis] = elements.local(f"(int64)({scales[place]} * (float64){size} + 0.5)", 0)
    return [shape]


def place_text(coordinates: str, axis: ResizedAxis, size: str, output: str, index: str) -> str:
    """The place on the axis of `x` that element `index` of the result comes from: a float64."""
    scale, i, last = axis.scale, f"(float64){index}", f"((float64){size} - 1.0)"
    width = f"({scale} * (float64){size})"
    half = f"({i} + 0.5) / {scale} - 0.5"
    match coordinates:
        case "align_corners":
            return f"{width} == 1.0 ? 0.0 : {i} * {last} / ({width} - 1.0)"
        case "asymmetric":
            return f"{i} / {scale}"
        case "tf_half_pixel_for_nn":
            return f"({i} + 0.5) / {scale}"
        case "tf_crop_and_resize":
            middle = f"({axis.high} + {axis.low}) * {last} / 2.0"
            within = f"{i} * ({axis.high} - {axis.low}) * {last} / ({width} - 1.0) + {axis.low} * {last}"
            return f"{width} == 1.0 ? {middle} : {within}"
        case "pytorch_half_pixel":
            return f"{output} == 1 ? 0.0 : {half}"
        case "half_pixel_symmetric":
            return f"{half} + (float64){size} / 2.0 * (1.0 - (float64){output} / {width})"
    return half


def _axes(op: Resize, rank: int) -> list[int]:
    return list(range(rank)) if op.axes is None else [normalize_axis(axis, rank) for axis in op.axes]


def _by_size(op: Resize, instruction: Instruction) -> bool:
    """Whether sizes are given, so that equal ones mean the scale 1."""
    given = op.sizes is not None or (op.scales is None and optional(instruction, 3) is not None)
    return given and op.aspect == "stretch"


def _sizes(elements: Elements, instruction: Instruction) -> list[DimLike] | None:
    op = op_of(instruction, Resize)
    if op.sizes is None and op.scales is not None:
        return None
    return elements.entries(op.sizes, optional(instruction, 3)) or None


def _scales(elements: Elements, instruction: Instruction, axes: Sequence[int]) -> list[str]:
    """The scale of each axis: as given, else what the sizes come to."""
    op, x = op_of(instruction, Resize), present(instruction, 0)
    sizes = _sizes(elements, instruction)
    text = elements.text
    if sizes is None:
        return _floats(elements, op.scales, optional(instruction, 2), len(axes))
    found = []
    for axis, wanted in zip(axes, sizes, strict=True):
        size = text.dim(x.shape[axis])
        ratio = f"(float64){text.dim(wanted)} / (float64){size}"
        found.append(text.let("float64", f"{size} == 0 ? 1.0 : {ratio}"))
    if op.aspect == "stretch" or not found:
        return found
    one = found[0]
    for other in found[1:]:
        one = text.let("float64", f"{other} {'<' if op.aspect == 'not_larger' else '>'} {one} ? {other} : {one}")
    return [one] * len(axes)


def _floats(elements: Elements, attribute: Sequence[float] | None, operand: Value | None, count: int) -> list[str]:
    """`count` numbers as float64 in C: an attribute's, or the elements of an operand."""
    if attribute is not None:
        numbers = [scalar.constant(number, FLOAT64) for number in attribute]
    elif operand is None:
        raise DeclinedError("neither scales nor sizes are given")
    elif operand.known is not None:
        numbers = [scalar.constant(float(number), FLOAT64) for number in operand.known.reshape(-1)]
    else:
        places = [axes_access((), operand.shape, [place]) for place in range(count)]
        numbers = [elements.let(FLOAT64, f"(float64){elements.of(operand, place)}") for place in places]
    if len(numbers) != count:
        raise DeclinedError(f"{len(numbers)} numbers are given, expected {count}")
    return numbers
