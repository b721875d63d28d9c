"""`argosy.perf`: runs a session many times and watches the clock."""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from argosy.artifact.artifact import Artifact
from argosy.errors import UsageError
from argosy.inputs import InputRequest, make_inputs
from argosy.ir.formula import Formula
from argosy.ir.module import Constant, Instruction
from argosy.options import Dimensions, DimValue
from argosy.profiling.report import InstructionTime, OpTime, Report, Times
from argosy.runtime.nodes import KernelCall
from argosy.runtime.session import Session

__all__ = ["perf"]

log = logging.getLogger("argosy.perf")

Clock: TypeAlias = Callable[[], float]
MAX_ITERATIONS: Final = 100
_BUDGET: Final = 10.0
"""Seconds after which runs stop, where no number of them is asked for; at least `_FEWEST` are done."""
_FEWEST: Final = 3
_OBSERVED: Final = 10


def perf(
    source: Session | Artifact | str | Path | bytes,
    *,
    inputs: Mapping[str, Any] | InputRequest | None = None,
    dims: Mapping[str, DimValue] | Dimensions | None = None,
    iterations: int | None = None,
    warmup: int = 2,
    device: str | None = None,
    exact: bool = False,
    clock: Clock = time.perf_counter,
) -> Report:
    """Measure a session, or an artifact on this machine, on one set of inputs.

    `inputs` are arrays by name or a request; what is missing is generated, with sizes from `dims`. Without `iterations`
    there are 100 runs, fewer where they would take over ten seconds. `clock` gives seconds: on a busy machine, with one
    thread, `time.process_time` counts what the process itself used.
    """
    if iterations is not None and iterations < 1:
        raise UsageError(f"iterations is {iterations}, expected at least 1")
    session = source if isinstance(source, Session) else Session(source, device=device, exact=exact)
    request = inputs if isinstance(inputs, InputRequest) else InputRequest()
    given = None if isinstance(inputs, InputRequest) else inputs
    made = make_inputs(session.inputs, request, Dimensions.of(dims), given=given)
    with made.explaining():
        first = _timed(session, made.values, clock)
    for _ in range(warmup):
        _timed(session, made.values, clock)
    seconds = _runs(session, made.values, iterations, clock)
    observed = min(len(seconds), _OBSERVED)
    instructions = _instructions(session, made.values, observed, clock)
    told = {name: f"{_told(value)}, {made.origins[name]}" for name, value in made.values.items()}
    return Report(session.variant, told, first, warmup, Times.of(seconds), observed, instructions, _by_op(instructions))


def _timed(session: Session, values: Mapping[str, Any], clock: Clock) -> float:
    begin = clock()
    session.run(values)
    return clock() - begin


def _runs(session: Session, values: Mapping[str, Any], iterations: int | None, clock: Clock) -> list[float]:
    seconds: list[float] = []
    end = time.perf_counter() + _BUDGET
    for number in range(iterations or MAX_ITERATIONS):
        if iterations is None and number >= _FEWEST and time.perf_counter() > end:
            break
        log.info("run %d", number + 1)
        seconds.append(_timed(session, values, clock))
    return seconds


class _Watch:
    """Adds the time since the last instruction to the one that just ended."""

    def __init__(self, clock: Clock) -> None:
        self.spent: dict[Instruction, list[float]] = {}
        self._clock = clock
        self._last = clock()

    def __call__(self, instruction: Instruction, results: Sequence[Any]) -> None:
        now = self._clock()
        self.spent.setdefault(instruction, []).append(now - self._last)
        self._last = self._clock()


def _instructions(session: Session, values: Mapping[str, Any], runs: int, clock: Clock) -> tuple[InstructionTime, ...]:
    totals: dict[Instruction, list[float]] = {}
    calls: dict[Instruction, int] = {}
    for _ in range(runs):
        watch = _Watch(clock)
        session.observe(values, watch)
        for instruction, spent in watch.spent.items():
            totals.setdefault(instruction, []).append(sum(spent))
            calls[instruction] = len(spent)
    medians = {
        instruction: statistics.median(spent)
        for instruction, spent in totals.items()
        if not isinstance(instruction.op, Constant)
    }
    whole = sum(medians.values()) or 1.0
    return tuple(
        InstructionTime(
            instruction.source or next(filter(None, instruction.names), ""),
            _op_name(instruction),
            ", ".join(map(str, instruction.types)),
            seconds,
            seconds / whole,
            calls[instruction],
        )
        for instruction, seconds in medians.items()
    )


def _op_name(instruction: Instruction) -> str:
    """The op; a formula of one primitive is called by that too, a kernel by what it does."""
    if isinstance(instruction.op, KernelCall):
        return instruction.op.family
    formula = getattr(instruction.op, "formula", None)
    if isinstance(formula, Formula) and formula.primitive:
        return f"{instruction.op.name} {formula.primitive}"
    return instruction.op.name


def _by_op(instructions: tuple[InstructionTime, ...]) -> tuple[OpTime, ...]:
    groups: dict[str, list[InstructionTime]] = {}
    for entry in instructions:
        groups.setdefault(entry.op, []).append(entry)
    found = [
        OpTime(op, len(group), sum(entry.seconds for entry in group), sum(entry.share for entry in group))
        for op, group in groups.items()
    ]
    return tuple(sorted(found, key=lambda entry: -entry.seconds))


def _told(value: Any) -> str:
    if value is None:
        return "absent"
    if isinstance(value, (list, dict)):
        return f"{type(value).__name__} of {len(value)}"
    return f"{value.dtype}{list(value.shape)}"
