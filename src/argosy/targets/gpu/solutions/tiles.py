"""Which tiles a product is cut into: an analytic model of its time ranks all of them.

A product runs in waves of as many programs as the device holds. A program takes a fixed time, then the longest of its
arithmetic, its loads and the latency of its steps, then its epilogue:

    waves * (start + max(o * flops / F, o * bytes / B, steps * latency) + o * elements * epilogue)

with `o` programs on one unit, and the time to put parts together where the inner axis is split. The constants were
fitted to 1,011 kernels on an H200; other devices differ by their peaks and bandwidths. On shapes it was not fitted to
the first choice loses 7 to 14 % to the best, which only measuring finds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from argosy.targets.gpu.arches.row import GpuArch
from argosy.targets.gpu.codegen.blocks import at_most
from argosy.targets.gpu.codegen.summing import Tile

__all__ = ["ProductSize", "tile_time", "tiles"]

# In microseconds, on an H200.
_START: Final = 1.8
_LATENCY: Final = 0.22
_EPILOGUE: Final = 5e-5
_PROGRAM: Final = 0.001
_SPLIT: Final = 0.6
_SPLIT_TRAFFIC: Final = 1.5
# Shares of the data sheet's peak that a loop of products reaches, and loads from the cache in units of bandwidth.
_REACHED: Final = 0.69
_CACHED: Final = 2.9
_PEAK: Final = 5e12  # operations and bytes a second of a unit, where no data sheet says so
_BANDWIDTH: Final = 30e9
_FEW_ROWS: Final = 0.3
"""The share of arithmetic that tiles of fewer rows than matrix instructions of a whole warp group keep."""
_LEAST_STEPS: Final = 2
_MOST_SPLITS: Final = 8
_REGISTERS: Final = 64
"""Registers of a thread beside its sums."""


@dataclass(frozen=True, slots=True)
class ProductSize:
    """A product as its tiles see it: rows, columns, inner axis, products side by side, bytes of an element.

    `inner` is counted in `taps` stretches, each cut into steps by itself. `weight` is how costly the epilogue is, 1 a
    plain one; it reads `others`, tensors of the result's size. A product is split only where `fixed`: its sizes are
    known.
    """

    rows: int
    columns: int
    inner: int
    batch: int
    width: int
    taps: int = 1
    weight: float = 1.0
    kind: str = "fp16"
    fixed: bool = True
    others: int = 0

    @property
    def has_functions(self) -> bool:
        """Whether the epilogue computes functions."""
        return self.weight > 1 + self.others


def tiles(size: ProductSize, arch: GpuArch) -> list[Tile]:
    """Tiles to try, best first."""
    found = [(tile_time(tile, size, arch), tile) for tile in _candidates(size, arch)]
    found.sort(key=lambda each: each[0])  # of equals, the first listed: the larger
    units = arch.units or 64
    return [replace(tile, early=_is_early(tile, size, units)) for _, tile in found]


def _is_early(tile: Tile, size: ProductSize, units: int) -> bool:
    """Whether the epilogue's operands are read before the sums: where waiting counts, and registers hold both."""
    return _programs(tile, size) < 2 * units and tile.rows * tile.columns <= 64 * 64 * tile.warps // 4


def _candidates(size: ProductSize, arch: GpuArch) -> Iterator[Tile]:
    """Tiles that fit: into the shared memory of a block, and their sums into half of a thread's registers."""
    waits = arch.has("async_copy")
    heavy = size.others > 0 if arch.has("tensor_copy") else size.weight > 1
    high_most, wide_most = max(at_most(size.rows, 128), 16), max(at_most(size.columns, 256), 16)
    stretch = -(-size.inner // size.taps)
    # Without matrix instructions threads hold the operands of a step in registers, beside their sums.
    by_hand = not arch.has(f"matrix_{size.kind}")
    small = by_hand or size.kind == "fp32"
    deepest = 16 if by_hand else 32 if small else 128
    # NVIDIA's instructions take at least 32 bytes of a row at once, CDNA 4's fastest on 8-bit floats 64.
    least = 16 if size.width > 1 else 32 if stretch <= 32 else 64
    for high in (128, 64, 32, 16):
        for wide in (256, 128, 64, 32, 16):
            if high > high_most or wide > wide_most or (small and high * wide > 64 * 64):
                continue
            # Spills, where loads go through registers too or the epilogue holds more than a tile.
            if wide == 256 and (high < 128 or not waits or heavy):
                continue
            for deep in (128, 64, 32, 16):
                if deep * size.width > 256 or deep > deepest or not least <= deep <= max(at_most(stretch, 128), least):
                    continue
                if high * wide > 128 * 64 and deep > 64:
                    continue
                stages = (4 if high + wide <= 128 else 3) if waits else 2
                # The sums of a tile take at most 128 registers of a thread, 64 where loads go through registers too.
                warps = 8 if high * wide > (128 if waits else 64) * 4 * arch.wave_size else 4
                tile = Tile(high, wide, deep, warps, stages)
                steps = _steps(tile, size)
                tile = replace(tile, stages=max(min(stages, steps), 2))
                if tile.stages * deep * (high + wide) * size.width > arch.shared_memory_per_block:
                    continue
                for splits in range(1, _MOST_SPLITS + 1):
                    if splits == 1 or (size.fixed and steps % splits == 0 and steps // splits >= _LEAST_STEPS):
                        yield replace(tile, splits=splits)


def _steps(tile: Tile, size: ProductSize) -> int:
    stretch = -(-size.inner // size.taps)
    return size.taps * -(-stretch // tile.inner)


def _programs(tile: Tile, size: ProductSize) -> int:
    return -(-size.rows // tile.rows) * -(-size.columns // tile.columns) * size.batch * tile.splits


def tile_time(tile: Tile, size: ProductSize, arch: GpuArch) -> float:
    """What the model says that a product takes in such tiles, in microseconds."""
    units = arch.units or 64
    peak, bandwidth = arch.product.peak(size.kind), arch.product.bandwidth
    rate = (peak * _REACHED / units if peak else _PEAK) / 1e6
    loads = (bandwidth * _CACHED / units if bandwidth else _BANDWIDTH) / 1e6
    if tile.rows < 64:
        rate *= _FEW_ROWS
    threads = tile.warps * arch.wave_size
    registers = min(tile.rows * tile.columns // threads + _REGISTERS, arch.registers_per_thread)
    shared = tile.stages * tile.inner * (tile.rows + tile.columns) * size.width
    held = max(
        min(
            arch.shared_memory_per_unit // max(shared, 1),
            arch.registers_per_unit // (threads * registers),
            arch.max_threads_per_unit // threads,
        ),
        1,
    )
    programs, steps = _programs(tile, size), _steps(tile, size) // tile.splits
    depth = steps * tile.inner
    whole, rest = divmod(programs, units * held)
    total = programs * _PROGRAM
    for count, together in ((whole, held), (1 if rest else 0, -(-rest // units))):
        work = together * 2 * tile.rows * tile.columns * depth / rate
        moved = together * (tile.rows + tile.columns) * depth * size.width / loads
        after = together * tile.rows * tile.columns * _EPILOGUE * (size.weight if tile.splits == 1 else 1)
        # Where all is one step, only other programs on the unit have something to do while that is loaded.
        start = _START / max(together, 1) if steps == 1 and whole else _START
        total += count * (start + max(work, moved, steps * _LATENCY) + after)
    if tile.splits > 1:
        traffic = tile.splits * size.rows * size.columns * size.batch * 8 / (3e6 * (bandwidth or 4.8e12) / 4.8e12)
        total += _SPLIT + _SPLIT_TRAFFIC * traffic
    return total
