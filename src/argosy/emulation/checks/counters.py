"""Counters of outstanding memory instructions: which ones an instruction raises, and which it waits for.

Sources: AMD's instruction set documents, "Data Dependency Resolution".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from argosy.emulation.archs import Counters
from argosy.emulation.checks.registers import access_of
from argosy.emulation.decode import Instruction

__all__ = ["COPIES", "Event", "raised", "waited"]

COPIES: Final = "asynccnt"
"""What copies by lanes into local memory raise; other copies raise what loads do."""
_PART: Final = re.compile(r"(vmcnt|lgkmcnt|expcnt|vscnt)(_sat)?\((\d+|0x[0-9a-fA-F]+)\)")


@dataclass(frozen=True, slots=True)
class Event:
    """What an instruction raises: a counter, and whether its kind is done in order there."""

    counter: str
    ordered: bool


def raised(instruction: Instruction, counters: Counters) -> Iterator[Event]:
    """What an instruction raises."""
    form, name = instruction.memory, instruction.name
    if form is None:
        if name in ("ds_bpermute_b32", "ds_permute_b32", "ds_swizzle_b32"):
            yield Event(counters.local, ordered=True)
        elif name in ("s_memtime", "s_memrealtime"):
            yield Event(counters.scalar, ordered=False)
        return
    if form.into == "lanes":
        yield Event(COPIES, ordered=True)
    elif form.space == "scalar":
        yield Event(counters.scalar, ordered=False)
    elif form.space == "lds":
        yield Event(counters.local, ordered=True)
    else:
        flat = name.startswith("flat_")
        only_stores = form.store and not access_of(instruction).loads
        yield Event(counters.store if only_stores else counters.load, ordered=not flat)
        if flat:
            yield Event(counters.local, ordered=False)


def waited(instruction: Instruction, counters: Counters) -> Iterator[tuple[str, int]]:
    """The counters that an instruction waits for, and to how much they fall."""
    statement = instruction.statement
    name, operands = statement.mnemonic, statement.operands
    if name == "s_waitcnt":
        parts = _PART.findall(" ".join((*operands, *statement.modifiers)))
        if parts:
            yield from ((counter, int(number, 0)) for counter, _, number in parts)
        elif operands:
            yield from _unpacked(int(operands[0], 0), counters)
    elif name.startswith("s_waitcnt_") and name.endswith("cnt") and len(operands) == 2 and operands[0] == "null":
        yield name.removeprefix("s_waitcnt_"), int(operands[1], 0)
    elif name.startswith("s_wait_") and name.endswith("cnt") and operands:
        names, number = name.removeprefix("s_wait_").split("_"), int(operands[0], 0)
        if len(names) == 2:  # that of local memory in the lower six bits, the other one above
            yield from ((names[0], number >> 8 & 63), (names[1], number & 63))
        else:
            yield names[0], number
    elif name == "s_wait_idle":
        every = {counters.load, counters.store, counters.local, counters.scalar, COPIES}
        yield from ((counter, 0) for counter in every)


def _unpacked(number: int, counters: Counters) -> Iterator[tuple[str, int]]:
    for counter, pieces in counters.bits:
        value, shift = 0, 0
        for low, size in pieces:
            value |= (number >> low & ((1 << size) - 1)) << shift
            shift += size
        yield counter, value
