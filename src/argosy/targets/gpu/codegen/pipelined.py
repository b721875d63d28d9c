"""Products for devices whose copy engine fills shared memory and whose warp groups multiply from it (Hopper).

One warp of a program does nothing but ask for the steps of its tiles. Two warp groups take turns: while one multiplies,
the other does what follows its sums, so that neither the matrix units nor the memory wait. The text is Gluon, Triton's
language of layouts. Source: V. Thakkar et al., CUTLASS 3, "Efficient GEMM in CUDA", warp-specialized ping-pong kernels.

Steps lie in a ring in shared memory. `full` and `empty` say of each place of the ring that it was filled, or read;
`turns` that the other group has multiplied its tile: a group must not wait for steps of its own before, as a barrier
tells only its last phase from the one before.

All groups wait for the kernel in front, which may still read where results go. None lets the next kernel start early:
that would wait where this one has all shared memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.kernel import WAIT, Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.prelude import prelude_for
from argosy.targets.gpu.codegen.tensor_map import TensorMap
from argosy.targets.lowering.accesses import DeclinedError

__all__ = ["DEEP", "PipelinedTile", "in_gluon", "pipelined_kernel"]

DEEP: Final = 64
"""Places of the inner axis in a step: 128 bytes of 16-bit numbers, the longest row that copies swizzle."""
_REGISTERS: Final = (240, 24)
"""Registers of a thread of the second group and of the copying warp; the first group keeps the rest, 240 too."""
_WARPS: Final = 4
_RANGE: Final = re.compile(r"tl\.arange\(0, (\w+)\)\[(:, None|None, :)\]")
_NUMBER: Final = re.compile(r"tl\.full\(\[\], (.+), (tl\.\w+)\)")
_STORE: Final = re.compile(r" +tl\.store\(p\d+ \+ (\w+|\([^,]*\)), (\(\w+\)\.to\(tl\.\w+\))(?:, mask=.*)?\)")
_READ: Final = re.compile(r" +(\w+) = tl\.load\(p(\d+) \+ (\w+|\([^,]*\))(?:, mask=.*)?\)")
_FOREIGN: Final = re.compile(r"libdevice\.|tl\.math\.|tl\.reduce|tl\.sum|tl\.cumsum|tl\.sort")
"""What Gluon has no word for, or another one."""


@dataclass(frozen=True, slots=True)
class PipelinedTile:
    """Rows of a tile, its columns as widths that are multiplied one after the other, and steps in the ring."""

    rows: int
    widths: tuple[int, ...]
    stages: int

    @property
    def columns(self) -> int:
        """All columns."""
        return sum(self.widths)

    def shared(self, width: int) -> int:
        """Bytes of shared memory for elements of `width` bytes."""
        return (self.stages * DEEP * (self.rows + self.columns) + 2 * self.rows * self.columns) * width


_LOAD: Final = """\
@triton.jit
def load_tiles({maps}, a_ring, {rings}, full, empty):
    {wait}
    slot = 0
    phase = 1
    for tile in range(tl.program_id(0), {tiles}, {programs}):
        down = {down}
        across = tile % {across}
{before}
        for step in range({steps}):
            hopper.mbarrier.wait(empty.index(slot), phase)
            hopper.mbarrier.expect(full.index(slot), {bytes})
{loads}
            slot += 1
            if slot == {stages}:
                slot = 0
                phase ^= 1
"""
_MULTIPLY: Final = """\
@triton.jit
def multiply_tiles(OWN: tl.constexpr, {given}):
    {wait}
    at = OWN * {steps}
    turn = 1 - OWN
    seen = 0
    for tile in range(tl.program_id(0) + OWN * {programs}, {tiles}, {pairs}):
        down = {down}
        across = tile % {across}
{asks}
        hopper.mbarrier.wait(turns.index(OWN), turn)
        turn ^= 1
{zeros}
        for step in range({steps}):
            slot = at % {stages}
            hopper.mbarrier.wait(full.index(slot), at // {stages} & 1)
{products}
            hopper.mbarrier.arrive(empty.index((at + {stages} - 1) % {stages}), pred=step > 0)
            at += 1
        hopper.mbarrier.arrive(turns.index(1 - OWN))
{waits}
        hopper.mbarrier.arrive(empty.index((at + {stages} - 1) % {stages}))
        at += {steps}
{arrived}
        seen ^= 1
{finishes}
{ended}
"""
_ENTRY: Final = """\
@triton.jit
def multiply_first({given}):
    multiply_tiles(0, {given})

@triton.jit
def multiply_second({given}):
    multiply_tiles(1, {given})

@triton.jit
def ARGOSY_ENTRY({maps}, {pointers}):
    a_ring = tl.allocate_shared_memory(map0.dtype, [{stages}, {high}, {deep}], map0.layout)
{allocated}
    full = tl.allocate_shared_memory(tl.int64, [{stages}, 1], hopper.mbarrier.MBarrierLayout())
    empty = tl.allocate_shared_memory(tl.int64, [{stages}, 1], hopper.mbarrier.MBarrierLayout())
    turns = tl.allocate_shared_memory(tl.int64, [2, 1], hopper.mbarrier.MBarrierLayout())
    ready = tl.allocate_shared_memory(tl.int64, [2, 1], hopper.mbarrier.MBarrierLayout())
    for place in tl.static_range({stages}):
        hopper.mbarrier.init(full.index(place), count=1)
        hopper.mbarrier.init(empty.index(place), count=1)
    for place in tl.static_range(2):
        hopper.mbarrier.init(turns.index(place), count=1)
        hopper.mbarrier.init(ready.index(place), count=1)
    hopper.fence_async_shared()
    tl.warp_specialize([
        (multiply_first, ({given})),
        (multiply_second, ({given})),
        (load_tiles, ({maps}, a_ring, {rings}, full, empty)),
    ], [{warps}, 1], [{registers}])
"""


def pipelined_kernel(
    writer: KernelWriter,
    tile: PipelinedTile,
    left: tuple[TensorMap, Sequence[str], str],
    right: tuple[TensorMap, str],
    size: tuple[int, int, int],
    programs: int,
    body: Callable[[], None],
    *,
    dense: bool,
    backwards: bool = False,
) -> Kernel:
    """The kernel of a product of `size` (rows, columns, steps) on so many `programs`.

    `left` is the map of the left operand, lines that a tile begins with (`down` is its number), and the call that
    copies a step of it; `right` the map of the right one and the place of a step in its rows. `body` defines the axes
    of the result from `row` and `column`, and writes what follows the sums in `acc`, to its store. Where the result is
    `dense`, it lies in memory as the matrix of these rows and columns. `backwards` are rows made from the last on.
    """
    rows, columns, steps = size
    if columns % tile.columns:
        raise DeclinedError("tiles do not fill its columns")
    across = columns // tile.columns
    tiles = -(-rows // tile.rows) * across
    kinds = [parameter.result().dtype for parameter in writer.module.parameters]
    kinds += [value.dtype for value in writer.module.results]
    finish = _Finish.of(writer, tile, rows, body, staged=dense and kinds[-1] is kinds[left[0].pointer])
    part = list(enumerate(tile.widths))
    places = [sum(tile.widths[:number]) for number, _ in part]
    maps = [left[0]]

    def mapped(pointer: int, sizes: tuple[int, ...], box: tuple[int, int]) -> str:
        """The name of a map; equal ones are one."""
        each = TensorMap(pointer, kinds[pointer], sizes, box)
        if each not in maps:
            maps.append(each)
        return f"map{maps.index(each)}"

    rights = [mapped(right[0].pointer, right[0].sizes, (DEEP, width)) for width in tile.widths]
    whole = (rows, columns)
    stores = [mapped(len(kinds) - 1, whole, (tile.rows, width)) for width in tile.widths] if finish.staged else []
    sides = [mapped(finish.side, whole, (tile.rows, width)) for width in tile.widths] if finish.side >= 0 else []
    rooms = [f"room{number}" for number, _ in part] if finish.staged else []
    pointers = ", ".join(f"p{place}" for place in range(len(kinds)))
    rings = ", ".join(f"b_ring{number}" for number, _ in part)
    names = ", ".join(f"map{place}" for place in range(len(maps)))
    width = kinds[left[0].pointer].bits // 8
    first = [f"across * {tile.columns} + {place}" for place in places]
    words = {
        "wait": WAIT, "maps": names, "pointers": pointers, "rings": rings,
        "given": ", ".join([names, pointers, "a_ring", rings, "full, empty, turns, ready", *rooms]),
        "tiles": tiles, "programs": min(programs, tiles), "pairs": 2 * min(programs, tiles), "across": across,
        "down": f"{tiles // across - 1} - tile // {across}" if backwards else f"tile // {across}",
        "steps": steps, "stages": tile.stages, "high": tile.rows, "deep": DEEP, "warps": _WARPS,
        "bytes": (tile.rows + tile.columns) * DEEP * width, "registers": ", ".join(map(str, _REGISTERS)),
        "before": _lines(2, left[1]),
        "loads": _lines(3, [
            left[2],
            *(f"hopper.tma.async_load({rights[number]}, [{right[1]}, {first[number]}], "
              f"full.index(slot), b_ring{number}.index(slot))" for number, _ in part),
        ]),
        "asks": _lines(2, [
            "hopper.tma.store_wait(0)",
            f"hopper.mbarrier.expect(ready.index(OWN), {tile.rows * tile.columns * width})",
            *(f"hopper.tma.async_load({side}, [down * {tile.rows}, {first[number]}], ready.index(OWN), "
              f"room{number}.index(OWN))" for number, side in enumerate(sides)),
        ] if sides else []),
        "arrived": _lines(2, ["hopper.mbarrier.wait(ready.index(OWN), seen)"] if sides else []),
        "zeros": _lines(2, [f"acc{number} = tl.zeros([{tile.rows}, {wide}], tl.float32, {_layout(wide)})"
                            for number, wide in part]),
        "products": _lines(3, [
            *(f"acc{number} = hopper.warpgroup_mma(a_ring.index(slot), b_ring{number}.index(slot), acc{number}, "
              "is_async=True)" for number, _ in part),
            *_waits(tile, len(part)),
        ]),
        "waits": _lines(2, _waits(tile, 0)),
        "finishes": _lines(2, [
            f"finish_tile(acc{number}, {wide}, down * {tile.rows}, {first[number]}, {pointers}"
            + (f", {stores[number]}, room{number}.index(OWN))" if finish.staged else ")") for number, wide in part
        ]),
        "ended": _lines(1, ["hopper.tma.store_wait(0)"] if finish.staged else []),
        "allocated": _lines(1, [
            *(f"b_ring{number} = tl.allocate_shared_memory({rights[number]}.dtype, "
              f"[{tile.stages}, {DEEP}, {wide}], {rights[number]}.layout)" for number, wide in part),
            *(f"{room} = tl.allocate_shared_memory({store}.dtype, [2, {tile.rows}, {wide}], {store}.layout)"
              for room, store, wide in zip(rooms, stores, tile.widths, strict=False)),
        ]),
    }  # fmt: skip
    text = "\n".join([finish.text, *(each.format(**words) for each in (_LOAD, _MULTIPLY, _ENTRY))])
    functions = prelude_for(text)
    text = f"{functions}\n{text}" if functions else text
    types = tuple(scalar.pointer_type(kind) for kind in kinds)
    launch = Launch((min(programs, tiles), 1, 1), _WARPS)
    return Kernel(text, types, (), "i32", launch, maps=tuple(maps), language="gluon")


def _layout(width: int | str) -> str:
    return f"tl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[{_WARPS}, 1], instr_shape=[16, {width}, 16])"


def _lines(depth: int, lines: Sequence[str]) -> str:
    return "\n".join("    " * depth + line for line in lines)


def _waits(tile: PipelinedTile, left: int) -> list[str]:
    """Wait until no more than `left` products are on their way; sums are known only to those who waited for them."""
    names = [f"acc{number}" for number in range(len(tile.widths))]
    joined = ", ".join(names)
    return [f"{joined} = hopper.warpgroup_mma_wait({left}, deps=({joined},))"]


@dataclass(frozen=True, slots=True)
class _Finish:
    """The function that does with a part of a tile's sums what follows them.

    Where `staged`, its result goes through shared memory, from which the copy engine stores it; `side` is the parameter
    that is read at the same places, and comes the same way; -1 where there is none.
    """

    text: str
    staged: bool
    side: int = -1

    @staticmethod
    def of(writer: KernelWriter, tile: PipelinedTile, rows: int, body: Callable[[], None], *, staged: bool) -> _Finish:
        """Write it."""
        text, elements = writer.text, writer.elements
        text.line(f"layout: tl.constexpr = {_layout('WIDE')}")
        text.root("row", f"first_row + tl.arange(0, {tile.rows})[:, None]")
        if rows % tile.rows:
            text.line(f"row_inside = row < {rows}")
            elements.masks.append(("row_inside", text.roots["row"]))
        text.root("column", "first_column + tl.arange(0, WIDE)[None, :]")
        writer.lanes = ("row", "column")
        body()
        if text.symbols or text.faults:
            raise DeclinedError("its sizes are symbolic")
        lines = in_gluon(text.text().splitlines(), "layout")
        given = [f"p{place}" for place in range(len(writer.module.parameters) + len(writer.module.results))]
        stored, side = _STORE.fullmatch(lines[-1]), -1
        if staged and stored is not None:
            place, value = stored.groups()
            for number, line in enumerate(lines):
                read = _READ.fullmatch(line)
                if read is not None and read[3] == place and side < 0:
                    lines[number], side = f"    {read[1]} = room.load(layout)", int(read[2])
            lines[-1:] = [
                *([] if side >= 0 else ["    hopper.tma.store_wait(0)"]),
                f"    room.store({value})",
                "    hopper.fence_async_shared()",
                "    hopper.tma.async_store(store, [first_row, first_column], room)",
            ]
            given += ["store", "room"]
        head = f"@triton.jit\ndef finish_tile(acc, WIDE: tl.constexpr, first_row, first_column, {', '.join(given)}):\n"
        return _Finish(head + "\n".join(lines) + "\n", staged and stored is not None, side)


def in_gluon(lines: Sequence[str], layout: str) -> list[str]:
    """Triton's lines as Gluon's, for a tile in a layout. Raises DeclinedError for what Gluon has no word for."""

    def ranged(found: re.Match[str]) -> str:
        along = 1 if found[2] == ":, None" else 0
        return f"tl.arange(0, {found[1]}, tl.SliceLayout({along}, {layout}))[{found[2]}]"

    text = _NUMBER.sub(r"tl.to_tensor(\1)", _RANGE.sub(ranged, "\n".join(lines)))
    if found := _FOREIGN.search(text):
        raise DeclinedError(f"what follows its sums takes {found[0]}")
    return text.splitlines()
