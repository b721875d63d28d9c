"""Runs a kernel by the C engine: workgroups over threads."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from argosy.emulation.c_engine.build import Library, engine_library
from argosy.emulation.c_engine.encode import FAULT, LAUNCH, Encoded, encode
from argosy.emulation.decode import Program
from argosy.emulation.launch import LaunchState, launch_state
from argosy.emulation.memory import Fault, Memory
from argosy.errors import InternalError
from argosy.host_cpu import usable_cores

__all__ = ["EncodedKernel", "run_encoded"]

_POISON: Final = 0xCDCDCDCD
_SHADOW: Final = 12
"""Bytes that are kept of each byte of local memory, to find races."""
_NOWHERE: Final = 0xFFFFFFFF
_CHUNKS: Final = 4
"""Parts of a grid for each thread."""


class EncodedKernel:
    """A kernel, ready for the C engine. Raises NotEmulated."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.library: Library = engine_library()
        self.encoded: Encoded = encode(program, self.library.numbers)


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(usable_cores(), "argosy-emulate")


def run_encoded(
    kernel: EncodedKernel, memory: Memory, kernarg: int, grid: Sequence[int], threads: int, shared: int
) -> None:
    """Run every workgroup of a grid. Raises Fault, with the instruction."""
    state = launch_state(kernel.program.listing, threads, shared)
    launch = _launch(state, kernarg, grid)
    ranges = memory.ranges()
    total = grid[0] * grid[1] * grid[2]
    parts = min(total, usable_cores() * _CHUNKS if total > 1 else 1)
    bounds = [total * part // parts for part in range(parts + 1)]

    def run(part: int) -> NDArray[Any]:
        return _run(kernel, ranges, launch, state, bounds[part], bounds[part + 1])

    faults = [run(0)] if parts == 1 else list(_pool().map(run, range(parts)))
    for fault in faults:
        if fault["code"]:
            _raise(kernel.program, memory, fault)


def _launch(state: LaunchState, kernarg: int, grid: Sequence[int]) -> NDArray[Any]:
    launch = np.zeros((), LAUNCH)
    for name in ("lanes", "waves", "vectors", "accumulators", "private_size", "lds_size", "threads", "ids_in_traps"):
        launch[name] = getattr(state, name)
    launch["kernarg_at"] = _NOWHERE if state.kernarg_at is None else state.kernarg_at
    launch["ids_at"], launch["id_axes"] = state.ids_at, state.id_axes
    launch["kernarg"], launch["grid"], launch["poison"] = kernarg, tuple(grid), _POISON
    return launch


def _run(kernel: EncodedKernel, ranges: Any, launch: Any, state: LaunchState, first: int, last: int) -> NDArray[Any]:
    encoded = kernel.encoded
    registers = state.waves * 64 * (4 * (state.vectors + state.accumulators) + state.private_size)
    room = np.empty(registers + (1 + _SHADOW) * state.lds_size + 256, np.uint8)
    fault = np.zeros((), FAULT)
    kernel.library.emulate(
        encoded.code.ctypes.data, len(encoded.code), encoded.others.ctypes.data, encoded.moves.ctypes.data,
        encoded.shapes.ctypes.data, ranges.ctypes.data, len(ranges), launch.ctypes.data, first, last,
        room.ctypes.data + -room.ctypes.data % 64, fault.ctypes.data,
    )  # fmt: skip
    return fault


def _raise(program: Program, memory: Memory, fault: Any) -> None:
    code, size, address = int(fault["code"]), int(fault["size"]), int(fault["address"])
    statement = program.instructions[min(int(fault["place"]), len(program.instructions) - 1)].statement
    where = (
        f"{program.listing.name}, line {statement.line}: {statement.text} "
        f"(workgroup {int(fault['group'])}, wave {int(fault['wave'])}, lane {int(fault['lane'])})"
    )
    match code:
        case 1:
            raise Fault(f"{size} bytes at {address:#x} lie in no buffer{memory.near(address)}", where=where)
        case 2:
            raise Fault(f"{size} bytes at {address:#x} lie beyond local memory", where=where)
        case 3:
            raise Fault(f"{size} bytes at {address:#x} lie beyond a lane's private memory", where=where)
        case 4:
            raise Fault("it runs past its last instruction", where=where)
        case 7:
            what = f"{size} bytes of local memory at {address:#x}"
            raise Fault(f"a race: two waves touch {what} with no barrier in between, and one writes", where=where)
        case 8:
            raise Fault("a load that transposes needs all lanes on", where=where)
        case _:
            raise InternalError(f"the emulator stopped for reason {code}", where=where)
