"""The table of operations that compute each lane, or each wave's scalars, by themselves.

Types name how bits are read: u, i, f and b (no meaning) with 16, 32 or 64 bits, `mask` (a bit for each lane), and the
packed ones `pf16`, `pu16`, `pi16` and `pf32` (two halves, each computed by the same function). bfloat16 is read as u16:
packed it is `pbf16`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

__all__ = ["OPERATIONS", "RENAMED", "Operation", "Unit", "operation", "rename", "width"]

Unit = Literal["vector", "scalar"]
Meaning = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: the types of results and sources, and the function from one to the other.

    `keeps` says that the result's register is the last source too. A scalar operation whose `results` end with "scc"
    sets that bit. `clears` says that on gfx9 a 16-bit result clears the other half of its register.
    """

    name: str
    unit: Unit
    results: tuple[str, ...]
    sources: tuple[str, ...]
    meaning: Meaning
    keeps: bool = False
    clears: bool = True


OPERATIONS: Final[dict[str, Operation]] = {}
RENAMED: Final[dict[str, str]] = {}
"""Other names of operations, as later generations call them."""


def operation(
    names: str, results: str, sources: str, *, unit: Unit = "vector", keeps: bool = False, clears: bool = True
) -> Callable[[Meaning], Meaning]:
    """Enter a function under a name; further names, apart by spaces, are the same operation's on other generations."""

    def enter(meaning: Meaning) -> Meaning:
        first, *others = names.split()
        made = Operation(first, unit, tuple(results.split()), tuple(sources.split()), meaning, keeps, clears)
        if first in OPERATIONS or first in RENAMED:
            raise ValueError(f"the operation {first} is there twice")
        OPERATIONS[first] = made
        for other in others:
            rename(other, first)
        return meaning

    return enter


def rename(other: str, name: str) -> None:
    """Say that `other` is what `name` is called elsewhere."""
    if other in OPERATIONS or other in RENAMED:
        raise ValueError(f"the operation {other} is there twice")
    RENAMED[other] = name


def width(kind: str) -> int:
    """Bits of a type."""
    return 1 if kind in ("mask", "scc") else 64 if kind == "pf32" else 32 if kind.startswith("p") else int(kind[1:])
