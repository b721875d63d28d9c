"""Entries that belong to axes: what slices, pads and reductions are steered by, when only the run knows the axes."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.ir.dim import Dim, DimLike
from argosy.ops.shapes import normalize_axis
from argosy.targets.cpu.codegen.element import Elements
from argosy.targets.lowering.accesses import DeclinedError

__all__ = ["by_axis", "check_axes", "known_axes", "names_axis"]


def known_axes(axes: Sequence[DimLike], rank: int) -> list[int] | None:
    """The axes counted from the front, where they are numbers."""
    if any(isinstance(axis, Dim) for axis in axes):
        return None
    return [normalize_axis(axis, rank) for axis in axes if isinstance(axis, int)]


def check_axes(elements: Elements, axes: Sequence[DimLike], rank: int, *, distinct: bool = False) -> None:
    """Report axes that there are not, and if they must be `distinct`, two that are one; known ones were checked."""
    text = elements.text
    late = [text.let("int64", text.dim(axis)) if isinstance(axis, Dim) else str(axis) for axis in axes]
    for axis, name in zip(axes, late, strict=True):
        if isinstance(axis, Dim):
            text.line(f"if ({name} < -{rank} || {name} >= {rank}) argosy_fail(scratch, ARGOSY_INDEX, {name});")
    for place, name in enumerate(late if distinct else ()):
        for other in range(place):
            if isinstance(axes[place], Dim) or isinstance(axes[other], Dim):
                left, right = (f"({each} < 0 ? {each} + {rank} : {each})" for each in (name, late[other]))
                text.line(f"if ({left} == {right}) argosy_fail(scratch, ARGOSY_VALUE, {name});")


def names_axis(elements: Elements, axes: Sequence[DimLike], axis: int, rank: int) -> str:
    """A C condition: whether `axis` is among `axes`, which may count from the end."""
    tests = (f"{elements.text.dim(entry)} == {place}" for entry in axes for place in (axis, axis - rank))
    return f"({' || '.join(tests)})" if axes else "0"


def by_axis(
    elements: Elements, axes: Sequence[DimLike], entries: Sequence[DimLike], defaults: Sequence[DimLike]
) -> list[DimLike]:
    """For each axis its entry, the default where it has none. `axes` may count from the end and be known late."""
    rank = len(defaults)
    if len(axes) != len(entries):
        raise DeclinedError(f"{len(entries)} entries are given for {len(axes)} axes")
    known = known_axes(axes, rank)
    found = list(defaults)
    if known is not None:
        for axis, entry in zip(known, entries, strict=True):
            found[axis] = entry
        return found
    for axis in range(rank):
        chain = elements.text.dim(defaults[axis])
        for place, entry in zip(axes, entries, strict=True):
            chain = f"({names_axis(elements, [place], axis, rank)} ? {elements.text.dim(entry)} : {chain})"
        found[axis] = elements.local(chain)
    return found
