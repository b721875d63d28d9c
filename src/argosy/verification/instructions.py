"""Every instruction of a model compared with ref or ref64: alone, on true inputs, and with all errors of those before.

Alone, all instructions stand side by side in one program, so that one compile serves all of them. With the errors
before it, an instruction's result is what the artifact itself has computed, where that lies in memory as it is; what a
kernel keeps for itself, or in another order, or what the passes made something else of, is computed by code in which
every result is an output.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from argosy.comparison import Agree, compare
from argosy.errors import ArgosyError
from argosy.ir.interpreter import Interpreter
from argosy.ir.module import Constant, Instruction, Value
from argosy.ir.op import Env
from argosy.ir.types import TensorType, Type
from argosy.runtime.session import Session
from argosy.verification.bodies import body_of
from argosy.verification.code import Code
from argosy.verification.conditioning import Conditioning
from argosy.verification.cutting import Cut, Truth, apart, exposed
from argosy.verification.measure import measure
from argosy.verification.report import InstructionReport
from argosy.verification.single_op import tolerance_of
from argosy.verification.tolerance import Tolerance

__all__ = ["compare_instructions", "compile_parts"]

log = logging.getLogger("argosy.verify")

_MOST_BYTES: Final = 1 << 29
"""Bytes of results that one program has as outputs, at most."""

_Found = dict[Instruction, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class _Runs:
    """What code gives for instructions, and what it should on what they read, exact too against ref64; or why not."""

    found: _Found = field(default_factory=dict)
    expected: _Found = field(default_factory=dict)
    exact: _Found = field(default_factory=dict)
    failed: dict[Instruction, str] = field(default_factory=dict)

    def add(self, steps: Sequence[Instruction], part: Cut, code: Code) -> None:
        """Run a part that has the results of these steps, in order. Raises ArgosyError."""
        self.found.update(_by_step(steps, code.run_part(part)))
        self.expected.update(_by_step(steps, part.expected))
        self.exact.update(_by_step(steps, part.exact or {}))


def compare_instructions(
    truth: Truth, code: Code, session: Session, inputs: Mapping[str, Any], tolerance: Tolerance
) -> tuple[InstructionReport, ...]:
    """A report for each instruction that gives tensors, in the order of the program.

    Those of a branch that is taken, or of a loop's first iteration, come behind the conditional or loop, alone only.
    `code` is how the session's variant was compiled; `truth` is what ref, or ref64, computes from the same inputs.
    """
    steps = _steps(truth)
    alone = _apart(truth, steps, code)
    observed = _observed(truth, code, session, inputs, tolerance)
    together = _exposed(truth, steps if code.is_kept else [step for step in steps if step not in observed], code)
    together.found.update(observed)
    own = [_report(truth, step, alone, together, set(observed), tolerance) for step in steps]
    if any(report.accumulated_mismatches for report in own):
        conditioning = Conditioning(truth)
        own = [conditioning.judged(report, _results(step)) for step, report in zip(steps, own, strict=True)]
    reports: list[InstructionReport] = []
    for step, report in zip(steps, own, strict=True):
        reports += (report, *_inside(step, truth, code, tolerance))
    return tuple(reports)


def compile_parts(truth: Truth, code: Code) -> None:
    """Have `code` make all that `compare_instructions` runs of code that is kept."""
    _exposed(truth, _steps(truth), code)
    _compile_apart(truth, code)


def _compile_apart(truth: Truth, code: Code) -> None:
    """The instructions of a module, and of the bodies inside it."""
    steps = _steps(truth)
    _apart(truth, steps, code)
    for body in filter(None, (body_of(step, truth) for step in steps)):
        _compile_apart(body, code)


def _steps(truth: Truth) -> list[Instruction]:
    return [step for step in truth.steps if all(isinstance(kind, TensorType) for kind in step.types)]


def _apart(truth: Truth, steps: Sequence[Instruction], code: Code) -> _Runs:
    """What the steps give alone, and why some do not run."""
    alone = _Runs()
    for chosen in _portions(truth, steps):
        _run_apart(truth, chosen, code, alone)
    return alone


def _inside(step: Instruction, truth: Truth, code: Code, tolerance: Tolerance) -> Iterator[InstructionReport]:
    """The instructions of the body that a control op runs, alone, and those inside them."""
    body = body_of(step, truth)
    if body is None:
        return
    steps = _steps(body)
    alone = _apart(body, steps, code)
    for inner in steps:
        yield _report(body, inner, alone, _Runs(), set(), tolerance)
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


def _run_apart(truth: Truth, steps: Sequence[Instruction], code: Code, alone: _Runs) -> None:
    """What each of the steps gives by itself; where a program of several fails, each half is tried."""
    try:
        part = apart(truth, steps)
        if part is not None:
            alone.add(steps, part, code)
    except ArgosyError as error:
        if len(steps) == 1:
            log.info("%s does not run alone: %s", steps[0].source, error)
            alone.failed[steps[0]] = error.what
            return
        middle = len(steps) // 2
        _run_apart(truth, steps[:middle], code, alone)
        _run_apart(truth, steps[middle:], code, alone)
        if alone.failed.keys().isdisjoint(steps):
            log.warning("%d instructions side by side end with an error that none has alone: %s", len(steps), error)


def _exposed(truth: Truth, steps: Sequence[Instruction], code: Code) -> _Runs:
    """What the steps give in code for the whole program, whose outputs they are, and why some don't."""
    together = _Runs()
    for chosen in _portions(truth, steps):
        try:
            part = exposed(truth, chosen)
            if part is not None:
                together.add(chosen, part, code)
        except ArgosyError as error:
            together.failed.update((step, error.what) for step in chosen)
    return together


def _by_step(steps: Sequence[Instruction], outputs: Mapping[str, Any]) -> _Found:
    results = iter(outputs.values())
    return {step: tuple(next(results) for _ in step.types) for step in steps} if outputs else {}


def _observed(truth: Truth, code: Code, session: Session, inputs: Mapping[str, Any], tolerance: Tolerance) -> _Found:
    """The results that a run of the session shows, of the steps that they are the results of.

    Passes may make something else of a node, a convolution with the scale of what follows or a product whose zero
    points are left to that: then ref doesn't get from the passed program what the step gives.
    """
    seen, meant = _Ends(), _Ends()
    session.observe(inputs, seen, number=truth.number)
    try:
        passed = code.piped(truth.module)
        Interpreter(passed).run([inputs[name] for name in passed.parameter_names], Env({}, truth.number), meant)
    except ArgosyError as error:
        log.warning("what the passes make of the program ends with an error by ref: %s", error)
    rule = Agree(tolerance.quantised, tolerance.precision)
    found: _Found = {}
    for node, step in {step.source: step for step in truth.steps if step.source}.items():  # what a node ends with
        types, results = seen.last.get(node, ((), ()))
        if types != step.types or any(each is None for each in results):
            continue
        values = _results(step)
        expected = {name: truth.values[value] for name, value in values.items()}
        if not compare(expected, dict(zip(values, meant.last.get(node, ((), ()))[1], strict=False)), rule):
            found[step] = results
    return found


class _Ends:
    """An observer that keeps what each node ends with: its types and results."""

    def __init__(self) -> None:
        self.last: dict[str, tuple[tuple[Type, ...], tuple[Any, ...]]] = {}

    def __call__(self, instruction: Instruction, results: Sequence[Any]) -> None:
        if instruction.source and not isinstance(instruction.op, Constant):
            self.last[instruction.source] = instruction.types, tuple(results)


def _results(step: Instruction) -> dict[str, Value]:
    """The results of an instruction by the names that reports give them."""
    return {value.name or f"result {value.index}": value for value in step.results}


def _report(
    truth: Truth, step: Instruction, alone: _Runs, together: _Runs, observed: set[Instruction], tolerance: Tolerance
) -> InstructionReport:
    values = _results(step)

    def named(found: _Found) -> dict[str, Any]:
        return dict(zip(values, found[step], strict=True)) if step in found else {}

    by_itself, in_all = named(alone.found), named(together.found)
    true, true_exact = named(alone.expected), named(alone.exact) or None
    expected = {name: truth.values[value] for name, value in values.items()}
    exact = None if truth.exact is None else {name: truth.exact[value] for name, value in values.items()}
    rounding = tolerance_of(step, truth.symbols, tolerance.precision, truth.operands(step))
    return InstructionReport(
        step.source or step.op.name,
        step.op.name,
        measure(true, by_itself, true_exact),
        tolerance.compare(true, by_itself, true_exact) if by_itself else (),
        measure(expected, in_all, exact),
        tolerance.compare(expected, in_all, exact) if in_all else (),
        step in observed,
        alone.failed.get(step) or together.failed.get(step, ""),
        compare(true, by_itself, rounding, true_exact) if by_itself else (),
    )
