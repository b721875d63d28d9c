"""The archs whose code is emulated, and against which documents."""

from __future__ import annotations

from typing import Final

__all__ = ["DOCUMENTS", "emulated_reason"]

DOCUMENTS: Final = {
    "gfx942": "AMD Instinct MI300 (CDNA3) Instruction Set Architecture",
    "gfx90a": "AMD Instinct MI200 (CDNA2) Instruction Set Architecture",
    "gfx1100": "RDNA3 Instruction Set Architecture",
    "gfx1151": "RDNA3.5 Instruction Set Architecture",
    "gfx1201": "RDNA4 Instruction Set Architecture",
}
"""Archs by the document that their instructions are written from."""


def emulated_reason(arch: str) -> str:
    """Why code for an arch is not emulated; empty where it is."""
    return "" if arch in DOCUMENTS else f"{arch} is not emulated, {', '.join(DOCUMENTS)} are"
