"""Numbers that a user gives in place of those of an arch's row, as MIGraphX's cross-compilation takes them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final

from argosy.errors import UsageError
from argosy.targets.base import Number
from argosy.targets.gpu.arches.row import GpuArch

__all__ = ["Overrides"]

_COMPUTE_UNITS: Final = 120
"""The documented default of MIGraphX, for an arch of whose products nothing public says how many they have."""

_MOST: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Overrides:
    """The keys of `--gpu-arch-params`; None is the row's own number, and so is a `wavefront_size` of 0.

    `num_cu` counts compute units as the vendor does: HIP's property of that name has half of them on RDNA.
    """

    num_cu: int | None = None
    num_chiplets: int | None = None
    max_threads_per_cu: int | None = None
    max_threads_per_block: int | None = None
    wavefront_size: int | None = None
    max_shared_memory_per_block: int | None = None

    def apply(self, row: GpuArch) -> GpuArch:
        """The row with these numbers.

        Raises UsageError for a number that is none, or that neither the hardware nor the toolchain honours: with the
        one that would be used.
        """
        self._check_sizes(row)
        self._check_wave(row)
        threads = _at_most(row, "max_threads_per_cu", self.max_threads_per_cu, row.max_threads_per_unit)
        block = _at_most(
            row, "max_threads_per_block", self.max_threads_per_block, min(threads, row.max_threads_per_block)
        )
        if block < row.wave_size:
            raise UsageError(
                f"{row.name}: max_threads_per_block is {block}, less than one wave of {row.wave_size}",
                hint=f"leave it out, or give from {row.wave_size} to {row.max_threads_per_block}",
            )
        shared = _at_most(
            row, "max_shared_memory_per_block", self.max_shared_memory_per_block, row.shared_memory_per_block
        )
        units = self.num_cu or row.product.compute_units or _COMPUTE_UNITS
        chiplets = self.num_chiplets or row.product.chiplets
        if chiplets > units:
            raise UsageError(f"{row.name}: num_chiplets is {chiplets}, more than its {units} compute units")
        return replace(
            row,
            max_threads_per_unit=threads,
            max_threads_per_block=block,
            shared_memory_per_block=shared,
            product=replace(row.product, compute_units=units, chiplets=chiplets),
        )

    def numbers(self, plain: GpuArch) -> tuple[Number, ...]:
        """What is compiled for: each number and where it is from, for the row that these are applied to."""
        row = self.apply(plain)
        product = plain.product.name or plain.name
        units = product if plain.product.compute_units else "assumed: nothing public says it"
        lowered = row.max_threads_per_block < plain.max_threads_per_block
        block = "max_threads_per_cu" if lowered else plain.name
        block = "given" if self.max_threads_per_block else block
        return (
            Number("num_cu", row.product.compute_units or 0, "given" if self.num_cu else units),
            Number("num_chiplets", row.product.chiplets, "given" if self.num_chiplets else product),
            Number("max_threads_per_cu", row.max_threads_per_unit, _source(self.max_threads_per_cu, plain)),
            Number("max_threads_per_block", row.max_threads_per_block, block),
            Number("wavefront_size", row.wave_size, _source(self.wavefront_size, plain)),
            Number(
                "max_shared_memory_per_block",
                row.shared_memory_per_block,
                _source(self.max_shared_memory_per_block, plain),
            ),
        )

    def _check_sizes(self, row: GpuArch) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            least = 0 if each.name == "wavefront_size" else 1
            if value is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _MOST:
                raise UsageError(
                    f"{row.name}: {each.name} is {value!r}, expected a whole number from {least} to {_MOST}"
                )

    def _check_wave(self, row: GpuArch) -> None:
        if self.wavefront_size not in (None, 0, row.wave_size):
            raise UsageError(
                f"{row.name}: wavefront_size is {self.wavefront_size}, but the toolchain compiles for waves of "
                f"{row.wave_size} whatever is asked",
                hint=f"leave it out, or give {row.wave_size}",
            )


def _source(given: int | None, row: GpuArch) -> str:
    return "given" if given else row.name


def _at_most(row: GpuArch, name: str, given: int | None, most: int) -> int:
    """A limit that may be lowered, not raised."""
    if given is not None and given > most:
        raise UsageError(
            f"{row.name}: {name} is {given}, but no more than {most} can be used",
            hint=f"leave it out, or give at most {most}",
        )
    return most if given is None else given
