"""How fast a device could be at most: the roofline of the product that a variant is for.

Work takes at least as long as its operations at the peak for their type, and as its bytes at the bandwidth of the
memory (Williams, Waterman and Patterson, CACM 52(4), 2009). Rows of CPUs have neither: their clocks differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from argosy.artifact.manifest import VariantRecord
from argosy.errors import UsageError
from argosy.targets.base import precision_of
from argosy.targets.gpu.arches.row import Product
from argosy.targets.gpu.target import GpuTarget

__all__ = ["Roofline", "roofline_of"]

_PEAKS: Final = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
    "int8": "int8",
    "uint8": "int8",
}
"""Element types as the rows of products call them."""


@dataclass(frozen=True, slots=True)
class Roofline:
    """The peaks and the bandwidth of a product; `tf32` says that float32 is multiplied as that."""

    product: Product
    tf32: bool = False

    @property
    def words(self) -> str:
        """The product."""
        return self.product.words

    def compute_seconds(self, operations: Mapping[str, int]) -> float | None:
        """Seconds of operations by element type at the dense peaks; None where the row has no peak for one."""
        total = 0.0
        for dtype, count in operations.items():
            kind = _PEAKS.get(dtype, "")
            peak = self.product.peak("tf32" if kind == "fp32" and self.tf32 else kind)
            if peak is None:
                return None
            total += count / peak
        return total

    def seconds(self, operations: Mapping[str, int], bytes_moved: int) -> float | None:
        """The least seconds of work: the longer of its operations and its bytes; None where the row lacks a number."""
        compute, bandwidth = self.compute_seconds(operations), self.product.bandwidth
        return None if compute is None or bandwidth is None else max(compute, bytes_moved / bandwidth)


def roofline_of(variant: VariantRecord | None) -> Roofline | None:
    """The roofline of the product that a variant is for; None for `ref`, CPUs and products that are not known."""
    if variant is None:
        return None
    try:
        target = GpuTarget.for_variant(variant)
    except UsageError:  # a product that a newer version knows
        return None
    if not isinstance(target, GpuTarget):
        return None
    return Roofline(target.row.product, precision_of(variant) == "tf32")
