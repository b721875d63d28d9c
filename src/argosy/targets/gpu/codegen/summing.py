"""What products and convolutions share behind their sums: parts of split sums, and the epilogue.

An inner axis may be split between programs of one tile. Each writes its part to memory and counts itself; the last to
come adds all parts in their order, so that the sum does not depend on which one it was. What the epilogue reads is
loaded before the sums where asked for: the loads then fly while the kernel waits for the one before it or multiplies.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.ir import access as maps
from argosy.ir.access import axis_index
from argosy.ir.dtype import DType
from argosy.ir.module import Value
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.kernel import KernelWriter
from argosy.targets.lowering.accesses import DeclinedError, axes_access

__all__ = ["Tile", "finish", "part_range"]

_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_ASSIGNED: Final = re.compile(r"([A-Za-z_]\w*) = ")


@dataclass(frozen=True, slots=True)
class Tile:
    """Rows, columns and inner steps of a tile, warps, and stages of loads in flight; programs in a `group` of rows.

    The inner axis is split between `splits` programs. With `early`, what the epilogue reads is loaded before the sums.
    """

    rows: int
    columns: int
    inner: int
    warps: int = 4
    stages: int = 2
    group: int = 8
    splits: int = 1
    early: bool = False


def part_range(writer: KernelWriter, steps: int, tile: Tile) -> tuple[int, str]:
    """How many of the steps of the inner axis a program does, and the first one; the part is axis 2 of the grid."""
    if tile.splits == 1:
        return steps, ""
    if steps % tile.splits:
        raise DeclinedError(f"{steps} steps are not split into {tile.splits} equal parts")
    writer.text.line(f"part = {writer.program(2)}")
    return steps // tile.splits, f"part * {steps // tile.splits} + "


def finish(
    writer: KernelWriter,
    mark: int,
    tile: Tile,
    sums: DType,
    result: Value,
    number: str,
    weights: Sequence[bool],
    bias: Value | None = None,
) -> None:
    """Write what follows the sums in `acc`, of which `mark` is the place before them; `number` is that of the tile.

    `weights` are the parameters that no kernel of a run writes: they are read before the kernel waits. The `bias` of a
    convolution is one number to each of its channels, axis 1.
    """
    text, elements, root = writer.text, writer.elements, writer.module.results[0]
    writer.release()
    with _last(writer, tile, number):
        start = text.mark()
        given = "acc" if sums.compute is result.dtype.compute else f"acc.to({scalar.compute_type(result.dtype)})"
        if bias is not None:
            along = axes_access(result.shape, bias.shape, (axis_index(1, result.shape[1]),))
            given = f"{given} + {elements.of(bias, along)}"
        elements.given[result] = elements.let(given)
        place = maps.identity(root.shape)
        value = elements.of(root, place)
        lines = text.take(start)
        first, then = _early(lines, _changing(writer, weights)) if tile.early else ([], [])
        hoisted = {*first, *then}
        for line in lines:
            if line not in hoisted:
                text.line(line)
        writer.store(value, root.dtype, place)
    text.insert(mark, then)
    writer.wait(mark)
    text.insert(mark, first)


def _changing(writer: KernelWriter, weights: Sequence[bool]) -> set[str]:
    """The pointers to what runs write."""
    count = len(writer.module.parameters)
    return {f"p{place}" for place in range(count) if place >= len(weights) or not weights[place]}


def _early(lines: Sequence[str], changing: set[str]) -> tuple[list[str], list[str]]:
    """Those of some assignments that need no sums: the ones that read only weights, and the others."""
    behind, waiting = {"acc"}, set(changing)
    first: list[str] = []
    then: list[str] = []
    for line in lines:
        found = _ASSIGNED.match(line)
        if found is None:
            break
        names = set(_NAME.findall(line[found.end() :]))
        if names & behind:
            behind.add(found[1])
        elif names & waiting:
            waiting.add(found[1])
            then.append(line)
        else:
            first.append(line)
    return first, then


@contextlib.contextmanager
def _last(writer: KernelWriter, tile: Tile, number: str) -> Iterator[None]:
    """The program that has the whole sums in `acc`: the last of those that share a tile."""
    if tile.splits == 1:
        yield
        return
    text, parts, size = writer.text, writer.temporary(0), tile.rows * tile.columns
    text.line(f"tile = {number}")
    text.line(
        f"cells = tl.arange(0, {tile.rows})[:, None] * {tile.columns} + tl.arange(0, {tile.columns})[None, :]"
        f" + tile * {tile.splits * size}"
    )
    text.line(f"tl.store({parts} + cells + part * {size}, acc)")
    text.line("tl.debug_barrier()")  # all of the part is written before it counts
    text.line("met = tl.atomic_add(counters + tile, 1)")
    with text.block(f"if met == {tile.splits - 1}:"):
        text.line("tl.store(counters + tile, 0)")
        for part in range(tile.splits):
            read = f'tl.load({parts} + cells + {part * size}, cache_modifier=".cg")'
            text.line(f"acc = {f'acc + {read}' if part else read}")
        yield
