"""Archs that exist and that this version doesn't compile for, each with the reason.

Tried with Triton 3.9, one masked addition each: what is said of the toolchain is what it answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

__all__ = ["REFUSED"]

_UNBUILT: Final = "Triton answers “unsupported target”: it generates code for gfx906, gfx908, gfx90a, gfx94x and later"
_OLD_CUDA: Final = "CUDA 13 and its drivers no longer know it; the oldest that they do is sm_75"
_GENERIC_UNBUILT: Final = "Triton generates code for none of the archs that it stands for"
_NO_MATRIX: Final = "its instruction set has none of the matrix instructions that Triton makes; name gfx1250 or gfx1251"
_NOT_PUBLIC: Final = "no product with it is public, so nothing says what it has"


def _rows() -> Iterator[tuple[str, str]]:
    """Names and reasons."""
    older = "gfx803 gfx900 gfx902 gfx904 gfx909 gfx90c gfx1010 gfx1011 gfx1012 gfx1013"
    older += " gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036"
    yield from ((name, _UNBUILT) for name in older.split())
    yield from ((name, "LLVM and Triton have dropped it; the product is gfx942") for name in ("gfx940", "gfx941"))
    yield from ((name, _GENERIC_UNBUILT) for name in ("gfx9-generic", "gfx10-1-generic", "gfx10-3-generic"))
    yield "gfx12-5-generic", _NO_MATRIX
    unknown = "gfx1154 gfx1170 gfx1171 gfx1172 gfx1310 gfx11-7-generic gfx13-generic sm_107"
    yield from ((name, _NOT_PUBLIC) for name in unknown.split())
    yield from ((f"sm_{number}", _OLD_CUDA) for number in (50, 52, 53, 60, 61, 62, 70, 72))
    yield "sm_88", "Triton's tools write PTX 8.8 for it, and it needs PTX 9.0"
    yield "sm_101", "CUDA 13 calls it sm_110"


REFUSED: Final = dict(_rows())
"""The reason by name."""
