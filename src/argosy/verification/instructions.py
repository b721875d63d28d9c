"""Every instruction of a model compared with ref: alone, on true inputs, and with all errors of those before it.

Alone, all instructions stand side by side in one program, so that one compile serves all of them. With the errors
before it, an instruction's result is what the artifact itself has computed, where that lies in memory as it is; what a
kernel keeps for itself, or in another order, is computed by code in which every result is an output.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from argosy.comparison import compare
from argosy.errors import ArgosyError
from argosy.ir.module import Constant, Instruction
from argosy.ir.types import TensorType
from argosy.runtime.session import Session
from argosy.verification.bodies import body_of
from argosy.verification.code import Code
from argosy.verification.cutting import Truth, apart, exposed
from argosy.verification.measure import measure
from argosy.verification.report import InstructionReport
from argosy.verification.single_op import tolerance_of
from argosy.verification.tolerance import Tolerance

__all__ = ["compare_instructions", "compile_parts"]

log = logging.getLogger("argosy.verify")

_MOST_BYTES: Final = 1 << 29
"""Bytes of results that one program has as outputs, at most."""

_Found = dict[Instruction, tuple[Any, ...]]
_Failed = dict[Instruction, str]


def compare_instructions(
    truth: Truth, code: Code, session: Session, inputs: Mapping[str, Any], tolerance: Tolerance
) -> tuple[InstructionReport, ...]:
    """A report for each instruction that gives tensors, in the order of the program.

    Those of a branch that is taken, or of a loop's first iteration, come behind the conditional or loop, alone only.
    `code` is how the session's variant was compiled; `truth` is what ref computes from the same inputs.
    """
    steps = _steps(truth)
    alone, failed = _apart(truth, steps, code)
    observed = _observed(truth, session, inputs)
    wanted = steps if code.is_kept else [step for step in steps if step not in observed]
    together = _exposed(truth, wanted, code, failed) | observed
    reports: list[InstructionReport] = []
    for step in steps:
        reports.append(_report(truth, step, alone, together, set(observed), failed, tolerance))
        reports += _inside(step, truth, code, tolerance)
    return tuple(reports)


def compile_parts(truth: Truth, code: Code) -> None:
    """Have `code` make all that `compare_instructions` runs of code that is kept."""
    steps = _steps(truth)
    _, failed = _apart(truth, steps, code)
    _exposed(truth, steps, code, failed)
    for body in filter(None, (body_of(step, truth) for step in steps)):
        _compile_apart(body, code)


def _compile_apart(body: Truth, code: Code) -> None:
    """The instructions of a body, and of those inside it."""
    steps = _steps(body)
    _apart(body, steps, code)
    for inner in filter(None, (body_of(step, body) for step in steps)):
        _compile_apart(inner, code)


def _steps(truth: Truth) -> list[Instruction]:
    return [step for step in truth.steps if all(isinstance(kind, TensorType) for kind in step.types)]


def _apart(truth: Truth, steps: Sequence[Instruction], code: Code) -> tuple[_Found, _Failed]:
    """What the steps give alone, and why some do not run."""
    alone: _Found = {}
    failed: _Failed = {}
    for chosen in _portions(truth, steps):
        _run_apart(truth, chosen, code, alone, failed)
    return alone, failed


def _inside(step: Instruction, truth: Truth, code: Code, tolerance: Tolerance) -> Iterator[InstructionReport]:
    """The instructions of the body that a control op runs, alone, and those inside them."""
    body = body_of(step, truth)
    if body is None:
        return
    steps = _steps(body)
    alone, failed = _apart(body, steps, code)
    for inner in steps:
        yield _report(body, inner, alone, {}, set(), failed, tolerance)
        yield from _inside(inner, body, code, tolerance)


def _portions(truth: Truth, steps: Sequence[Instruction]) -> Iterator[list[Instruction]]:
    """The steps in order, so many at a time that their results fit."""
    portion: list[Instruction] = []
    size = 0
    for step in steps:
        needed = sum(np.asarray(truth.values[value]).nbytes for value in step.results)
        if portion and size + needed > _MOST_BYTES:
            yield portion
            portion, size = [], 0
        portion.append(step)
        size += needed
    if portion:
        yield portion


def _run_apart(truth: Truth, steps: Sequence[Instruction], code: Code, found: _Found, failed: _Failed) -> None:
    """What each of the steps gives by itself; where a program of several fails, each half is tried."""
    try:
        part = apart(truth, steps)
        if part is not None:
            found.update(_by_step(steps, code.run_part(part)))
    except ArgosyError as error:
        if len(steps) == 1:
            log.info("%s does not run alone: %s", steps[0].source, error)
            failed[steps[0]] = error.what
            return
        middle = len(steps) // 2
        _run_apart(truth, steps[:middle], code, found, failed)
        _run_apart(truth, steps[middle:], code, found, failed)
        if failed.keys().isdisjoint(steps):
            log.warning("%d instructions side by side end with an error that none has alone: %s", len(steps), error)


def _exposed(truth: Truth, steps: Sequence[Instruction], code: Code, failed: _Failed) -> _Found:
    """What the steps give in code for the whole program, whose outputs they are; why some don't goes to `failed`."""
    found: _Found = {}
    for chosen in _portions(truth, steps):
        try:
            part = exposed(truth, chosen)
            if part is not None:
                found.update(_by_step(chosen, code.run_part(part)))
        except ArgosyError as error:
            failed.update((step, error.what) for step in chosen)
    return found


def _by_step(steps: Sequence[Instruction], outputs: Mapping[str, Any]) -> _Found:
    results = iter(outputs.values())
    return {step: tuple(next(results) for _ in step.types) for step in steps}


def _observed(truth: Truth, session: Session, inputs: Mapping[str, Any]) -> _Found:
    """The results that a run of the session shows, of the steps whose nodes and types they have."""
    last: dict[str, tuple[Instruction, tuple[Any, ...]]] = {}

    def keep(instruction: Instruction, results: Sequence[Any]) -> None:
        if instruction.source and not isinstance(instruction.op, Constant):
            last[instruction.source] = instruction, tuple(results)

    session.observe(inputs, keep)
    ends = {step.source: step for step in truth.steps if step.source}  # what a node ends with
    return {
        step: last[node][1]
        for node, step in ends.items()
        if node in last and last[node][0].types == step.types and all(each is not None for each in last[node][1])
    }


def _report(
    truth: Truth, step: Instruction, alone: _Found, together: _Found, observed: set[Instruction], failed: _Failed,
    tolerance: Tolerance,
) -> InstructionReport:  # fmt: skip
    names = [value.name or f"result {value.index}" for value in step.results]
    expected = dict(zip(names, (truth.values[value] for value in step.results), strict=True))

    def named(found: _Found) -> dict[str, Any]:
        return dict(zip(names, found[step], strict=True)) if step in found else {}

    by_itself, in_all = named(alone), named(together)
    rounding = tolerance_of(step, truth.symbols, tolerance.precision, truth.operands(step))
    return InstructionReport(
        step.source or step.op.name,
        step.op.name,
        measure(expected, by_itself),
        tolerance.compare(expected, by_itself) if by_itself else (),
        measure(expected, in_all),
        tolerance.compare(expected, in_all) if in_all else (),
        step in observed,
        failed.get(step, ""),
        compare(expected, by_itself, rounding) if by_itself else (),
    )
