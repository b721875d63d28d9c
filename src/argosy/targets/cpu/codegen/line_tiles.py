"""How a convolution along lines is cut into tiles and patches, and what that costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from argosy.ir.dim import Dim, DimLike
from argosy.ir.dtype import FLOAT32
from argosy.ir.types import TensorType
from argosy.targets.cpu.arch import CpuArch
from argosy.targets.cpu.codegen.conv_window import Window
from argosy.targets.cpu.codegen.tile import BLOCK, balanced
from argosy.targets.lowering.accesses import DeclinedError

__all__ = ["Lines", "lines_type"]

_MOST_VECTORS: Final = 8
_MOST_OUTPUTS: Final = 6
_CALL: Final = 40
"""Cycles to enter a tile and to store it, beside its steps."""
_PATCH: Final = 24 << 10
"""Bytes of a patch that stay in the first cache beside the weights."""
_PIXELS: Final = 28
"""What an axis counts for whose size is known only when the program runs."""


@dataclass(frozen=True, slots=True)
class Lines:
    """How a convolution is done along lines: at most `outputs` outputs of a group by `vectors` vectors to a tile."""

    window: Window
    outputs: int
    vectors: int
    registers: int
    """Registers to a vector."""
    multiply_adds: int
    """Those of a register that the level begins in a cycle."""

    @staticmethod
    def of(window: Window, arch: CpuArch) -> Lines:
        """The tile that costs the least. Raises DeclinedError where channels are unknown, none or too many."""
        if any(not isinstance(count, int) or not count for count in (window.source[1], window.result[1])):
            raise DeclinedError("its channels are of symbolic number, or none")
        registers = max(1, BLOCK * FLOAT32.bits // arch.vector_bits)

        def tile(outputs: int) -> Lines:
            vectors = (arch.vector_registers - 2) // (registers * (outputs + 1))
            return Lines(window, outputs, max(1, min(vectors, _MOST_VECTORS)), registers, arch.multiply_adds)

        each = window.result[1] // window.group if isinstance(window.result[1], int) else 1
        tiles = [tile(outputs) for outputs in range(1, max(1, min(each, _MOST_OUTPUTS)) + 1)]
        best = min(tiles, key=lambda lines: lines.cycles)
        if best.scratch > arch.second_cache:
            raise DeclinedError("a patch of its image does not fit the second cache")
        return best

    @property
    def channels(self) -> int:
        """Input channels of a group."""
        return self._known(self.window.source[1]) // self.window.group

    @property
    def each(self) -> int:
        """Outputs of a group."""
        return self._known(self.window.result[1]) // self.window.group

    @property
    def depth(self) -> int:
        """Numbers to a sum."""
        return self.channels * math.prod(self.window.kernel)

    @property
    def rows(self) -> int:
        """Lines of a tile, of one plane: several where they are short."""
        *outer, width = self.window.result[2:]
        if not outer or any(isinstance(size, Dim) for size in (outer[-1], width, *self.window.source[-2:])):
            return 1
        along = min(-(-self._known(width) // BLOCK), self.vectors)
        return max(1, min(self._known(outer[-1]), self.vectors // max(along, 1)))

    @property
    def widths(self) -> list[int]:
        """Vectors beside each other that a tile may have."""
        width = self.window.result[-1]
        if isinstance(width, Dim):
            return list(range(1, self.vectors + 1))
        _, size, wider = balanced(-(-width // BLOCK), self.vectors)
        return sorted({size, size + 1} - {0}) if wider else ([size] if size else [])

    @property
    def heights(self) -> list[int]:
        """Outputs that a tile may have."""
        _, size, larger = balanced(self.each, self.outputs)
        return sorted({size, size + 1} - {0}) if larger else [size]

    @property
    def band(self) -> int:
        """Lines of the result that share a patch of the image: as many as fill the first cache with it."""
        outer = self.window.result[2:-1]
        if not outer or (self.rows == 1 and self.window.dilations[-2] > 2):
            return 1
        reach = (self.window.kernel[-2] - 1) * self.window.dilations[-2] + 1
        room = _PATCH // (4 * self.channels * math.prod(self.window.kernel[:-2]) * self.pitch)
        lines = max(1, (room - reach) // self.window.strides[-2] + 1)
        if not isinstance(outer[-1], Dim):
            lines = balanced(outer[-1], lines)[1] + 1
        return -(-lines // self.rows) * self.rows

    @property
    def patch(self) -> list[tuple[int, int, int]]:
        """Of each axis but the last: lines of a patch, how far apart they lie in the image, lines from tap to tap."""
        found = [
            (taps, dilation, 1)
            for taps, dilation in zip(self.window.kernel[:-1], self.window.dilations[:-1], strict=True)
        ]
        if found and self.band > 1:
            taps, dilation, _ = found[-1]
            found[-1] = ((self.band - 1) * self.window.strides[-2] + (taps - 1) * dilation + 1, 1, dilation)
        return found

    @property
    def phase(self) -> int:
        """Pixels of a phase of a line of a patch."""
        reach = (self.window.kernel[-1] - 1) * self.window.dilations[-1] // self.window.strides[-1]
        return -(-(max([*self.widths, 1]) * BLOCK + reach) // BLOCK) * BLOCK

    @property
    def pitch(self) -> int:
        """Pixels from line to line of a patch."""
        return self.window.strides[-1] * self.phase

    @property
    def plane(self) -> int:
        """Pixels of a channel of a patch."""
        return self.pitch * math.prod(lines for lines, _, _ in self.patch)

    @property
    def scratch(self) -> int:
        """Bytes of a patch."""
        return 4 * self.channels * self.plane

    @property
    def cycles(self) -> int:
        """What it costs, on the scale of `convolution_cost`. Most loads reach over the end of a cache line."""
        batch, _, *outer, width = (_PIXELS if isinstance(dim, Dim) else dim for dim in self.window.result)
        along = -(-width // BLOCK)
        parts, vectors = balanced(along, self.vectors)[0], min(along, self.vectors) * self.rows
        tiles = batch * parts * -(-math.prod(outer) // self.rows)
        pieces = balanced(self.each, self.outputs)[0]
        outputs = -(-self.each // pieces)
        step = 2 * max(outputs, 2) * vectors * self.registers // self.multiply_adds + outputs
        tile = self.depth * max(step, _MOST_VECTORS) // 2 + _CALL + 4 * vectors * outputs
        return tiles * self.window.group * pieces * tile

    @staticmethod
    def _known(size: DimLike) -> int:
        if isinstance(size, Dim):
            raise DeclinedError("its channels are of symbolic number")
        return size


def lines_type(lines: Lines) -> TensorType:
    """The packed weights: for each part of the outputs of a group `[channels x window][outputs]`."""
    return TensorType(FLOAT32, (lines.window.group * lines.each, lines.depth))
