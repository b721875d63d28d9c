"""Entries that steer an op, by axis: of slices, pads and frames whose places only the run knows."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.ir.dim import DimLike
from argosy.ir.module import Instruction, Value
from argosy.ops.shapes import normalize_axis
from argosy.ops.signal import Frames
from argosy.ops.slicing import Pad, Slice
from argosy.targets.gpu.codegen.declined import DeclinedError
from argosy.targets.gpu.codegen.element import Elements, present

__all__ = ["frame_entries", "optional", "pad_amounts", "slice_entries"]


def optional(instruction: Instruction, index: int) -> Value | None:
    """Operand `index`, None where it is absent."""
    return instruction.operands[index] if index < len(instruction.operands) else None


def _given(entries: list[DimLike] | None) -> list[DimLike]:
    if entries is None:
        raise DeclinedError("what steers the op is not given")
    return entries


def _by_axis(axes: Sequence[DimLike], given: Sequence[DimLike], rest: Sequence[DimLike]) -> list[DimLike]:
    """The entries of all axes: those `given` for some `axes`, `rest` for the others."""
    found = list(rest)
    for axis, entry in zip(axes, given, strict=True):
        if not isinstance(axis, int):
            raise DeclinedError("the axes are known only when the program runs")
        found[normalize_axis(axis, len(rest))] = entry
    return found


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
    return _by_axis(axes, starts, [0] * rank), _by_axis(axes, ends, shape), _by_axis(axes, steps, [1] * rank)


def pad_amounts(elements: Elements, instruction: Instruction, op: Pad) -> tuple[list[DimLike], list[DimLike]]:
    """How many elements a pad puts before and behind each axis."""
    rank = present(instruction, 0).rank
    pads = _given(elements.entries(op.pads, optional(instruction, 1)))
    axes = elements.entries(op.axes, optional(instruction, 3)) or list(range(rank))
    if len(pads) != 2 * len(axes):
        raise DeclinedError(f"{len(pads)} pads are given for {len(axes)} axes")
    none: list[DimLike] = [0] * rank
    return _by_axis(axes, pads[: len(axes)], none), _by_axis(axes, pads[len(axes) :], none)


def frame_entries(elements: Elements, instruction: Instruction, op: Frames) -> tuple[DimLike, DimLike]:
    """The length of a frame, and the step from one to the next."""
    length = elements.entries(None if op.length is None else (op.length,), optional(instruction, 1))
    step = elements.entries(None if op.step is None else (op.step,), optional(instruction, 2))
    if not length or not step:
        raise DeclinedError("the length or the step of the frames is not one number")
    return length[0], step[0]
