"""Limits that a kernel breaks: registers that it does not ask for, more of them or of memory than its arch has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.emulation.archs import generation
from argosy.emulation.checks.finding import Finding
from argosy.emulation.checks.registers import access_of, register_file, register_name
from argosy.emulation.decode import Program
from argosy.emulation.operands import VCC

__all__ = ["find_broken_limits"]

_FILES: Final = {"v": "vector", "a": "accumulation", "s": "scalar"}


def find_broken_limits(program: Program) -> Iterator[Finding]:
    """What of a kernel's text and descriptor its arch can't give.

    Sources: LLVM's "User Guide for AMDGPU Backend", "AMDHSA Kernel Directives"; the ISA documents' "Kernel State".
    """
    listing, arch = program.listing, generation(program.listing.arch)
    descriptor = listing.descriptor
    for name, most, what in (
        ("next_free_vgpr", arch.vectors, "vector registers"),
        ("next_free_sgpr", arch.scalars, "scalar registers"),
        ("group_segment_fixed_size", arch.local_size, "bytes of local memory"),
        ("private_segment_fixed_size", arch.private_size // listing.wave_size, "bytes of private memory for each lane"),
    ):
        asked = descriptor.get(name, 0)
        if asked > most:
            statement = program.instructions[0].statement
            yield Finding(listing.name, statement, f"the kernel asks for {asked} {what}, {listing.arch} has {most}")
    vectors = descriptor.get("next_free_vgpr", arch.vectors)
    apart = descriptor.get("accum_offset", vectors)
    room = {
        "v": min(vectors, apart),
        "a": max(vectors - apart, 0),
        "s": descriptor.get("next_free_sgpr", arch.scalars),
    }
    for instruction in program.instructions:
        access = access_of(instruction)
        for register in sorted(access.reads | access.writes | access.loads):
            file, number = register_file(register)
            if number >= room[file] and not (file == "s" and number >= VCC):
                asked = room[file]
                what = f"it uses {register_name(register)}, the kernel asks for {asked} {_FILES[file]} registers"
                yield Finding(listing.name, instruction.statement, what)
