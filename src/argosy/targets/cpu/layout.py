"""The blocked layout of images: channels in blocks of 16 beside each other, with a halo for the next window.

`x [N, C, *spatial]` lies as `[N][ceil(C / 16)][plane][16]`. A plane holds the spatial axes with their halos, row-major:
zeros before and behind (of codes the code of zero), so that a window never has to ask where the image ends. The number
of pixels of a plane is no multiple of 64, or pixels of different blocks would crowd one set of the first cache.
Channels beyond the last of a block have any value and are never read.

An image of few channels would be mostly such padding; it lies *planar*, one plane to a channel, with a halo likewise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from argosy.ir.dim import Dim, DimLike, ceildiv, floordiv
from argosy.ir.dtype import FLOAT32, DType
from argosy.ir.types import Dims, TensorType
from argosy.ops.shapes import product

__all__ = ["LANES", "Blocked", "Padded", "Planar"]

LANES: Final = 16
_PAGE_PIXELS: Final = 64


@dataclass(frozen=True, slots=True)
class Padded:
    """What the layouts of images share: `halo` has the pixels before and behind each spatial axis, which are `fill`."""

    halo: tuple[tuple[int, int], ...]
    dtype: DType = FLOAT32
    fill: int = 0

    lanes: ClassVar[int]
    """Channels that lie side by side."""

    @property
    def is_bare(self) -> bool:
        """Whether there is no halo."""
        return not any(begin or end for begin, end in self.halo)

    def padded(self, spatial: Dims) -> Dims:
        """The spatial sizes with the halo."""
        return tuple(size + begin + end for size, (begin, end) in zip(spatial, self.halo, strict=True))

    def steps(self, spatial: Dims) -> Dims:
        """Pixels from one place to the next, for each spatial axis."""
        steps: list[DimLike] = []
        step: DimLike = 1
        for size in reversed(self.padded(spatial)):
            steps.append(step)
            step = size * step
        return tuple(reversed(steps))

    def plane(self, spatial: Dims) -> DimLike:
        """Pixels from one plane to the next."""
        return product(self.padded(spatial))

    def pixel(self, spatial: Dims, places: Sequence[DimLike]) -> DimLike:
        """The number in its plane of the pixel at `places`, of which 0 is the first behind the halo."""
        total: DimLike = 0
        for place, step, (begin, _) in zip(places, self.steps(spatial), self.halo, strict=True):
            total = step * (place + begin) + total
        return total

    def planes(self, channels: DimLike) -> DimLike:
        """Planes of an image of some channels."""
        return ceildiv(channels, self.lanes)


@dataclass(frozen=True, slots=True)
class Planar(Padded):
    """A plane for each channel: `[N][C][plane]`."""

    lanes = 1

    def kind(self, shape: Dims) -> TensorType:
        """The type of the buffer of an image of `shape`."""
        return TensorType(self.dtype, (*shape[:2], self.plane(shape[2:])))


@dataclass(frozen=True, slots=True)
class Blocked(Padded):
    """Planes of pixels of 16 channels: `[N][ceil(C / 16)][plane][16]`."""

    lanes = LANES

    @staticmethod
    def bare(rank: int, dtype: DType = FLOAT32) -> Blocked:
        """Without a halo, for `rank` spatial axes."""
        return Blocked(((0, 0),) * rank, dtype)

    def covers(self, other: Blocked) -> bool:
        """Whether all that is asked of `other` is there."""
        if self.dtype is not other.dtype or (self.fill != other.fill and not other.is_bare):
            return False
        return len(self.halo) == len(other.halo) and all(
            mine[0] >= its[0] and mine[1] >= its[1] for mine, its in zip(self.halo, other.halo, strict=True)
        )

    def merged(self, other: Blocked) -> Blocked:
        """The least layout that covers both; this one where their halos are filled otherwise."""
        if self.fill != other.fill and not (self.is_bare or other.is_bare):
            return self
        pairs = zip(self.halo, other.halo, strict=True)
        halo = tuple((max(mine[0], its[0]), max(mine[1], its[1])) for mine, its in pairs)
        return replace(self, halo=halo, fill=other.fill if self.is_bare else self.fill)

    def plane(self, spatial: Dims) -> DimLike:
        """Pixels from one block of channels to the next."""
        total = product(self.padded(spatial))
        if isinstance(total, Dim):
            return floordiv(total, 2) * 2 + 1
        return total + (total % _PAGE_PIXELS == 0)

    def offset(self, shape: Dims, batch: DimLike, block: DimLike, places: Sequence[DimLike]) -> DimLike:
        """The element of the buffer at which the 16 channels of a pixel of the image `shape` begin."""
        spatial = shape[2:]
        plane = self.plane(spatial)
        blocks = ceildiv(shape[1], LANES)
        return ((blocks * batch + block) * plane + self.pixel(spatial, places)) * LANES

    def kind(self, shape: Dims) -> TensorType:
        """The type of the buffer of an image of `shape`."""
        return TensorType(self.dtype, (shape[0], ceildiv(shape[1], LANES), self.plane(shape[2:]), LANES))

    def __str__(self) -> str:
        return "blocked" if self.is_bare else f"blocked, halo {', '.join(f'{b}+{e}' for b, e in self.halo)}"
