"""A kernel made ready for an engine: the one in C where it can be had, else the one in numpy."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from argosy.emulation.assembly import read_assembly
from argosy.emulation.c_engine.build import engine_reason
from argosy.emulation.c_engine.engine import EncodedKernel, run_encoded
from argosy.emulation.checks.limits import find_broken_limits
from argosy.emulation.checks.waits import find_missing_waits
from argosy.emulation.decode import Program, decode
from argosy.emulation.memory import Fault, Memory
from argosy.emulation.numpy_engine.engine import run_kernel
from argosy.errors import EnvironmentError_

__all__ = ["Engine", "Kernel", "make_kernel"]

Engine = Literal["c", "numpy", ""]
log: Final = logging.getLogger("argosy.emulation")


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel with what runs it. `encoded` is there where that is the engine in C."""

    program: Program
    encoded: Any = None

    def run(
        self, memory: Memory, kernarg: int, grid: Sequence[int], threads: int, shared: int, *, looks: bool = True
    ) -> None:
        """Run every workgroup. Raises Fault and NotEmulated, with the instruction.

        The engine in C `looks` for what is read before it is written and for races between workgroups, unless told not
        to.
        """
        if self.encoded is not None:
            run_encoded(self.encoded, memory, kernarg, grid, threads, shared, looks=looks)
        else:
            run_kernel(self.program, memory, kernarg, grid, threads, shared)


def make_kernel(text: str, engine: Engine = "") -> Kernel:
    """Read a kernel's assembly text. Without a named engine, the one in C where it can be had.

    Raises NotEmulated, and Fault for what the text alone shows to be wrong.
    """
    program = decode(read_assembly(text))
    found = (*find_broken_limits(program), *find_missing_waits(program))
    if found:
        more = f" ({len(found) - 1} more such places)" if len(found) > 1 else ""
        raise Fault(f"{found[0].what}{more}", where=found[0].where)
    if engine == "numpy":
        return Kernel(program)
    why = engine_reason()
    if not why:
        try:
            return Kernel(program, EncodedKernel(program))
        except EnvironmentError_ as error:
            if engine == "c":
                raise
            why = error.what
    log.info("%s is emulated by numpy: %s", program.listing.name, why)
    return Kernel(program)
