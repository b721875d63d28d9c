"""What the ways to convolve cost, in cycles of a core: enough to choose between them.

A way works and waits for memory at the same time, so it costs the greater of the two. Work is that of the register
tiles: the multiply-adds that the level begins in a cycle, or two loads where a tile is too small to be bound by them,
and what each call of the tile costs. What is waited for is weights: activations come from the kernel before and stay
near. Of weights that the second cache does not hold, the first reading comes from memory, later ones from the third
cache.

The rate of memory is the lower one of two servers (Zen 4: 5 bytes a cycle, Sapphire Rapids: 4).
"""

from __future__ import annotations

import math
from typing import Final

from argosy.ir.dim import DimLike
from argosy.targets.cpu.arch import CpuArch
from argosy.targets.cpu.codegen.conv_window import Channels, Window
from argosy.targets.cpu.codegen.line_tiles import Lines
from argosy.targets.cpu.codegen.tile import BLOCK, Tile, balanced
from argosy.targets.cpu.codegen.winograd import Winograd

__all__ = ["direct_cycles", "line_cycles", "winograd_cycles"]

_FROM_MEMORY: Final = 4
"""Bytes a cycle."""
_CALL: Final = 40
"""Cycles to enter a tile, fill its sums and store them, beside its steps."""
_PIXELS: Final = 28
"""What an axis counts for whose size is known only when the program runs."""


def _size(dim: DimLike) -> int:
    return dim if isinstance(dim, int) else _PIXELS


def _tile(rows: int, tile: Tile, steps: int, arch: CpuArch) -> int:
    """Cycles of a call of a register tile of `rows` rows."""
    vectors = tile.vectors * _registers(arch)
    return steps * max(2 * rows * vectors // arch.multiply_adds, rows + vectors) // 2 + _CALL


def _tiles(rows: int, tile: Tile, steps: int, arch: CpuArch) -> int:
    """Cycles for `rows` rows by the columns of a panel."""
    parts, size, larger = balanced(rows, tile.rows)
    return larger * _tile(size + 1, tile, steps, arch) + (parts - larger) * _tile(size, tile, steps, arch)


def _waiting(weights: int, readings: int, arch: CpuArch) -> int:
    """Cycles until weights of so many bytes have been read some times."""
    again = 0 if weights <= arch.second_cache // 2 else readings - 1
    return weights // _FROM_MEMORY + again * weights // arch.third_cache_rate


def _registers(arch: CpuArch) -> int:
    """Registers that a vector of 16 numbers is."""
    return max(1, BLOCK * 32 // arch.vector_bits)


def direct_cycles(window: Window, tile: Tile, arch: CpuArch) -> int:
    """Cycles of a direct convolution by register tiles of `tile`."""
    *outer, width = (_size(dim) for dim in window.result[2:])
    panels = -(-_size(window.result[1]) // tile.columns)
    steps = _size(Channels.of(window, tile).depth) * math.prod(window.kernel)
    lines = max(1, tile.rows // max(width, 1)) if len(outer) == 1 and width <= tile.rows else 1
    count = _size(window.result[0]) * -(-math.prod(outer) // lines)
    work = panels * count * _tiles(width * lines, tile, steps, arch)
    return max(work, _waiting(panels * tile.columns * steps * 4, 1, arch))


def line_cycles(lines: Lines, arch: CpuArch) -> int:
    """Cycles of a convolution along lines."""
    return max(lines.cycles, _waiting(lines.window.group * lines.each * lines.depth * 4, 1, arch))


def winograd_cycles(winograd: Winograd, arch: CpuArch) -> int:
    """Cycles of a convolution by F(m x m, 3 x 3)."""
    registers, tile, places = _registers(arch), winograd.tile, winograd.places
    height, width = (-(-_size(dim) // winograd.transform.size) for dim in winograd.window.result[2:])
    tiles = height * width
    groups = _size(winograd.window.result[0]) * -(-tiles // winograd.together)
    blocks = winograd.panels * tile.vectors
    # On either side of the products each place is loaded, stored, and added about half as often as a tile is wide.
    transforms = places * (2 + winograd.transform.reach // 2) * (winograd.blocks + blocks) * registers // 2
    products = places * winograd.panels * _tiles(winograd.together, tile, winograd.channels, arch)
    work = groups * (products + winograd.together * transforms)
    weights = places * winograd.panels * tile.columns * winograd.channels * 4
    return max(work, _waiting(weights, groups, arch))
