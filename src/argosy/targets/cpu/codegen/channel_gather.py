"""Blocked images made of others whose channels lie in another order, as a channel shuffle or a split leaves them.

Which channels they are is known, so each block of 16 is put together by shuffles of the few blocks that hold them.
What is computed of each element on the way is computed of the 16.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from argosy.ir import access as maps
from argosy.ir.access import Access, axis_index
from argosy.ir.dim import equal, substitute, symbols_in
from argosy.ir.dtype import FLOAT32, DType
from argosy.ir.module import Instruction, Module
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen.c_text import CText
from argosy.targets.cpu.codegen.copying import decompose, is_view, share
from argosy.targets.cpu.codegen.kernel import Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.reorder import place, zero_halo
from argosy.targets.cpu.codegen.vector_elements import VectorElements
from argosy.targets.cpu.layout import LANES, Blocked
from argosy.targets.lowering.accesses import DeclinedError

__all__ = ["first_of_blocks", "gather_channels", "gathers_channels"]

_MOST = 2048
"""Channels up to which each block has code of its own."""
Channels = tuple[int, ...]


class _Gathered(VectorElements):
    """Sixteen channels of a pixel, by what `gather` makes of a pointer and the channels of all elements."""

    def __init__(
        self, text: CText, pointers: dict[Instruction, str], gather: Callable[[str, Access, Channels], str]
    ) -> None:
        super().__init__(text, pointers, 1)
        self._gather = gather

    def load(self, dtype: DType, pointer: str, access: Access) -> str:
        channels = _channels(access)
        if dtype is not FLOAT32 or channels is None:
            raise DeclinedError("more changes than the order of channels")
        return self._gather(pointer, access, channels)


def _channels(access: Access) -> Channels | None:
    """Which channel of the source is at each channel, where they are known and all else stays at its place."""
    count = access.extents[1] if len(access.extents) > 2 else None
    if len(access.source) != len(access.extents) or not isinstance(count, int) or not 0 < count <= _MOST:
        return None
    own = maps.identity(access.extents).indices
    pairs = list(zip(access.indices, own, access.extents, access.source, strict=True))
    if any(index != mine or not equal(size, its) for index, mine, size, its in [pairs[0], *pairs[2:]]):
        return None
    names = {symbol.name for symbol in symbols_in(own[1])}
    found = [substitute(access.indices[1], dict.fromkeys(names, number)) for number in range(count)]
    numbers = tuple(number for number in found if isinstance(number, int))
    return numbers if len(numbers) == count else None


def gathers_channels(module: Module) -> bool:
    """Whether the result of `module` is computed element by element of its parameters at channels that are known."""
    value, read = module.results[0], set()
    writer = KernelWriter(module, [FLOAT32])

    def gather(pointer: str, access: Access, channels: Channels) -> str:
        del access, channels
        read.add(pointer)
        return "x"

    if value.dtype is not FLOAT32 or value.rank < 3:
        return False
    try:
        _Gathered(writer.text, writer.pointers, gather).of(value, maps.identity(value.shape))
    except DeclinedError:
        return False
    return bool(read)


def first_of_blocks(module: Module) -> int | None:
    """The channel at which the result begins in the only parameter, where it is whole blocks of it as they lie there.

    They lie side by side where there is one image.
    """
    value, found = module.results[0], list[Channels]()
    if len(module.parameters) != 1 or not is_view(module) or not equal(value.shape[0], 1):
        return None

    def gather(pointer: str, access: Access, channels: Channels) -> str:
        del pointer, access
        found.append(channels)
        return "x"

    writer = KernelWriter(module, [value.dtype])
    try:
        _Gathered(writer.text, writer.pointers, gather).of(value, maps.identity(value.shape))
    except DeclinedError:
        return None
    first = found[0][0] if len(found) == 1 else 1
    return first if first % LANES == 0 and found[0] == tuple(range(first, first + len(found[0]))) else None


def gather_channels(module: Module, sources: Mapping[str, Blocked], layout: Blocked) -> Kernel:
    """The result of `module` as a blocked image; `sources` has the layouts of its parameters, by pointer."""
    writer = KernelWriter(module, [FLOAT32])
    text, value = writer.text, module.results[0]
    shape, spatial = value.shape, value.shape[2:]
    blocks = -(-(shape[1] if isinstance(shape[1], int) else 0) // LANES)
    places = [*(axis_index(axis + 2, size) for axis, size in enumerate(spatial[:-1])), 0]
    with share(writer, "unit", shape[0] * blocks):
        text.line(f"const int64 block = unit % {blocks}, i0 = unit / {blocks};")
        text.line(f"float32 *restrict plane = y0 + unit * {text.dim(layout.plane(spatial))} * {LANES};")
        zero_halo(text, layout, spatial, "unit")
        with text.loop("line", "0", text.dim(product(spatial[:-1]))):
            decompose(text, "line", spatial[:-1], 2)
            text.line(f"float32 *restrict to = plane + {text.dim(layout.pixel(spatial, places))} * {LANES};")
            with text.block("switch (block)"):
                for block in range(blocks):
                    text.line(f"case {block}:")
                    with text.loop("pixel", "0", text.dim(spatial[-1])):

                        def gather(pointer: str, access: Access, channels: Channels, first: int = block * LANES) -> str:
                            layout = sources[pointer]
                            at = text.dim(layout.offset(access.source, place("i0"), 0, places))
                            plane = text.dim(layout.plane(access.source[2:]))
                            return _mixed(text, f"{pointer} + {at}", channels[first : first + LANES], plane)

                        made = _Gathered(text, writer.pointers, gather).of(value, maps.identity(shape))
                        text.line(f"*(float32x16 *)(to + pixel * {LANES}) = {made};")
                    text.line("break;")
    kernel = writer.kernel(chunk_count(product(shape), shape[0] * blocks))
    first = first_of_blocks(module)
    if first is None or any(source != layout for source in sources.values()):
        return kernel
    return replace(kernel, pieces=((0, product((first, layout.plane(spatial), layout.dtype.bits // 8))),))


def _mixed(text: CText, pointer: str, channels: Channels, plane: str) -> str:
    """The channels, at most 16, of a pixel as a vector; block 0 of the line begins at `pointer`."""
    needed = list(dict.fromkeys(channel // LANES for channel in channels))
    loads = [
        text.let("float32x16", f"*(const float32x16 *)({pointer} + ({block} * {plane} + pixel) * {LANES})")
        for block in needed
    ]
    value = loads[0]
    if channels == tuple(range(needed[0] * LANES, needed[0] * LANES + len(channels))):
        return value
    for number in range(min(1, len(needed) - 1), len(needed)):
        # What is there already stays at its place, but that the first shuffle finds it where it was loaded.
        lanes = [-1] * LANES
        for lane, channel in enumerate(channels):
            block = channel // LANES
            if block == needed[number]:
                lanes[lane] = channel % LANES + (LANES if number else 0)
            elif block in needed[:number]:
                lanes[lane] = channel % LANES if number == 1 else lane
        order = ", ".join(map(str, lanes))
        value = text.let("float32x16", f"__builtin_shufflevector({value}, {loads[number]}, {order})")
    return value
