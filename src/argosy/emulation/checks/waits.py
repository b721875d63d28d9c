"""Missing waits: what an outstanding load is to fill is touched, or local memory is still busy at a barrier.

Memory instructions raise counters, which fall when they are done; a wait lets a wave go on once a counter is at most
so much. What a wait of `n` says of one instruction depends on the order in which those that share its counter are
done:

- Vector memory, and local memory, do what a wave asks of them in order, so that one with `n` later ones behind it is
  done. Where loads and stores of vector memory share a counter, they share their order.
- Scalar loads are done in any order, and so is what goes by flat addresses: they are done only when the counter is 0.
- Where both kinds share a counter, as local memory and scalar loads may, what is outstanding of the one says
  nothing of the other, but the count holds both.
- A load may fill a register, or the other half of one, that an outstanding load of its own order fills.
- At a barrier no store to local memory may be outstanding; and no load from there that still is when the wave, and so
  any other one, stores there next.

Counts of exports (expcnt) guard nothing here: no kernel exports. `s_waitcnt_depctr` and `s_wait_alu` are for hazards
between instructions that the hardware does not see; they are not judged.

Sources: AMD's instruction set documents, "Data Dependency Resolution" and "Manually Inserted Wait States"; LLVM's "User
Guide for AMDGPU Backend", "Memory Model", for what a barrier needs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from argosy.emulation.archs import generation
from argosy.emulation.checks.counters import Event, raised, waited
from argosy.emulation.checks.finding import Finding
from argosy.emulation.checks.flow import blocks_of
from argosy.emulation.checks.registers import Access, access_of, register_name
from argosy.emulation.decode import Instruction, Program

__all__ = ["find_missing_waits"]

_MOST: Final = 64
"""No counter goes higher."""
_BARRIERS: Final = frozenset({"s_barrier", "s_barrier_signal", "s_barrier_signal_isfirst"})


@dataclass(frozen=True, slots=True)
class _Step:
    """What matters of an instruction here."""

    access: Access
    events: tuple[Event, ...]
    waits: tuple[tuple[str, int], ...]
    local: bool
    stores: bool
    barrier: bool


_Key = tuple[int, str]
"""One outstanding instruction: its place, and a counter that it holds up."""


class _State:
    """What may be outstanding. `ages` counts how many later ones of its order there are at least.

    `crossed` holds the loads from local memory that were outstanding at a barrier, and are so still.
    """

    __slots__ = ("ages", "crossed", "owed")

    def __init__(self, ages: dict[_Key, int], owed: dict[int, frozenset[_Key]], crossed: set[_Key]) -> None:
        self.ages, self.owed, self.crossed = ages, owed, crossed

    def copy(self) -> _State:
        return _State(dict(self.ages), dict(self.owed), set(self.crossed))

    def join(self, other: _State) -> bool:
        """Take in what may be outstanding on another way here; True where that is more."""
        grown = False
        for key, age in other.ages.items():
            if age < self.ages.get(key, _MOST + 1):
                self.ages[key] = age
                grown = True
        for register, keys in other.owed.items():
            old = self.owed.get(register, frozenset())
            if not keys <= old:
                self.owed[register] = old | keys
                grown = True
        if not other.crossed <= self.crossed:
            self.crossed |= other.crossed
            grown = True
        return grown


def find_missing_waits(program: Program) -> tuple[Finding, ...]:
    """Every place of a kernel where a wait is missing, in the order of the text."""
    return _Waits(program).find()


class _Waits:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._counters = generation(program.listing.arch).counters
        self._steps = [self._step(each) for each in program.instructions]
        self._blocks = blocks_of(program)

    def find(self) -> tuple[Finding, ...]:
        if not self._blocks:
            return ()
        entries: dict[int, _State] = {0: _State({}, {}, set())}
        waiting = deque([0])
        while waiting:
            number = waiting.popleft()
            block, state = self._blocks[number], entries[number].copy()
            for place in range(block.first, block.last):
                self._after(state, place)
            for following in block.following:
                if following not in entries:
                    entries[following] = state.copy()
                elif not entries[following].join(state):
                    continue
                if following not in waiting:
                    waiting.append(following)
        found: list[Finding] = []
        for number in sorted(entries):
            block, state = self._blocks[number], entries[number].copy()
            for place in range(block.first, block.last):
                found.extend(self._problems(state, place))
                self._after(state, place)
        return tuple(found)

    # ------------------------------------------------------------------------------------------------- instructions
    def _step(self, instruction: Instruction) -> _Step:
        return _Step(
            access_of(instruction),
            tuple(raised(instruction, self._counters)),
            tuple(waited(instruction, self._counters)),
            instruction.memory is not None and instruction.memory.space == "lds",
            _stores_local(instruction),
            instruction.statement.mnemonic in _BARRIERS,
        )

    # ------------------------------------------------------------------------------------------------- states
    def _after(self, state: _State, place: int) -> None:
        step = self._steps[place]
        for counter, most in step.waits:
            done = [
                key
                for key, age in state.ages.items()
                if key[1] == counter and (most == 0 or (self._ordered(key) and age >= most))
            ]
            for key in done:
                self._finish(state, key)
        for register in step.access.writes:
            state.owed.pop(register, None)
        if step.barrier:
            state.crossed |= {key for key in state.ages if self._steps[key[0]].local and not self._steps[key[0]].stores}
        if not step.events:
            return
        for event in step.events:
            if event.ordered:
                for key, age in state.ages.items():
                    if key[1] == event.counter and age < _MOST and self._ordered(key):
                        state.ages[key] = age + 1
        keys = frozenset((place, event.counter) for event in step.events)
        for register in step.access.loads:
            state.owed[register] = keys
        if step.access.loads or step.stores:
            for key in keys:
                state.ages[key] = 0
                state.crossed.discard(key)

    def _ordered(self, key: _Key) -> bool:
        return any(event.ordered and event.counter == key[1] for event in self._steps[key[0]].events)

    def _finish(self, state: _State, key: _Key) -> None:
        del state.ages[key]
        state.crossed.discard(key)
        for register in self._steps[key[0]].access.loads:
            held = state.owed.get(register)
            if held is None or key not in held:
                continue
            left = held - {key}
            if left:
                state.owed[register] = left
            else:
                del state.owed[register]

    # ------------------------------------------------------------------------------------------------- problems
    def _problems(self, state: _State, place: int) -> Iterator[Finding]:
        step = self._steps[place]
        touched = step.access
        if state.owed:
            for verb, registers in (("reads", touched.reads), ("overwrites", touched.writes | touched.loads)):
                for register in sorted(registers & state.owed.keys()):
                    keys = state.owed[register]
                    if register in touched.loads and all(self._in_order(key, step) for key in keys):
                        continue
                    for key in sorted(keys):
                        yield self._told(
                            place,
                            f"it {verb} {register_name(register)}, which {self._line(key[0])} may not have loaded yet: "
                            f"{self._missing(state, key)} is missing before it",
                        )
        if step.barrier:
            for key in sorted(state.ages):
                if self._steps[key[0]].stores:
                    yield self._told(
                        place,
                        f"what {self._line(key[0])} stores to local memory may not be there yet for the waves that "
                        f"this barrier lets go on: {self._missing(state, key)} is missing before it",
                    )
        if step.stores:
            for key in sorted(state.crossed):
                yield self._told(
                    place,
                    f"it may store where another wave's {self._line(key[0])} has not loaded from local memory yet: "
                    f"{self._missing(state, key)} is missing before the barrier between them",
                )

    def _line(self, place: int) -> str:
        statement = self._program.instructions[place].statement
        return f"line {statement.line} ({statement.text})"

    def _in_order(self, key: _Key, step: _Step) -> bool:
        """Whether memory writes its results after those of an outstanding load, so that no wait is needed."""
        return self._ordered(key) and any(event.ordered and event.counter == key[1] for event in step.events)

    def _missing(self, state: _State, key: _Key) -> str:
        most = state.ages[key] if self._ordered(key) else 0
        return self._counters.wait(key[1], most)

    def _told(self, place: int, what: str) -> Finding:
        return Finding(self._program.listing.name, self._program.instructions[place].statement, what)


def _stores_local(instruction: Instruction) -> bool:
    form = instruction.memory
    return form is not None and form.space == "lds" and form.store
