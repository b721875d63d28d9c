"""Runs a kernel by the C engine: workgroups over threads."""

from __future__ import annotations

import mmap
import os
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
from argosy.emulation.operands import SCALARS
from argosy.errors import InternalError
from argosy.host_cpu import usable_cores

__all__ = ["EncodedKernel", "run_encoded"]

_POISON: Final = 0xCDCDCDCD
_TOUCHES: Final = 12
"""Bytes that are kept of each byte of local memory, to find races and copies that are not waited for."""
_UNWRITTEN: Final = "depends on a register, or on local or private memory, that nothing has written"
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


if hasattr(os, "register_at_fork"):
    # A forked child has none of its parent's threads, and would wait for them for ever.
    os.register_at_fork(after_in_child=_pool.cache_clear)


def run_encoded(
    kernel: EncodedKernel, memory: Memory, kernarg: int, grid: Sequence[int], threads: int, shared: int, *, looks: bool
) -> None:
    """Run every workgroup of a grid. Raises Fault, with the instruction.

    `looks` looks for what is read before it is written, and for races between workgroups, which takes time.
    """
    state = launch_state(kernel.program.listing, threads, shared)
    launch = _launch(state, kernarg, grid)
    launch["looks"], launch["copies"] = looks, kernel.encoded.copies
    ranges, size = _ranges(memory)
    marks = _Marks(size) if looks else None
    total = grid[0] * grid[1] * grid[2]
    parts = min(total, usable_cores() * _CHUNKS if total > 1 else 1)
    bounds = [total * part // parts for part in range(parts + 1)]

    def run(part: int) -> NDArray[Any]:
        return _run(kernel, ranges, launch, state, marks, bounds[part], bounds[part + 1])

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


class _Marks:
    """Two marks for every byte of all ranges, of pages that come into being when they are written."""

    def __init__(self, size: int) -> None:
        self.size = size
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        self.array = np.frombuffer(mmap.mmap(-1, max(4 * size, 1), flags=flags), np.uint8)


def _ranges(memory: Memory) -> tuple[NDArray[np.uint64], int]:
    """Start, end and the place of the marks of each block, in order, and how many bytes all have."""
    ranges = memory.ranges()
    sizes = ranges[:, 1] - ranges[:, 0]
    return np.ascontiguousarray(np.column_stack([ranges, np.cumsum(sizes) - sizes])), int(sizes.sum())


def _room(state: LaunchState, *, looks: bool) -> int:
    """The bytes of registers, flags, and local and private memory of a workgroup, each rounded up."""
    spare = 64
    one = 256 * (state.vectors + state.accumulators) + 64 * state.private_size + 3 * spare
    flags = state.vectors + state.accumulators + SCALARS + 4 * spare
    waves = state.waves * (2 * one + flags if looks else one)
    return waves + (2 + _TOUCHES) * state.lds_size + 5 * spare


def _run(
    kernel: EncodedKernel, ranges: Any, launch: Any, state: LaunchState, marks: _Marks | None, first: int, last: int
) -> NDArray[Any]:
    encoded = kernel.encoded
    room = np.empty(_room(state, looks=marks is not None), np.uint8)
    fault = np.zeros((), FAULT)
    kernel.library.emulate(
        encoded.code.ctypes.data, len(encoded.code), encoded.others.ctypes.data, encoded.moves.ctypes.data,
        encoded.shapes.ctypes.data, ranges.ctypes.data, len(ranges), launch.ctypes.data, first, last,
        room.ctypes.data + -room.ctypes.data % 64, 0 if marks is None else marks.array.ctypes.data,
        0 if marks is None else marks.size, fault.ctypes.data,
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
        case 9:
            raise Fault(f"an address {_UNWRITTEN}", where=where)
        case 10:
            raise Fault(f"a condition or the mask of lanes {_UNWRITTEN}", where=where)
        case 11:
            raise Fault(f"what it stores {_UNWRITTEN}", where=where)
        case 12:
            what = f"{size} bytes of global memory at {address:#x}"
            raise Fault(f"a race: two workgroups of one launch touch {what}, and one writes", where=where)
        case 13:
            raise Fault("a wave waits at this barrier, and another of its workgroup has ended", where=where)
        case 14:
            raise Fault("a wave signals a barrier twice, or waits at one that it has not signalled", where=where)
        case 15:
            what = f"{size} bytes of local memory at {address:#x}"
            raise Fault(
                f"{what} are touched before the copy that fills them is known to be done: a wait is missing behind "
                "it, or between it and the barrier after which another wave touches them",
                where=where,
            )
        case _:
            raise InternalError(f"the emulator stopped for reason {code}", where=where)
