"""What a verification found: frozen, as text for people and as plain data for programs."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.comparison import Mismatch

__all__ = ["CaseReport", "Difference", "InstructionReport", "NonFinite", "Report", "difference_lines", "plain"]


_SHOWN: Final = 5
"""Instructions with the largest errors that are shown, where none is wrong."""
_DECADES: Final = 6
"""Decades of the errors that a line tells apart."""


@dataclass(frozen=True, slots=True)
class NonFinite:
    """How many numbers are NaN or infinite on either side, and where the sides differ in that first."""

    nan_expected: int
    inf_expected: int
    nan_found: int
    inf_found: int
    first: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """How far one output is from the expected one.

    `largest` is the greatest difference, `relative` the same over the largest expected magnitude, `rms` the root mean
    square over that magnitude; `different` of `size` elements are not the same bits (NaN equals NaN), the first of
    them at `first`, where `found` stands and `expected` should. The greatest difference is at `worst`, where
    `worst_found` stands and `worst_expected` should. `histogram` counts elements by their error as a share of the
    largest magnitude: `0`, then the end of the decade that it lies in (`1e-7`: above 1e-8, up to 1e-7), and `more`
    than 1. `non_finite` is there where a number is NaN or infinite. Texts have no errors, and an empty histogram.
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
    worst: tuple[int, ...] | None = None
    worst_found: str = ""
    worst_expected: str = ""
    histogram: dict[str, int] = field(default_factory=dict)
    non_finite: NonFinite | None = None


@dataclass(frozen=True, slots=True)
class CaseReport:
    """One set of inputs: how they came about, what ran them, the rule for the outputs, and how these were."""

    number: int
    seed: int
    inputs: dict[str, str]
    differences: tuple[Difference, ...]
    mismatches: tuple[Mismatch, ...]
    variant: str = ""
    tolerance: str = ""

    @property
    def passed(self) -> bool:
        """Whether every output agrees."""
        return not self.mismatches


@dataclass(frozen=True, slots=True)
class InstructionReport:
    """One instruction of the model on the inputs of case 0, against ref: by itself, on true inputs, and in the run.

    `differences` and `mismatches` are those by itself; `accumulated` has what all instructions before it add.
    `observed` says that this is of the artifact's own run, not of code that gives every result. `failed` is why it was
    not run, alone or in the run. `rounding` says where it is further off by itself than rounding explains, by however
    little. `inherent` are mismatches in the run that are the model's own: ref and ref64 are as far apart there.
    """

    node: str
    op: str
    differences: tuple[Difference, ...]
    mismatches: tuple[Mismatch, ...]
    accumulated: tuple[Difference, ...] = ()
    accumulated_mismatches: tuple[Mismatch, ...] = ()
    observed: bool = False
    failed: str = ""
    rounding: tuple[Mismatch, ...] = ()
    inherent: tuple[Mismatch, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether it was run, and its results agree, both ways."""
        return not (self.failed or self.mismatches or self.accumulated_mismatches)

    @property
    def error(self) -> float:
        """The greatest difference by itself, over the largest magnitude."""
        return max((difference.relative for difference in self.differences), default=0.0)

    @property
    def accumulated_error(self) -> float:
        """The greatest difference in the run, over the largest magnitude."""
        return max((difference.relative for difference in self.accumulated), default=0.0)


@dataclass(frozen=True, slots=True)
class Report:
    """The answer of `verify`. `str(report)` is the text that the command line shows.

    `instructions` are there where they were asked for, in the order of the program.
    """

    variant: str
    reference: str
    tolerance: str
    cases: tuple[CaseReport, ...]
    instructions: tuple[InstructionReport, ...] = ()

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
        found: dict[str, Any] = plain(told)
        return found

    def __str__(self) -> str:
        lines = [f"{self.variant} against {self.reference}, tolerance: {self.tolerance}"]
        for case in self.cases:
            lines.append(f"case {case.number}: {'agrees' if case.passed else 'DOES NOT AGREE'} (seed {case.seed})")
            if (case.variant, case.tolerance) != (self.variant, self.tolerance) and case.variant:
                rule = "" if case.tolerance == self.tolerance else f", tolerance: {case.tolerance}"
                lines.append(f"  {case.variant}{rule}")
            lines += [f"  input {name}: {told}" for name, told in case.inputs.items()]
            lines += [f"  {line}" for difference in case.differences for line in difference_lines(difference)]
            lines += [f"  mismatch: {mismatch}" for mismatch in case.mismatches]
        if self.instructions:
            lines += _told_instructions(self.instructions)
        lines.append("passed" if self.passed else "FAILED")
        return "\n".join(lines)


def _told_instructions(entries: tuple[InstructionReport, ...]) -> list[str]:
    """How many differ, those, and the largest errors, as shares of the largest magnitude of each result."""
    alone = sum(bool(entry.mismatches) for entry in entries)
    together = sum(bool(entry.accumulated_mismatches) for entry in entries)
    rounded = sum(bool(entry.rounding) for entry in entries)
    inherent = sum(bool(entry.inherent) for entry in entries)
    counts = f"{alone} differ alone, on true inputs, {together} in the run"
    counts += f" and {inherent} where ref and ref64 are as far apart" if inherent else ""
    failed = sum(bool(entry.failed) for entry in entries)
    lines = [f"{len(entries)} instructions compared: {counts}; {rounded} are further off alone than rounding explains"]
    lines[0] += f"; {failed} could not be run" if failed else ""
    lines += [f"  could not be run: {entry.node} ({entry.op}): {entry.failed}" for entry in entries if entry.failed]
    differ = [entry for entry in entries if entry.mismatches or entry.accumulated_mismatches]
    wrong = differ or [entry for entry in entries if entry.rounding]
    shown = wrong or sorted(entries, key=lambda entry: -entry.error)[:_SHOWN]
    lines.append(f"  {'alone':>8} {'in run':>8}  {'those that differ' if wrong else 'the largest errors'}")
    for entry in shown:
        reasons = (*entry.mismatches, *entry.accumulated_mismatches, *entry.rounding)
        why = next((mismatch.what for mismatch in reasons), "")
        told = f"{entry.node} ({entry.op}){': ' if why else ''}{why}"
        lines.append(f"  {entry.error:8.1e} {entry.accumulated_error:8.1e}  {told}")
    return lines


def difference_lines(difference: Difference) -> list[str]:
    """One line for the same bits, else also where the worst element is, and how the errors are spread."""
    text = f"{difference.name} {difference.type}: "
    numbers = difference.non_finite
    if not difference.different:
        held = f", {_counts(numbers.nan_expected, numbers.inf_expected)} among them" if numbers else ""
        same = "the same bits" if not difference.largest else f"the nearest numbers, {_error(difference)}"
        return [f"{text}{same}{held}"]
    numeric = f"{_error(difference)}, " if difference.histogram else ""
    lines = [f"{text}{numeric}{difference.different} of {difference.size} elements differ"]
    for what, place, found, expected in (
        ("worst", difference.worst, difference.worst_found, difference.worst_expected),
        ("first", difference.first, difference.found, difference.expected),
    ):
        if place is not None and (what == "worst" or place != difference.worst):
            lines.append(f"  {what} at {list(place)}: {found}, expected {expected}")
    if difference.histogram:
        lines.append(f"  errors over the largest magnitude: {_spread(difference.histogram)}")
    if numbers is not None:
        where = "in the same places" if numbers.first is None else f"first different at {list(numbers.first)}"
        found = _counts(numbers.nan_found, numbers.inf_found)
        lines.append(f"  not finite: {found}, expected {_counts(numbers.nan_expected, numbers.inf_expected)}, {where}")
    return lines


def _spread(histogram: dict[str, int]) -> str:
    """The largest decades; what is smaller than these counts to the least of them."""
    decades = [name for name in histogram if name != "0"]
    few, shown = decades[:-_DECADES], decades[-_DECADES:]
    counts = {name: histogram[name] for name in (*(["0"] if "0" in histogram else []), *shown)}
    if few:
        counts[shown[0]] += sum(histogram[name] for name in few)
    return ", ".join(f"{name if name in ('0', 'more') else f'to {name}'} in {count}" for name, count in counts.items())


def _error(difference: Difference) -> str:
    share = f"{difference.largest:.3g} ({difference.relative:.2g} of the largest magnitude)"
    return f"largest difference {share}, rms {difference.rms:.2g}"


def _counts(nan: int, inf: int) -> str:
    return f"{nan} NaN and {inf} Inf"


def plain(value: Any) -> Any:
    """Plain data; numbers that JSON can't hold are texts."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.loads(json.dumps(value))
