"""Sizes of results that only the run knows, from the operands that steer an op: one program computes them.

A function for each op gives the dims of all results as expressions over scalars of the kernel, which the elements of
the steering operands were loaded into. What does not fit is a fault, and then a size is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from argosy.ir import dim as dims
from argosy.ir.dim import DimLike, dim_min
from argosy.ir.dtype import FLOAT64, INT64
from argosy.ir.module import Instruction, Module
from argosy.ops.index import OneHot, Range
from argosy.ops.joining import Split, Tile
from argosy.ops.shapes import normalize_axis, product
from argosy.ops.signal import Frames
from argosy.ops.slicing import Pad, Slice
from argosy.ops.view import Broadcast, Reshape, Squeeze, Unsqueeze
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.element import Elements
from argosy.targets.gpu.codegen.faults import Fault
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.steering import (
    check_axes,
    frame_entries,
    given,
    names_axis,
    number,
    optional,
    pad_amounts,
    slice_entries,
)
from argosy.targets.lowering.accesses import DeclinedError, axes_access, present

__all__ = ["ResultSizes", "kept_sizes", "result_sizes", "sizes_kernel"]

Order = tuple[int, ...] | None
ResultSizes = Callable[[Elements, Instruction], Sequence[Sequence[DimLike]]]
_MOST = (1 << 63) - 1


def sizes_kernel(
    module: Module, orders: Sequence[Order], wanted: Sequence[tuple[int, int]], sizes: ResultSizes
) -> Kernel:
    """Stores the dims (result, axis) that are `wanted`, in this order, as int64. `orders` are those of the operands."""
    writer = KernelWriter(module, orders)
    text = writer.text
    text.wide = True
    found = sizes(writer.elements, module.instructions[-1])
    text.faults = True
    for place, (result, axis) in enumerate(wanted):
        most = dims.bounds(module.results[result].shape[axis])[1]
        size = number(writer.elements, found[result][axis])
        limit = number(writer.elements, _MOST if most is None else most)
        text.line(f"tl.store({writer.result()} + {place}, checked_size(fault, {size}, {limit}))")
    return writer.kernel(Launch((1, 1, 1), 1), [INT64]).labelled("sizes")


def result_sizes(elements: Elements, instruction: Instruction) -> Sequence[Sequence[DimLike]]:
    """The dims of an instruction's results. Declines for ops whose sizes do not come from steering operands."""
    match instruction.op:
        case Slice() as op:
            return [_slice(elements, instruction, op)]
        case Pad() as op:
            return [_pad(elements, instruction, op)]
        case Tile(repeats=repeats):
            by = given(elements.entries(repeats, optional(instruction, 1)))
            return [[count * size for size, count in zip(present(instruction, 0).shape, by, strict=True)]]
        case Broadcast(dims=wanted):
            return [_broadcast(elements, instruction, given(elements.entries(wanted, optional(instruction, 1))))]
        case Reshape() as op:
            return [_reshape(elements, instruction, op)]
        case Squeeze(axes=axes):
            return [_squeeze(elements, instruction, given(elements.entries(axes, optional(instruction, 1))))]
        case Unsqueeze(axes=axes):
            return [_unsqueeze(elements, instruction, given(elements.entries(axes, optional(instruction, 1))))]
        case Range():
            return [[_range(elements, instruction)]]
        case OneHot(axis=axis):
            (depth,) = given(elements.entries(None, present(instruction, 1)))
            shape = list(present(instruction, 0).shape)
            shape.insert(normalize_axis(axis, len(shape) + 1), depth)
            return [shape]
        case Split() as op:
            return _split(elements, instruction, op)
        case Frames() as op:
            return [_frames(elements, instruction, op)]
    raise DeclinedError(f"the sizes of {instruction.op.name} are known only when the program runs")


def _slice(elements: Elements, instruction: Instruction, op: Slice) -> list[DimLike]:
    entries = slice_entries(elements, instruction, op, checked=True)
    elements.text.faults = True
    return [
        elements.local(f"slice_count(fault, {', '.join(number(elements, entry) for entry in own)})", 0)
        for own in zip(*entries, present(instruction, 0).shape, strict=True)
    ]


def _pad(elements: Elements, instruction: Instruction, op: Pad) -> list[DimLike]:
    before, after = pad_amounts(elements, instruction, op, checked=True)
    for a, b, size in zip(before, after, present(instruction, 0).shape, strict=True):
        left = dim_min(a, 0) + size + dim_min(b, 0)
        if not isinstance(left, int):
            name = elements.let(number(elements, left))
            elements.fault(f"{name} < 0", Fault.SIZE, name)
    return [a + size + b for a, size, b in zip(before, present(instruction, 0).shape, after, strict=True)]


def _broadcast(elements: Elements, instruction: Instruction, wanted: list[DimLike]) -> list[DimLike]:
    shape = present(instruction, 0).shape
    rank = max(len(shape), len(wanted))
    left: list[DimLike] = [*[1] * (rank - len(shape)), *shape]
    right: list[DimLike] = [*[1] * (rank - len(wanted)), *wanted]
    elements.text.faults = True
    return [
        elements.local(f"broadcast_size(fault, {number(elements, a)}, {number(elements, b)}, {axis})", 0)
        for axis, (a, b) in enumerate(zip(left, right, strict=True))
    ]


def _reshape(elements: Elements, instruction: Instruction, op: Reshape) -> list[DimLike]:
    text, x = elements.text, present(instruction, 0)
    wanted = [number(elements, entry) for entry in given(elements.entries(op.dims, optional(instruction, 1)))]
    for axis, entry in enumerate(wanted):
        elements.fault(f"{entry} < -1", Fault.VALUE, entry)
        if axis >= x.rank and not op.allow_zero:
            elements.fault(f"{entry} == 0", Fault.SHAPES, str(axis))
    kept = [
        text.let(f"tl.where({entry} == 0, {number(elements, x.shape[axis])}, {entry})")
        if axis < x.rank and not op.allow_zero
        else entry
        for axis, entry in enumerate(wanted)
    ]
    others, unknown = number(elements, 1), number(elements, 0)
    for entry in kept:
        others = text.let(f"{others} * tl.where({entry} == -1, 1, {entry})")
        unknown = text.let(f"{unknown} + ({entry} == -1).to(tl.int64)")
    total = number(elements, product(x.shape))
    elements.fault(f"({unknown} > 1) | (({unknown} == 0) & ({others} != {total}))", Fault.SHAPES, "-1")
    rest = text.let(f"remaining_size(fault, {total}, {others})")
    return [elements.local(f"tl.where({entry} == -1, {rest}, {entry})") for entry in kept]


def _squeeze(elements: Elements, instruction: Instruction, axes: list[DimLike]) -> list[DimLike]:
    shape = present(instruction, 0).shape
    check_axes(elements, axes, len(shape))
    goes = [elements.let(names_axis(elements, axes, axis, len(shape))) for axis in range(len(shape))]
    for axis, (gone, size) in enumerate(zip(goes, shape, strict=True)):
        elements.fault(f"{gone} & ({number(elements, size)} != 1)", Fault.SHAPES, str(axis))
    return kept_sizes(elements, goes, shape, instruction.result().rank)


def kept_sizes(elements: Elements, goes: Sequence[str], shape: Sequence[DimLike], rank: int) -> list[DimLike]:
    """The sizes of the axes that stay, `rank` of them: `goes` are conditions by axis."""
    text = elements.text
    count = number(elements, 0)
    found = [number(elements, 0)] * rank
    for gone, size in zip(goes, shape, strict=True):
        stays = text.let(f"({gone}) == 0")
        own = number(elements, size)
        found = [text.let(f"tl.where({stays} & ({count} == {place}), {own}, {old})") for place, old in enumerate(found)]
        count = text.let(f"{count} + {stays}.to(tl.int64)")
    elements.fault(f"{count} != {rank}", Fault.SHAPES, "-1")
    return [elements.local(size, 0) for size in found]


def _unsqueeze(elements: Elements, instruction: Instruction, axes: list[DimLike]) -> list[DimLike]:
    text, shape = elements.text, present(instruction, 0).shape
    rank = instruction.result().rank
    check_axes(elements, axes, rank, distinct=True)
    count = number(elements, 0)
    found: list[DimLike] = []
    for axis in range(rank):
        new = text.let(names_axis(elements, axes, axis, rank))
        own = number(elements, 1)
        for place, size in enumerate(shape):
            own = f"tl.where({count} == {place}, {number(elements, size)}, {own})"
        found.append(elements.local(f"tl.where({new}, 1, {own})", 0))
        count = text.let(f"{count} + ({new} == 0).to(tl.int64)")
    elements.fault(f"{count} != {len(shape)}", Fault.SHAPES, "-1")
    return found


def _split(elements: Elements, instruction: Instruction, op: Split) -> list[list[DimLike]]:
    x = present(instruction, 0)
    pieces = given(elements.entries(op.sizes, optional(instruction, 1)))
    axis = normalize_axis(op.axis, x.rank)
    total = number(elements, sum(pieces[1:], pieces[0]))
    elements.fault(f"{total} != {number(elements, x.shape[axis])}", Fault.SHAPES, str(axis))
    return [[*x.shape[:axis], piece, *x.shape[axis + 1 :]] for piece in pieces]


def _frames(elements: Elements, instruction: Instruction, op: Frames) -> list[DimLike]:
    batch, total, parts = present(instruction, 0).shape
    length, step = frame_entries(elements, instruction, op)
    whole, frame, hop = (number(elements, size) for size in (total, length, step))
    elements.fault(f"{hop} < 1", Fault.VALUE, hop)
    count = elements.local(f"tl.where({whole} < {frame}, -1, ({whole} - {frame}) // tl.maximum({hop}, 1) + 1)")
    return [batch, count, length, parts]


def _range(elements: Elements, instruction: Instruction) -> DimLike:
    operands = [present(instruction, index) for index in range(3)]
    kind = operands[0].dtype.compute
    wide = FLOAT64 if kind.is_float else INT64
    names = [elements.of(value, axes_access((), value.shape, [0] * value.rank)) for value in operands]
    args = ", ".join(scalar.apply("convert", [name], [kind], wide) for name in names)
    elements.text.faults = True
    return elements.local(f"range_count_{wide}(fault, {args})", 0)
