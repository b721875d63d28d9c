"""The blocks of a kernel and which follows which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from argosy.emulation.decode import Program

__all__ = ["Block", "blocks_of"]

_LEAVING: Final = ("s_branch", "s_endpgm", "s_setpc_b64", "s_swappc_b64")


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions from `first` up to `last`, which is not among them, and the blocks that may follow."""

    first: int
    last: int
    following: tuple[int, ...]


def blocks_of(program: Program) -> tuple[Block, ...]:
    """The blocks in the order of the text; the first is where waves begin."""
    instructions = program.instructions
    total = len(instructions)
    ends = {each.place + 1 for each in instructions if each.target >= 0 or each.name in _LEAVING}
    starts = sorted({0} | {place for place in program.joins | ends if place < total})
    number = {place: index for index, place in enumerate(starts)}
    blocks = []
    for first, last in zip(starts, [*starts[1:], total], strict=True):
        end = instructions[last - 1]
        following = [number[end.target]] if 0 <= end.target < total else []
        if end.name not in _LEAVING and last < total:
            following.append(number[last])
        blocks.append(Block(first, last, tuple(dict.fromkeys(following))))
    return tuple(blocks)
