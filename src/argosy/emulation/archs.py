"""The archs whose code is emulated: a row each, with the document it is written from and what sets it apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from argosy.emulation.refusal import NotEmulated

__all__ = ["GENERATIONS", "Generation", "emulated_reason", "generation"]


@dataclass(frozen=True, slots=True)
class Generation:
    """What code for an arch means that for another it does not.

    `clears_halves`: most 16-bit results clear the other half of their register. `fnuz`: 8-bit floats have no -0 and no
    infinity. `ids_in_traps`: a workgroup finds its numbers in trap registers. `wmma` says which part of the rows of a
    factor each half of a wave holds in matrix instructions over 32 lanes; empty where there are none.
    """

    document: str
    clears_halves: bool = False
    fnuz: bool = False
    ids_in_traps: bool = False
    wmma: Literal["", "whole", "half"] = ""


GENERATIONS: Final = {
    "gfx90a": Generation("AMD Instinct MI200 (CDNA2) Instruction Set Architecture", clears_halves=True),
    "gfx942": Generation("AMD Instinct MI300 (CDNA3) Instruction Set Architecture", clears_halves=True, fnuz=True),
    "gfx1100": Generation("RDNA3 Instruction Set Architecture", wmma="whole"),
    "gfx1151": Generation("RDNA3.5 Instruction Set Architecture", wmma="whole"),
    "gfx1201": Generation("RDNA4 Instruction Set Architecture", ids_in_traps=True, wmma="half"),
}


def emulated_reason(arch: str) -> str:
    """Why code for an arch is not emulated; empty where it is."""
    return "" if arch in GENERATIONS else f"{arch} is not emulated, {', '.join(GENERATIONS)} are"


def generation(arch: str) -> Generation:
    """The row of an arch. Raises NotEmulated."""
    if arch not in GENERATIONS:
        raise NotEmulated(f"code for {arch}")
    return GENERATIONS[arch]
