"""Runs a kernel: all waves of a batch of workgroups, those at the same place together, the lowest place first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from argosy.emulation.archs import generation
from argosy.emulation.decode import Instruction, Program
from argosy.emulation.launch import LaunchState, launch_state
from argosy.emulation.memory import Fault, Memory
from argosy.emulation.numpy_engine.access import run_access
from argosy.emulation.numpy_engine.lanes import run_lanes
from argosy.emulation.numpy_engine.products import run_matrix
from argosy.emulation.numpy_engine.vector import run_scalar, run_vector
from argosy.emulation.numpy_engine.waves import Waves
from argosy.emulation.operands import EXEC, M0, TTMP, VCC
from argosy.emulation.refusal import NotEmulated

__all__ = ["run_kernel"]

_ENDED: Final = 1 << 40
_WAITING: Final = 1 << 39
"""Places of waves that are done, and what is added to those of waves at a barrier."""
_BATCH: Final = 64 << 20
"""Bytes of registers and local memory of the workgroups that run together."""


def run_kernel(program: Program, memory: Memory, kernarg: int, grid: Sequence[int], threads: int, shared: int) -> None:
    """Run every workgroup of a grid. Raises Fault and NotEmulated, with the instruction."""
    state = launch_state(program.listing, threads, shared)
    each = state.waves * state.lanes * (4 * (state.vectors + state.accumulators) + state.private_size) + state.lds_size
    batch = max(1, _BATCH // each)
    old = generation(program.listing.arch).clears_halves
    with np.errstate(all="ignore"):
        for first in range(0, grid[0] * grid[1] * grid[2], batch):
            numbers = np.arange(first, min(first + batch, grid[0] * grid[1] * grid[2]))
            waves = Waves(
                len(numbers),
                state.waves,
                state.lanes,
                state.vectors,
                state.accumulators,
                state.lds_size,
                state.private_size,
            )
            _begin(
                waves, state, kernarg, (numbers % grid[0], numbers // grid[0] % grid[1], numbers // (grid[0] * grid[1]))
            )
            _Run(program, memory, waves, old=old).go()


def _begin(waves: Waves, state: LaunchState, kernarg: int, ids: tuple[Any, Any, Any]) -> None:
    """Fill the registers of a batch of workgroups; `ids` are their numbers along x, y and z."""
    if state.kernarg_at is not None:
        waves.scalars[state.kernarg_at] = kernarg & 0xFFFFFFFF
        waves.scalars[state.kernarg_at + 1] = kernarg >> 32
    along = [np.repeat(np.asarray(each, np.uint32), waves.per_group) for each in ids]
    if state.ids_in_traps:
        waves.scalars[TTMP + 9] = along[0]
        waves.scalars[TTMP + 7] = along[1] | (along[2] << np.uint32(16))
        waves.scalars[TTMP + 8] = np.tile(np.arange(waves.per_group, dtype=np.uint32), waves.groups) << np.uint32(25)
    else:
        place = state.ids_at
        for axis in range(3):
            if state.id_axes >> axis & 1:
                waves.scalars[place] = along[axis]
                place += 1
    thread = (np.arange(waves.per_group)[:, None] * waves.lanes + np.arange(waves.lanes)[None, :]).astype(np.uint32)
    waves.vectors[0] = np.tile(thread, (waves.groups, 1))
    waves.scalars[M0] = 0
    waves.scalars[EXEC + 1] = 0
    waves.write_mask(EXEC, slice(None), np.tile(thread < state.threads, (waves.groups, 1)))


class _Run:
    def __init__(self, program: Program, memory: Memory, waves: Waves, *, old: bool) -> None:
        self._program, self._memory, self._waves, self._old = program, memory, waves, old
        self._signalled = np.zeros(waves.groups, np.bool_)

    def go(self) -> None:
        waves = self._waves
        while True:
            lowest = int(waves.places.min())
            if lowest >= _ENDED:
                return
            if lowest >= _WAITING:
                raise _Stuck("all waves wait at a barrier, and none is released")
            here = waves.places == lowest
            if here.all():
                self._straight(lowest, slice(None), waves.total, alone=True)
            else:
                chosen = np.flatnonzero(here)
                self._straight(lowest, chosen, len(chosen), alone=False)
            self._release()

    def _release(self) -> None:
        """Let workgroups go on of which every wave that is not done has reached the barrier."""
        waves = self._waves
        places = waves.places.reshape(waves.groups, waves.per_group)
        ready = (places >= _WAITING).all(1) & ((places >= _WAITING) & (places < _ENDED)).any(1)
        if ready.any():
            group = places[ready]
            places[ready] = np.where(group < _ENDED, group - _WAITING, group)
            self._signalled[ready] = False

    def _straight(self, place: int, chosen: Any, count: int, *, alone: bool) -> None:
        """Run from a place on until something changes where waves go."""
        program, waves = self._program, self._waves
        instructions, joins = program.instructions, program.joins
        first = place
        while True:
            if place >= len(instructions):
                raise Fault("it runs past its last instruction", where=program.listing.name)
            if not alone and place != first and place in joins:
                waves.places[chosen] = place
                return
            instruction = instructions[place]
            try:
                moved = self._step(instruction, chosen, count)
            except (Fault, NotEmulated) as problem:
                raise _placed(problem, program, instruction) from None
            if moved:
                return
            place += 1

    def _step(self, instruction: Instruction, chosen: Any, count: int) -> bool:
        """Do one instruction; True where it has set the places of the waves."""
        waves = self._waves
        if instruction.operation is not None:
            if instruction.operation.unit == "scalar":
                run_scalar(waves, instruction, instruction.operation, chosen, count)
                return False
            calls = run_vector(waves, instruction, instruction.operation, chosen, count, old=self._old)
            other = instruction.second
            if other is not None and other.operation is not None:
                calls += run_vector(waves, other, other.operation, chosen, count, old=self._old)
            for call in calls:
                call()
            return False
        if instruction.memory is not None:
            run_access(waves, self._memory, instruction, instruction.memory, chosen, count)
            return False
        if instruction.matrix is not None:
            run_matrix(waves, instruction, instruction.matrix, chosen, count)
            return False
        if instruction.name == "nothing":
            return False
        if instruction.name.startswith(("v_", "ds_")):
            run_lanes(waves, instruction, chosen, count)
            return False
        return self._flow(instruction, chosen, count)

    def _flow(self, instruction: Instruction, chosen: Any, count: int) -> bool:
        waves, name = self._waves, instruction.name
        following = instruction.place + 1
        match name:
            case "s_endpgm":
                waves.places[chosen] = _ENDED
                return True
            case "s_barrier_signal" | "s_barrier_signal_isfirst":
                groups = waves.group_of[chosen]
                if name.endswith("isfirst"):
                    first = np.diff(groups, prepend=-1) != 0  # waves are in order of their workgroups
                    waves.scc[chosen] = first & ~self._signalled[groups]
                self._signalled[groups] = True
                return False
            case "s_barrier" | "s_barrier_wait":
                waves.places[chosen] = _WAITING + following
                return True
            case "s_branch":
                waves.places[chosen] = instruction.target
                return True
            case "s_getreg_b32" | "s_setreg_b32" | "s_setreg_imm32_b32" | "s_trap" | "s_getpc_b64" | "s_setpc_b64":
                raise NotEmulated(f"the instruction {name}")
            case _ if name.startswith("s_cbranch_"):
                taken = self._condition(name.removeprefix("s_cbranch_"), chosen)
                waves.places[chosen] = np.where(taken, instruction.target, following)
                return True
            case _:
                raise NotEmulated(f"the instruction {name}")

    def _condition(self, name: str, chosen: Any) -> Any:
        waves = self._waves
        if name.startswith("scc"):
            return waves.scc[chosen] == (name[3] == "1")
        number = VCC if name.startswith("vcc") else EXEC
        some = waves.scalars[number][chosen] != 0
        if waves.lanes > 32:
            some |= waves.scalars[number + 1][chosen] != 0
        return ~some if name.endswith("z") and not name.endswith("nz") else some


class _Stuck(Fault):
    """The emulator itself went wrong."""


def _placed(problem: Fault | NotEmulated, program: Program, instruction: Instruction) -> Fault | NotEmulated:
    statement = instruction.statement
    where = f"{program.listing.name}, line {statement.line}: {statement.text}"
    if isinstance(problem, NotEmulated):
        return NotEmulated(problem.what, where)
    return Fault(problem.what, where=where, hint=problem.hint)
