"""What must hold of sizes that only a run knows: told while types are inferred, so that native code can check it.

`infer` refuses dims that certainly do not fit each other. It asks by the functions here, and where the answer is
"perhaps", what was asked is a demand. numpy checks it while an op is evaluated; kernels do not, so a target asks for
the demands of each op and checks them before.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from argosy.ir.dim import DimLike, bounds, dim_max, equal, symbols_in
from argosy.ir.module import Instruction

__all__ = [
    "BOTH",
    "Demand",
    "demand_broadcast",
    "demand_cover",
    "demand_repeats",
    "demand_room",
    "demands_of",
    "differ",
]


BOTH: Final = 3
"""Sides of a demand that may be 1: the left and the right one."""


@dataclass(frozen=True, slots=True)
class Demand:
    """`left` and `right` are equal; or `left` is 1 where bit 0 of `spreads` is set, `right` where bit 1 is.

    `axis` is told, -1 for none.
    """

    left: DimLike
    right: DimLike
    axis: int = -1
    spreads: int = 0

    @property
    def symbols(self) -> frozenset[str]:
        """Names of the symbols on which it depends."""
        return frozenset(symbol.name for side in (self.left, self.right) for symbol in symbols_in(side))


_NOTED: Final[ContextVar[list[Demand] | None]] = ContextVar("demands", default=None)
"""Where `demands_of` listens; nothing is noted elsewhere."""


def differ(left: DimLike, right: DimLike, axis: int = -1) -> bool:
    """Whether two dims certainly differ, which they must not."""
    same = equal(left, right)
    if same is None:
        _note(Demand(left, right, axis))
    return same is False


def demand_broadcast(left: DimLike, right: DimLike, axis: int = -1) -> None:
    """Say that two dims must be equal, or one of them 1."""
    _note(Demand(left, right, axis, spreads=BOTH))


def demand_repeats(part: DimLike, whole: DimLike, axis: int = -1) -> None:
    """Say that a dim must be another one, or 1."""
    _note(Demand(part, whole, axis, spreads=1))


def demand_room(room: DimLike, axis: int = -1) -> None:
    """Say that a size must not be negative."""
    low = bounds(room)[0]
    if low is None or low < 0:
        _note(Demand(dim_max(0 - room, 0), 0, axis))


def demand_cover(outer: Sequence[DimLike], inner: Sequence[DimLike], but: int) -> None:
    """Say that a shape is nowhere larger than another of its rank, but for one axis."""
    for axis, (size, part) in enumerate(zip(outer, inner, strict=True)):
        if axis != but % len(outer):
            demand_room(size - part, axis)


def demands_of(instruction: Instruction) -> tuple[Demand, ...]:
    """What must hold of the operands of an instruction, as far as it is not certain; each once."""
    found: list[Demand] = []
    token = _NOTED.set(found)
    try:
        instruction.op.result_types(*instruction.operands)
    finally:
        _NOTED.reset(token)
    return tuple(dict.fromkeys(found))


def _note(demand: Demand) -> None:
    noted = _NOTED.get()
    if noted is not None:
        noted.append(demand)
