"""What instructions compute, as functions of their operands' values; the one table that every engine uses.

Written from AMD's instruction set documents ("AMD Instinct MI300" CDNA3, "CDNA4", "RDNA3", "RDNA3.5" and "RDNA4"
Instruction Set Architecture: Reference Guide), not from what compilers write.
"""

from __future__ import annotations

from importlib import import_module

__all__ = ["load_semantics"]


def load_semantics() -> None:
    """Fill the table."""
    for name in ("floats", "integers", "conversions", "comparisons", "packed", "scalars"):
        import_module(f"argosy.emulation.semantics.{name}")
