"""How each axis of a resize is scaled, as Triton: scales, sizes and regions that may be known only to the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.ir import dim as dims
from argosy.ir.dim import DimLike
from argosy.ir.dtype import FLOAT64
from argosy.ir.module import Instruction, Value
from argosy.ops.resize import Resize
from argosy.ops.shapes import normalize_axis
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.element import Elements
from argosy.targets.gpu.codegen.steering import number, optional
from argosy.targets.lowering.accesses import DeclinedError, axes_access, op_of, present

__all__ = ["ResizedAxis", "float_of", "place_text", "resize_sizes", "resized_axes"]


@dataclass(frozen=True, slots=True)
class ResizedAxis:
    """One axis; `scale`, `low` and `high` are float64 scalars. `still` says that nothing happens to it."""

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
    zero, one = scalar.constant(0.0, FLOAT64), scalar.constant(1.0, FLOAT64)
    found = []
    for place, axis in enumerate(axes):
        low, high = (region[place], region[len(axes) + place]) if region else (zero, one)
        same = bool(dims.equal(x.shape[axis], result.shape[axis]))
        still = same and not crop and (scales[place] == one or _by_size(op, instruction))
        found.append(ResizedAxis(axis, x.shape[axis], result.shape[axis], scales[place], low, high, still))
    return found


def resize_sizes(elements: Elements, instruction: Instruction) -> Sequence[Sequence[DimLike]]:
    """The dims of the result."""
    op, x = op_of(instruction, Resize), present(instruction, 0)
    shape = list(x.shape)
    axes = _axes(op, x.rank)
    scales = _scales(elements, instruction, axes)
    sizes = _sizes(elements, instruction)
    for place, axis in enumerate(axes):
        size = number(elements, x.shape[axis])
        if sizes is None:
            shape[axis] = elements.local(f"scaled_size({size}, {scales[place]})", 0)
        elif op.aspect == "stretch":
            shape[axis] = sizes[place]
        else:
            shape[axis] = elements.local(f"({scales[place]} * {size}.to(tl.float64) + 0.5).to(tl.int64)", 0)
    return [shape]


def float_of(elements: Elements, dim: DimLike) -> str:
    """A dim as a float64."""
    return scalar.constant(dim, FLOAT64) if isinstance(dim, int) else f"{elements.text.dim(dim)}.to(tl.float64)"


def place_text(elements: Elements, coordinates: str, axis: ResizedAxis, index: DimLike) -> str:
    """The place on the axis of `x` that element `index` of the result comes from: a float64."""
    scale, i, size = axis.scale, float_of(elements, index), float_of(elements, axis.size)
    last, width = f"({size} - 1.0)", f"({scale} * {size})"
    half = f"(({i} + 0.5) / {scale} - 0.5)"
    match coordinates:
        case "align_corners":
            return f"tl.where({width} == 1.0, 0.0, {i} * {last} / ({width} - 1.0))"
        case "asymmetric":
            return f"({i} / {scale})"
        case "tf_half_pixel_for_nn":
            return f"(({i} + 0.5) / {scale})"
        case "tf_crop_and_resize":
            middle = f"({axis.high} + {axis.low}) * {last} / 2.0"
            within = f"{i} * ({axis.high} - {axis.low}) * {last} / ({width} - 1.0) + {axis.low} * {last}"
            return f"tl.where({width} == 1.0, {middle}, {within})"
        case "pytorch_half_pixel":
            return f"tl.where({float_of(elements, axis.output)} == 1.0, 0.0, {half})"
        case "half_pixel_symmetric":
            return f"({half} + {size} / 2.0 * (1.0 - {float_of(elements, axis.output)} / {width}))"
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
    op, x, text = op_of(instruction, Resize), present(instruction, 0), elements.text
    sizes = _sizes(elements, instruction)
    if sizes is None:
        return _floats(elements, op.scales, optional(instruction, 2), len(axes))
    found = []
    for axis, wanted in zip(axes, sizes, strict=True):
        size = float_of(elements, x.shape[axis])
        found.append(text.let(f"tl.where({size} == 0.0, 1.0, {float_of(elements, wanted)} / {size})"))
    if op.aspect == "stretch" or not found:
        return found
    one = found[0]
    for other in found[1:]:
        one = text.let(f"tl.{'minimum' if op.aspect == 'not_larger' else 'maximum'}({one}, {other})")
    return [one] * len(axes)


def _floats(elements: Elements, attribute: Sequence[float] | None, operand: Value | None, count: int) -> list[str]:
    """`count` numbers as float64 scalars: an attribute's, or the elements of an operand."""
    if attribute is not None:
        numbers = [scalar.constant(each, FLOAT64) for each in attribute]
    elif operand is None:
        raise DeclinedError("neither scales nor sizes are given")
    elif operand.known is not None:
        numbers = [scalar.constant(float(each), FLOAT64) for each in operand.known.reshape(-1)]
    else:
        places = [axes_access((), operand.shape, [place]) for place in range(count)]
        numbers = [elements.let(f"{elements.of(operand, place)}.to(tl.float64)") for place in places]
    if len(numbers) != count:
        raise DeclinedError(f"{len(numbers)} numbers are given, expected {count}")
    return numbers
