"""Archs that exist and that this version doesn't compile for, each with the reason and with what to do.

Tried with Triton 3.9, one masked addition each: what is said of the toolchain is what it answered. What a generic arch
stands for: "AMDGPU Generic Processors" in LLVM's AMDGPUUsage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["REFUSED", "Refusal"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no code for an arch, and what to do `instead`."""

    reason: str
    instead: str


_ON_THE_CPU: Final = "a machine with it can run an artifact on its CPU: name a CPU in --arch too"
_LATER_PTX: Final = "name compute_80: its driver finishes that code"
_WAIT: Final = "name the GPUs that you have; argosy arches lists what there is code for"

_UNBUILT: Final = Refusal(
    "Triton answers “unsupported target”: it generates code for gfx906, gfx908, gfx90a, gfx94x and later", _ON_THE_CPU
)
_OLD_CUDA: Final = Refusal("CUDA 13 and its drivers no longer know it; the oldest that they do is sm_75", _ON_THE_CPU)
_GENERIC_UNBUILT: Final = Refusal("Triton generates code for none of the archs that it stands for", _ON_THE_CPU)
_GENERIC_9: Final = Refusal(
    "of the archs that it stands for Triton generates code for gfx906 alone", "name gfx906, or a CPU for the others"
)
_DROPPED: Final = Refusal("LLVM and Triton have dropped it; the product is gfx942", "name gfx942")
_NO_MATRIX: Final = Refusal(
    "its instruction set has none of the matrix instructions that Triton makes", "name gfx1250 or gfx1251"
)
_NOT_PUBLIC: Final = "no product with it is public, so nothing says what it has"


def _rows() -> Iterator[tuple[str, Refusal]]:
    """Names and reasons."""
    older = "gfx803 gfx900 gfx902 gfx904 gfx909 gfx90c gfx1010 gfx1011 gfx1012 gfx1013"
    older += " gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036"
    yield from ((name, _UNBUILT) for name in older.split())
    yield from ((name, _DROPPED) for name in ("gfx940", "gfx941"))
    yield "gfx9-generic", _GENERIC_9
    yield from ((name, _GENERIC_UNBUILT) for name in ("gfx10-1-generic", "gfx10-3-generic"))
    yield "gfx12-5-generic", _NO_MATRIX
    unknown = "gfx1154 gfx1170 gfx1171 gfx1172 gfx1310 gfx11-7-generic gfx13-generic"
    yield from ((name, Refusal(_NOT_PUBLIC, _WAIT)) for name in unknown.split())
    yield "sm_107", Refusal(_NOT_PUBLIC, _LATER_PTX)
    yield from ((f"sm_{number}", _OLD_CUDA) for number in (50, 52, 53, 60, 61, 62, 70, 72))
    yield "sm_88", Refusal("Triton's tools write PTX 8.8 for it, and it needs PTX 9.0", _LATER_PTX)
    yield "sm_101", Refusal("CUDA 13 calls it sm_110", "name sm_110")


REFUSED: Final = dict(_rows())
"""The reason by name."""
