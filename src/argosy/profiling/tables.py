"""Tables of times for people, at most 100 columns wide: the same columns in each, units in the heading."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from argosy.profiling.instructions import InstructionTime, OpTime, Rated, ShapeTime

__all__ = ["WIDTH", "instruction_table", "op_table", "shape_table"]

WIDTH: Final = 100
_LONGEST_OP: Final = 28
"""Characters of an op that nodes leave room for."""
_RATE: Final = 8
"""Characters of a rate."""
_DIMS: Final = re.compile(r"\[[^]]*\]")
_KEPT: Final = "\N{NO-BREAK SPACE}"
_HEADINGS: Final = {"gflops": "GFLOP/s", "gbytes": "GB/s", "roofline": "roofline"}

R = TypeVar("R", bound=Rated)


def op_table(ops: Sequence[OpTime], most: int, *, rated: bool = True) -> Iterator[str]:
    """The slowest ops, `most` of them, and the rest in a line; without rates where these mean nothing."""
    yield from _table(ops, most, "op", lambda entry, _: [f"{entry.count:5} x {entry.op}"], rated=rated)


def shape_table(shapes: Sequence[ShapeTime], most: int, *, rated: bool = True) -> Iterator[str]:
    """The same by op, operands and results, which have lines of their own."""

    def told(entry: ShapeTime, _: int) -> list[str]:
        types = _DIMS.sub(lambda dims: dims[0].replace(" ", _KEPT), f"({entry.operands}) -> {entry.type or 'nothing'}")
        lines = textwrap.wrap(types, WIDTH - 8, subsequent_indent="  ")
        return [f"{entry.count:5} x {entry.op}", *(line.replace(_KEPT, " ") for line in lines)]

    yield from _table(shapes, most, "op, and (operands) -> results", told, rated=rated)


def instruction_table(instructions: Sequence[InstructionTime], most: int, *, rated: bool = True) -> Iterator[str]:
    """The slowest instructions with the node of each; a long name is on a line of its own."""
    slowest = sorted(instructions, key=lambda entry: -entry.seconds)
    width = min(max((len(entry.op) for entry in slowest[:most]), default=0), _LONGEST_OP)

    def told(entry: InstructionTime, room: int) -> list[str]:
        beside = f"{entry.op:{width}}  {entry.node}".rstrip()
        return [beside] if len(beside) <= room else [_begin(entry.op, room), _end(entry.node, WIDTH - 8)]

    yield from _table(slowest, most, f"{'op':{width}}  node", told, rated=rated)


def _table(
    entries: Sequence[R], most: int, heading: str, told: Callable[[R, int], Sequence[str]], *, rated: bool
) -> Iterator[str]:
    """`told` gives what follows the numbers of an entry, which has that room, and lines below it."""
    shown, rest = entries[:most], entries[most:]
    rates = [name for name in _HEADINGS if rated and any(entry.rates[name] is not None for entry in shown)]
    in_ms = any(entry.seconds >= 1e-3 for entry in shown)
    widths = [6, 11, *[_RATE] * len(rates)]

    def line(cells: Sequence[str], tail: str) -> str:
        return f"  {'  '.join(f'{cell:>{width}}' for cell, width in zip(cells, widths, strict=True))}  {tail}".rstrip()

    def numbers(share: float, seconds: float) -> list[str]:
        return [f"{share:.1%}", f"{seconds * 1e3:.3f}" if in_ms else f"{seconds * 1e6:.1f}"]

    room = WIDTH - len(line([""] * len(widths), "x")) + 1
    yield line(["share", f"time, {'ms' if in_ms else 'µs'}", *(_HEADINGS[name] for name in rates)], heading)
    for entry in shown:
        first, *below = told(entry, room)
        yield line([*numbers(entry.share, entry.seconds), *(_rate(name, entry.rates[name]) for name in rates)], first)
        yield from (f"{'':8}{text}" for text in below)
    if rest:
        sums = numbers(*(math.fsum(getattr(entry, name) for entry in rest) for name in ("share", "seconds")))
        yield line([*sums, *([""] * len(rates))], f"{len(rest)} more, in --json")


def _rate(name: str, rate: float | None) -> str:
    if rate is None:
        return ""
    if name == "roofline":
        return f"{rate:.0%}"
    return f"{rate:.1f}" if rate >= 1 else f"{rate:.2g}"


def _begin(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"


def _end(name: str, room: int) -> str:
    """The end of a long name, from a `/` on where there is one: `argosy why` knows such ends."""
    if len(name) <= room:
        return name
    end = name[len(name) - room + 1 :]
    return f"…{end[max(end.find('/'), 0) :]}"
