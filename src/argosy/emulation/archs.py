"""The archs whose code is emulated: a row each, with the document it is written from and what sets it apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from argosy.emulation.refusal import NotEmulated

__all__ = ["GENERATIONS", "Counters", "Generation", "emulated_reason", "generation"]


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters of outstanding memory instructions, by what raises them: vector memory, local memory, scalar loads.

    `bits` gives where each lies in a wait that is written as a number: pieces of it, as lowest bit and size.
    """

    load: str
    store: str
    local: str
    scalar: str
    bits: tuple[tuple[str, tuple[tuple[int, int], ...]], ...] = ()

    def wait(self, counter: str, most: int) -> str:
        """The instruction that waits until a counter is at most so much."""
        return f"s_waitcnt {counter}({most})" if self.bits else f"s_wait_{counter} {most:#x}"


_ONE: Final = Counters("vmcnt", "vmcnt", "lgkmcnt", "lgkmcnt", (("vmcnt", ((0, 4), (14, 2))), ("lgkmcnt", ((8, 4),))))
_STORES_APART: Final = Counters("vmcnt", "vscnt", "lgkmcnt", "lgkmcnt", (("vmcnt", ((10, 6),)), ("lgkmcnt", ((4, 6),))))
_BY_KIND: Final = Counters("loadcnt", "storecnt", "dscnt", "kmcnt")


@dataclass(frozen=True, slots=True)
class Generation:
    """What code for an arch means that for another it does not.

    `clears_halves`: most 16-bit results clear the other half of their register. `fnuz`: 8-bit floats have no -0 and
    no infinity. `ids_in_traps`: a workgroup finds its numbers in trap registers. `wmma` says which part of the rows
    of a factor each half of a wave holds in matrix instructions over 32 lanes: the whole, its half, or every second
    run; empty where there are none. `wide_resources`: those of buffers have 57 bits of address and 45 of size,
    where others have 48 and 32. `one_scalar`: both halves of packed float32 operations read the same register of a
    scalar source. `vectors` and `scalars` are the most registers of a wave, `local_size` the most bytes of local
    memory of a workgroup, `private_size` those of a wave's private memory.
    """

    document: str
    clears_halves: bool = False
    fnuz: bool = False
    ids_in_traps: bool = False
    wmma: Literal["", "whole", "half", "runs"] = ""
    wide_resources: bool = False
    one_scalar: bool = False
    vectors: int = 256
    scalars: int = 106
    local_size: int = 64 << 10
    private_size: int = ((1 << 15) - 1) * 256

    @property
    def counters(self) -> Counters:
        """What counts its outstanding memory instructions."""
        return _ONE if self.clears_halves else _BY_KIND if self.ids_in_traps else _STORES_APART


_PRIVATE_9: Final = ((1 << 13) - 1) * 1024
_PRIVATE_12: Final = ((1 << 18) - 1) * 256

GENERATIONS: Final = {
    "gfx90a": Generation(
        "AMD Instinct MI200 (CDNA2) Instruction Set Architecture",
        clears_halves=True,
        vectors=512,
        scalars=102,
        private_size=_PRIVATE_9,
    ),
    "gfx942": Generation(
        "AMD Instinct MI300 (CDNA3) Instruction Set Architecture",
        clears_halves=True,
        fnuz=True,
        vectors=512,
        scalars=102,
        private_size=_PRIVATE_9,
    ),
    "gfx950": Generation(
        "AMD Instinct CDNA4 Instruction Set Architecture",
        clears_halves=True,
        vectors=512,
        scalars=102,
        local_size=160 << 10,
        private_size=_PRIVATE_9,
    ),
    "gfx1100": Generation("RDNA3 Instruction Set Architecture", wmma="whole"),
    "gfx1151": Generation("RDNA3.5 Instruction Set Architecture", wmma="whole"),
    "gfx1201": Generation(
        "RDNA4 Instruction Set Architecture", ids_in_traps=True, wmma="half", private_size=_PRIVATE_12
    ),
    "gfx1250": Generation(
        "RDNA4 Instruction Set Architecture, LLVM's AMDGPU backend and rocjitsu",
        ids_in_traps=True,
        wmma="runs",
        wide_resources=True,
        one_scalar=True,
        vectors=1024,
        local_size=320 << 10,
        private_size=_PRIVATE_12,
    ),
}


def emulated_reason(arch: str) -> str:
    """Why code for an arch is not emulated; empty where it is."""
    return "" if arch in GENERATIONS else f"{arch} is not emulated, {', '.join(GENERATIONS)} are"


def generation(arch: str) -> Generation:
    """The row of an arch. Raises NotEmulated."""
    if arch not in GENERATIONS:
        raise NotEmulated(f"code for {arch}")
    return GENERATIONS[arch]
