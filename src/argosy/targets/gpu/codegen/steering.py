"""Entries that steer an op, by axis: of slices, pads, frames and reductions whose places only the run knows.

Where the axes themselves are known late, each axis gets a chain of choices.
"""

from __future__ import annotations

from collections.abc import Sequence

from argosy.ir.dim import Dim, DimLike
from argosy.ir.dtype import INT64
from argosy.ir.module import Instruction, Value
from argosy.ops.shapes import normalize_axis
from argosy.ops.signal import Frames
from argosy.ops.slicing import Pad, Slice
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.element import Elements
from argosy.targets.gpu.codegen.faults import Fault
from argosy.targets.lowering.accesses import DeclinedError, present

__all__ = [
    "check_axes",
    "frame_entries",
    "given",
    "known_axes",
    "names_axis",
    "number",
    "optional",
    "pad_amounts",
    "slice_entries",
]


def optional(instruction: Instruction, index: int) -> Value | None:
    """Operand `index`, None where it is absent."""
    return instruction.operands[index] if index < len(instruction.operands) else None


def given(entries: list[DimLike] | None) -> list[DimLike]:
    """Entries that must be there."""
    if entries is None:
        raise DeclinedError("what steers the op is not given")
    return entries


def number(elements: Elements, entry: DimLike) -> str:
    """An entry as an integer of the kernel, never one of Triton's compile-time numbers."""
    return elements.text.dim(entry) if isinstance(entry, Dim) else elements.let(scalar.constant(entry, INT64))


def known_axes(axes: Sequence[DimLike], rank: int) -> list[int] | None:
    """The axes counted from the front, where they are numbers."""
    if any(isinstance(axis, Dim) for axis in axes):
        return None
    return [normalize_axis(axis, rank) for axis in axes if isinstance(axis, int)]


def check_axes(elements: Elements, axes: Sequence[DimLike], rank: int, *, distinct: bool = False) -> None:
    """Report axes that there are not, and if they must be `distinct`, two that are one; known ones were checked."""
    names = [number(elements, axis) for axis in axes]
    for axis, name in zip(axes, names, strict=True):
        if isinstance(axis, Dim):
            elements.fault(f"({name} < {-rank}) | ({name} >= {rank})", Fault.INDEX, name)
    for place, name in enumerate(names if distinct else ()):
        for other in range(place):
            if isinstance(axes[place], Dim) or isinstance(axes[other], Dim):
                left, right = (f"tl.where({each} < 0, {each} + {rank}, {each})" for each in (name, names[other]))
                elements.fault(f"{left} == {right}", Fault.VALUE, name)


def names_axis(elements: Elements, axes: Sequence[DimLike], axis: int, rank: int) -> str:
    """A condition: whether `axis` is among `axes`, which may count from the end."""
    names = (number(elements, entry) for entry in axes)
    return " | ".join(f"({name} == {place})" for name in names for place in (axis, axis - rank))


def _by_axis(
    elements: Elements, axes: Sequence[DimLike], entries: Sequence[DimLike], rest: Sequence[DimLike]
) -> list[DimLike]:
    """The entries of all axes: those given for some `axes`, `rest` for the others."""
    rank = len(rest)
    if len(axes) != len(entries):
        raise DeclinedError(f"{len(entries)} entries are given for {len(axes)} axes")
    known = known_axes(axes, rank)
    found = list(rest)
    if known is not None:
        for axis, entry in zip(known, entries, strict=True):
            found[axis] = entry
        return found
    for axis in range(rank):
        chain = number(elements, rest[axis])
        for place, entry in zip(axes, entries, strict=True):
            chain = f"tl.where({names_axis(elements, [place], axis, rank)}, {number(elements, entry)}, {chain})"
        found[axis] = elements.local(f"{chain}.to({elements.text.index_type})")
    return found


def slice_entries(
    elements: Elements, instruction: Instruction, op: Slice, *, checked: bool = False
) -> tuple[list[DimLike], list[DimLike], list[DimLike]]:
    """Starts, ends and steps of a slice by axis, as given; `checked` reports axes that there are not, or twice."""
    shape = present(instruction, 0).shape
    starts = given(elements.entries(op.starts, optional(instruction, 1)))
    ends = given(elements.entries(op.ends, optional(instruction, 2)))
    axes = elements.entries(op.axes, optional(instruction, 3)) or list(range(len(starts)))
    steps = elements.entries(op.steps, optional(instruction, 4)) or [1] * len(starts)
    rank = len(shape)
    if checked:
        check_axes(elements, axes, rank, distinct=True)
    return (
        _by_axis(elements, axes, starts, [0] * rank),
        _by_axis(elements, axes, ends, shape),
        _by_axis(elements, axes, steps, [1] * rank),
    )


def pad_amounts(
    elements: Elements, instruction: Instruction, op: Pad, *, checked: bool = False
) -> tuple[list[DimLike], list[DimLike]]:
    """How many elements a pad puts before and behind each axis; see `slice_entries`."""
    rank = present(instruction, 0).rank
    pads = given(elements.entries(op.pads, optional(instruction, 1)))
    axes = elements.entries(op.axes, optional(instruction, 3)) or list(range(rank))
    if len(pads) != 2 * len(axes):
        raise DeclinedError(f"{len(pads)} pads are given for {len(axes)} axes")
    if checked:
        check_axes(elements, axes, rank, distinct=True)
    none: list[DimLike] = [0] * rank
    before, after = pads[: len(axes)], pads[len(axes) :]
    return _by_axis(elements, axes, before, none), _by_axis(elements, axes, after, none)


def frame_entries(elements: Elements, instruction: Instruction, op: Frames) -> tuple[DimLike, DimLike]:
    """The length of a frame, and the step from one to the next."""
    length = elements.entries(None if op.length is None else (op.length,), optional(instruction, 1))
    step = elements.entries(None if op.step is None else (op.step,), optional(instruction, 2))
    if not length or not step:
        raise DeclinedError("the length or the step of the frames is not one number")
    return length[0], step[0]
