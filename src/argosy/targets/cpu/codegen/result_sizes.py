"""Sizes of results that only the run knows, from the operands that steer an op.

A function for each op gives the dims of all results as expressions over variables of the kernel, which the
elements of the steering operands were loaded into.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from argosy.ir.dim import Dim, DimLike, dim_min
from argosy.ir.dtype import FLOAT64, INT64
from argosy.ir.module import Instruction, Value
from argosy.ops.index import OneHot, Range
from argosy.ops.joining import Split, Tile
from argosy.ops.shapes import normalize_axis, product
from argosy.ops.signal import Frames
from argosy.ops.slicing import Pad, Slice
from argosy.ops.view import Broadcast, Reshape, Squeeze, Unsqueeze
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.element import Elements
from argosy.targets.cpu.codegen.steering import by_axis, check_axes, names_axis
from argosy.targets.lowering.accesses import DeclinedError, axes_access, present

__all__ = ["ResultSizes", "frame_entries", "optional", "pad_amounts", "result_sizes", "slice_entries"]

ResultSizes = Callable[[Elements, Instruction], Sequence[Sequence[DimLike]]]


def optional(instruction: Instruction, index: int) -> Value | None:
    """Operand `index`, None where it is absent."""
    return instruction.operands[index] if index < len(instruction.operands) else None


def result_sizes(elements: Elements, instruction: Instruction) -> Sequence[Sequence[DimLike]]:
    """The dims of an instruction's results. Declines for ops whose sizes do not come from steering operands."""
    match instruction.op:
        case Slice() as op:
            return [_slice(elements, instruction, op)]
        case Pad() as op:
            return [_pad(elements, instruction, op)]
        case Tile(repeats=repeats):
            by = _given(elements.entries(repeats, optional(instruction, 1)))
            return [[count * size for size, count in zip(present(instruction, 0).shape, by, strict=True)]]
        case Broadcast(dims=dims):
            return [_broadcast(elements, instruction, _given(elements.entries(dims, optional(instruction, 1))))]
        case Reshape() as op:
            return [_reshape(elements, instruction, op)]
        case Squeeze(axes=axes):
            return [_squeeze(elements, instruction, _given(elements.entries(axes, optional(instruction, 1))))]
        case Unsqueeze(axes=axes):
            return [_unsqueeze(elements, instruction, _given(elements.entries(axes, optional(instruction, 1))))]
        case Range():
            return [[_range(elements, instruction)]]
        case OneHot(axis=axis):
            (depth,) = _given(elements.entries(None, present(instruction, 1)))
            shape = list(present(instruction, 0).shape)
            shape.insert(normalize_axis(axis, len(shape) + 1), depth)
            return [shape]
        case Split() as op:
            x = present(instruction, 0)
            pieces = _given(elements.entries(op.sizes, optional(instruction, 1)))
            axis = normalize_axis(op.axis, x.rank)
            whole, total = elements.text.dim(x.shape[axis]), elements.text.dim(sum(pieces[1:], pieces[0]))
            elements.text.line(f"if ({total} != {whole}) argosy_fail(scratch, ARGOSY_SHAPES, {axis});")
            return [[*x.shape[:axis], piece, *x.shape[axis + 1 :]] for piece in pieces]
        case Frames() as op:
            return [_frames(elements, instruction, op)]
    raise DeclinedError(f"the sizes of {instruction.op.name} are known only when the program runs")


def _given(entries: list[DimLike] | None) -> list[DimLike]:
    if entries is None:
        raise DeclinedError("what steers the op is not given")
    return entries


def slice_entries(
    elements: Elements, instruction: Instruction, op: Slice
) -> tuple[list[DimLike], list[DimLike], list[DimLike]]:
    """Starts, ends and steps of a slice by axis, as given."""
    shape = present(instruction, 0).shape
    starts = _given(elements.entries(op.starts, optional(instruction, 1)))
    ends = _given(elements.entries(op.ends, optional(instruction, 2)))
    axes = elements.entries(op.axes, optional(instruction, 3)) or list(range(len(starts)))
    steps = elements.entries(op.steps, optional(instruction, 4)) or [1] * len(starts)
    rank = len(shape)
    check_axes(elements, axes, rank, distinct=True)
    return (
        by_axis(elements, axes, starts, [0] * rank),
        by_axis(elements, axes, ends, shape),
        by_axis(elements, axes, steps, [1] * rank),
    )


def _slice(elements: Elements, instruction: Instruction, op: Slice) -> list[DimLike]:
    text = elements.text
    return [
        elements.local(f"slice_count({', '.join(text.dim(entry) for entry in entries)}, scratch)", 0)
        for entries in zip(*slice_entries(elements, instruction, op), present(instruction, 0).shape, strict=True)
    ]


def pad_amounts(elements: Elements, instruction: Instruction, op: Pad) -> tuple[list[DimLike], list[DimLike]]:
    """How many elements a pad puts before and behind each axis."""
    rank = present(instruction, 0).rank
    pads = _given(elements.entries(op.pads, optional(instruction, 1)))
    axes = elements.entries(op.axes, optional(instruction, 3)) or list(range(rank))
    if len(pads) != 2 * len(axes):
        raise DeclinedError(f"{len(pads)} pads are given for {len(axes)} axes")
    check_axes(elements, axes, rank, distinct=True)
    none: list[DimLike] = [0] * rank
    return by_axis(elements, axes, pads[: len(axes)], none), by_axis(elements, axes, pads[len(axes) :], none)


def _pad(elements: Elements, instruction: Instruction, op: Pad) -> list[DimLike]:
    before, after = pad_amounts(elements, instruction, op)
    text = elements.text
    for a, b, size in zip(before, after, present(instruction, 0).shape, strict=True):
        left = dim_min(a, 0) + size + dim_min(b, 0)
        if not isinstance(left, int):
            text.line(f"if ({text.dim(left)} < 0) argosy_fail(scratch, ARGOSY_SIZE, {text.dim(left)});")
    return [a + size + b for a, size, b in zip(before, present(instruction, 0).shape, after, strict=True)]


def _broadcast(elements: Elements, instruction: Instruction, wanted: list[DimLike]) -> list[DimLike]:
    shape = present(instruction, 0).shape
    rank = max(len(shape), len(wanted))
    left: list[DimLike] = [*[1] * (rank - len(shape)), *shape]
    right: list[DimLike] = [*[1] * (rank - len(wanted)), *wanted]
    text = elements.text
    return [
        elements.local(f"broadcast_size({text.dim(a)}, {text.dim(b)}, {axis}, scratch)", 0)
        for axis, (a, b) in enumerate(zip(left, right, strict=True))
    ]


def _reshape(elements: Elements, instruction: Instruction, op: Reshape) -> list[DimLike]:
    text, x = elements.text, present(instruction, 0)
    wanted = _given(elements.entries(op.dims, optional(instruction, 1)))
    kept = [
        elements.local(f"{text.dim(entry)} == 0 ? {text.dim(x.shape[axis])} : {text.dim(entry)}", -1)
        if axis < x.rank and not op.allow_zero
        else entry
        for axis, entry in enumerate(wanted)
    ]
    total, entries = text.dim(product(x.shape)), [text.dim(entry) for entry in kept]
    for axis, (entry, name) in enumerate(zip(wanted, entries, strict=True)):
        if isinstance(entry, Dim):
            text.line(f"if ({name} < -1) argosy_fail(scratch, ARGOSY_VALUE, {name});")
            if axis >= x.rank and not op.allow_zero:
                text.line(f"if ({name} == 0) argosy_fail(scratch, ARGOSY_SHAPES, {axis});")
    others = " * ".join(["(int64)1", *(f"({name} == -1 ? 1 : {name})" for name in entries)])
    left = text.let("int64", " + ".join(["0", *(f"({name} == -1)" for name in entries)]))
    text.line(f"if ({left} > 1 || ({left} == 0 && {others} != {total})) argosy_fail(scratch, ARGOSY_SHAPES, -1);")
    rest = text.let("int64", f"remaining_size({total}, {others}, scratch)")
    return [elements.local(f"{text.dim(entry)} == -1 ? {rest} : {text.dim(entry)}") for entry in kept]


def _squeeze(elements: Elements, instruction: Instruction, axes: list[DimLike]) -> list[DimLike]:
    text, shape = elements.text, present(instruction, 0).shape
    check_axes(elements, axes, len(shape))
    kept, count = text.fresh("kept"), text.fresh("count")
    text.line(f"int64 {kept}[{len(shape) + 1}], {count} = 0;")
    for axis, size in enumerate(shape):
        text.line(f"if (!{names_axis(elements, axes, axis, len(shape))}) {kept}[{count}++] = {text.dim(size)};")
        text.line(f"else if ({text.dim(size)} != 1) argosy_fail(scratch, ARGOSY_SHAPES, {axis});")
    rank = instruction.result().rank
    text.line(f"if ({count} != {rank}) argosy_fail(scratch, ARGOSY_SHAPES, -1);")
    text.line(f"for (; {count} < {rank}; {count}++) {kept}[{count}] = 0;")
    return [elements.local(f"{kept}[{place}]") for place in range(rank)]


def _unsqueeze(elements: Elements, instruction: Instruction, axes: list[DimLike]) -> list[DimLike]:
    text, shape = elements.text, present(instruction, 0).shape
    rank = instruction.result().rank
    check_axes(elements, axes, rank, distinct=True)
    source, count = text.fresh("source"), text.fresh("count")
    sizes = ", ".join([*(text.dim(size) for size in shape), *["1"] * (rank - len(shape) + 1)])
    text.line(f"const int64 {source}[{rank + 1}] = {{{sizes}}};")
    text.line(f"int64 {count} = 0;")
    found = [
        elements.local(f"{names_axis(elements, axes, axis, rank)} ? 1 : {source}[{count}++]") for axis in range(rank)
    ]
    text.line(f"if ({count} != {len(shape)}) argosy_fail(scratch, ARGOSY_SHAPES, -1);")
    return found


def _frames(elements: Elements, instruction: Instruction, op: Frames) -> list[DimLike]:
    batch, total, parts = present(instruction, 0).shape
    length, step = frame_entries(elements, instruction, op)
    text = elements.text
    whole, frame, hop = text.dim(total), text.dim(length), text.dim(step)
    text.line(f"if ({hop} < 1) {{ argosy_fail(scratch, ARGOSY_VALUE, {hop}); return; }}")
    count = elements.local(f"{whole} < {frame} ? -1 : ({whole} - {frame}) / {hop} + 1")
    return [batch, count, length, parts]


def frame_entries(elements: Elements, instruction: Instruction, op: Frames) -> tuple[DimLike, DimLike]:
    """The length of a frame, and the step from one to the next."""
    length = elements.entries(None if op.length is None else (op.length,), optional(instruction, 1))
    step = elements.entries(None if op.step is None else (op.step,), optional(instruction, 2))
    if not length or not step:
        raise DeclinedError("the length or the step of the frames is not one number")
    return length[0], step[0]


def _range(elements: Elements, instruction: Instruction) -> DimLike:
    operands = [present(instruction, index) for index in range(3)]
    kind = operands[0].dtype.compute
    wide = FLOAT64 if kind.is_float else INT64
    names = [elements.of(value, axes_access((), value.shape, [0] * value.rank)) for value in operands]
    args = ", ".join(scalar.apply("convert", [name], [kind], wide) for name in names)
    return elements.local(f"range_count_{wide}({args}, scratch)", 0)
