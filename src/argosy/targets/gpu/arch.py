"""The GPUs that the compiler knows: rows by arch, products and families by name, and what is refused and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from argosy.targets.gpu.arches.amd import AMD
from argosy.targets.gpu.arches.amd_products import AMD_PRODUCTS
from argosy.targets.gpu.arches.nvidia import NVIDIA
from argosy.targets.gpu.arches.nvidia_products import NVIDIA_PRODUCTS
from argosy.targets.gpu.arches.refused import REFUSED
from argosy.targets.gpu.arches.row import GpuArch, Product

__all__ = ["ARCHS", "FAMILIES", "PRODUCTS", "REFUSED", "GpuArch", "archs_of", "find_gpu"]

ARCHS: Final[dict[str, GpuArch]] = {row.name: row for row in (*AMD, *NVIDIA)}
"""Every row by name."""

PRODUCTS: Final[dict[str, Product]] = {product.name: product for product in (*AMD_PRODUCTS, *NVIDIA_PRODUCTS)}
"""Every product by name."""


def _families() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for row in ARCHS.values():
        if not row.portable:
            for name in (row.family, *row.groups):
                found.setdefault(name, []).append(row.name)
    return {name: tuple(archs) for name, archs in found.items()}


FAMILIES: Final[dict[str, tuple[str, ...]]] = _families()
"""The archs of every generation and group by its name; portable archs are named on their own."""


def find_gpu(name: str) -> GpuArch | None:
    """The row of an arch or of a product, with that product's numbers; None for a family and for any other name."""
    product = PRODUCTS.get(name)
    if product is not None:
        return replace(ARCHS[product.arch], product=product)
    return ARCHS.get(name)


def archs_of(name: str) -> Sequence[GpuArch]:
    """Every row that a name means: those of a family, else that of `find_gpu`, else none."""
    family = FAMILIES.get(name)
    if family is not None:
        return tuple(ARCHS[member] for member in family)
    row = find_gpu(name)
    return () if row is None else (row,)
