"""What a verification found: frozen, as text for people and as plain data for programs."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from typing import Any

from argosy.comparison import Mismatch

__all__ = ["CaseReport", "Difference", "InstructionReport", "Report"]


@dataclass(frozen=True, slots=True)
class Difference:
    """How far one output is from the expected one.

    `largest` is the greatest difference, `relative` the same over the largest expected magnitude, `rms` the root mean
    square over that magnitude; `different` of `size` elements are not the same bits (NaN equals NaN), the first of
    them at `first`, where `found` stands and `expected` should.
    """

    name: str
    type: str
    largest: float
    relative: float
    rms: float
    different: int
    size: int
    first: tuple[int, ...] | None
    found: str
    expected: str


@dataclass(frozen=True, slots=True)
class CaseReport:
    """One set of inputs: how they came about, and what the outputs were."""

    number: int
    seed: int
    inputs: dict[str, str]
    differences: tuple[Difference, ...]
    mismatches: tuple[Mismatch, ...]

    @property
    def passed(self) -> bool:
        """Whether every output agrees."""
        return not self.mismatches


@dataclass(frozen=True, slots=True)
class InstructionReport:
    """One node of the model, on the inputs of case 0: its result as the code computed it, against ref's."""

    node: str
    op: str
    differences: tuple[Difference, ...]
    mismatches: tuple[Mismatch, ...]

    @property
    def passed(self) -> bool:
        """Whether its results agree."""
        return not self.mismatches


@dataclass(frozen=True, slots=True)
class Report:
    """The answer of `verify`. `str(report)` is the text that the command line shows.

    `instructions` are there where they were asked for, in the order of execution; `unmatched` counts those
    that have no counterpart of the same node, op and type on the other side.
    """

    variant: str
    reference: str
    tolerance: str
    cases: tuple[CaseReport, ...]
    instructions: tuple[InstructionReport, ...] = ()
    unmatched: int = 0

    @property
    def passed(self) -> bool:
        """Whether every output of every case agrees. Instructions in between do not count."""
        return all(case.passed for case in self.cases)

    @property
    def first_difference(self) -> InstructionReport | None:
        """The first instruction that does not agree."""
        return next((entry for entry in self.instructions if not entry.passed), None)

    def to_json(self) -> dict[str, Any]:
        """Plain data; numbers that JSON can't hold are texts."""
        told: dict[str, Any] = {"passed": self.passed, **dataclasses.asdict(self)}
        for case, data in zip(self.cases, told["cases"], strict=True):
            data["passed"] = case.passed
        for entry, data in zip(self.instructions, told["instructions"], strict=True):
            data["passed"] = entry.passed
        plain: dict[str, Any] = _plain(told)
        return plain

    def __str__(self) -> str:
        lines = [f"{self.variant} against {self.reference}, tolerance: {self.tolerance}"]
        for case in self.cases:
            lines.append(f"case {case.number}: {'agrees' if case.passed else 'DOES NOT AGREE'} (seed {case.seed})")
            lines += [f"  input {name}: {told}" for name, told in case.inputs.items()]
            lines += [f"  {_told(difference)}" for difference in case.differences]
            lines += [f"  mismatch: {mismatch}" for mismatch in case.mismatches]
        if self.instructions:
            failed = [entry for entry in self.instructions if not entry.passed]
            lines.append(
                f"{len(self.instructions)} instructions compared, {len(failed)} differ; "
                f"{self.unmatched} have no counterpart"
            )
            lines += [f"  {entry.node} ({entry.op}): {entry.mismatches[0].what}" for entry in failed]
        lines.append("passed" if self.passed else "FAILED")
        return "\n".join(lines)


def _told(difference: Difference) -> str:
    text = f"{difference.name} {difference.type}: "
    if not difference.different:
        return f"{text}the same bits"
    text += f"largest difference {difference.largest:.3g} ({difference.relative:.2g} of the largest magnitude), "
    text += f"rms {difference.rms:.2g}, {difference.different} of {difference.size} elements differ"
    if difference.first is not None:
        text += f", first at {list(difference.first)}: {difference.found}, expected {difference.expected}"
    return text


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.loads(json.dumps(value))
