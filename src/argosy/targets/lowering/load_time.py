"""Work on weights alone: which instructions are done once, when an artifact is loaded, instead of in every run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from argosy.artifact.lifetimes import lifetimes, root_of
from argosy.artifact.plan import Block, BufferRecord
from argosy.ir.module import Instruction, Value
from argosy.ir.types import TensorType

__all__ = ["is_done_at_load", "without_passing"]

_SMALL: Final = 1 << 20
"""Bytes that a result may always take."""
_GROWTH: Final = 8
"""How many times larger than its operands a result may be."""


def is_done_at_load(instruction: Instruction, is_weight: Callable[[Value], bool]) -> bool:
    """Whether the results depend on weights alone, and are small enough to be kept."""
    operands = [operand for operand in instruction.operands if operand is not None]
    if not operands or not instruction.op.pure or not all(map(is_weight, operands)) or _reads_sizes(instruction):
        return False
    made = [_bytes(value) for value in instruction.results]
    given = [_bytes(value) for value in operands]
    if any(size is None for size in made):
        return False
    return sum(size or 0 for size in made) <= max(_SMALL, _GROWTH * sum(size or 0 for size in given))


def _reads_sizes(instruction: Instruction) -> bool:
    """Whether a symbol is an operand in disguise, here or in a body: its value is known in runs only."""
    inner = (inner for module in instruction.op.modules() for inner in module.walk())
    return instruction.op.has_symbols() or any(each.op.has_symbols() for each in inner)


def _bytes(value: Value) -> int | None:
    """The size of a tensor of numbers; None where only a run can tell."""
    kind = value.type
    if not isinstance(kind, TensorType) or kind.dims is None or kind.dtype.kind == "string":
        return None
    sizes = [size for size in kind.dims if isinstance(size, int)]  # none times an unknown size is unknown too
    return kind.dtype.byte_size(math.prod(sizes)) if len(sizes) == len(kind.dims) else None


def without_passing(
    buffers: Sequence[BufferRecord], prepared: Iterable[int], body: Sequence[Block], outputs: Iterable[int]
) -> tuple[list[BufferRecord], tuple[int, ...]]:
    """The buffers, of which those that only serve to prepare others do not stay, and what is left of `prepared`."""
    kept = {root_of(buffers, number) for number in lifetimes(buffers, body, kept=outputs)}
    stay = tuple(number for number in prepared if number in kept)
    passing = set(prepared) - set(stay)
    return [replace(b, kind="planned", arena=0) if n in passing else b for n, b in enumerate(buffers)], stay
