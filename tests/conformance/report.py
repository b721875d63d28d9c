"""The page of the documentation: what passes on which target, and every failure with its reason.

A call runs some of the targets. Of the others the page keeps what it said: their recorded lists give the counts.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Collection, Mapping, Sequence

import ml_dtypes
import numpy as np
import onnx

import argosy
from tests.conformance.judge import Outcome, shorten
from tests.conformance.pool import HasId
from tests.conformance.runners import RUNNERS
from tests.conformance.suites import Suite

__all__ = ["page"]

_TARGETS = tuple(RUNNERS)
_COLUMNS = """\
`ref` is the interpreter's target, `cpu` native code at the machine's own level and `cpu-LEVEL` at that level, both
without any host step; with `cpu-with-host-steps`, ops over strings, sequences and images may run on the host.
"""


def page(
    suite: Suite,
    cases: Sequence[HasId],
    results: Mapping[str, Sequence[Outcome]],
    recorded: Mapping[str, Collection[str]],
    before: str,
) -> str:
    """The page of a suite, in Markdown: the outcomes of the targets that ran, what was `recorded` for the others.

    `before` is the page as it was, which has the reasons of the others' failures.
    """
    versions = {
        "argosy": argosy.__version__,
        "onnx": onnx.__version__,
        "opset": onnx.defs.onnx_opset_version(),
        "numpy": np.__version__,
        "ml_dtypes": ml_dtypes.__version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
    }
    passed = {target: set(ids) for target, ids in recorded.items()}
    for target, outcomes in results.items():
        passed[target] = {outcome.id for outcome in outcomes if outcome.passed}
    passed = dict(sorted(passed.items(), key=lambda entry: _TARGETS.index(entry[0])))
    groups = {case.id: suite.group(case) for case in cases}
    families = {case.id: name for case in cases if (name := suite.family(case)) is not None}
    parts = [f"# {suite.title}\n", "<!-- Written by `make conformance`. -->\n", suite.about, _COLUMNS]
    parts.append(f"Versions: {', '.join(f'{name} {version}' for name, version in versions.items())}.\n")
    parts += ["## What passes\n", _table("kind", groups, passed)]
    parts += ["### By family of ops\n", _table("family", families, passed)]
    for target in passed:
        failures = _failures(results[target]) if target in results else _section(before, target)
        if failures:
            parts += [f"{_heading(target)}\n", failures]
    if suite.remarks:
        parts.append(suite.remarks)
    return "\n".join(parts)


def _heading(target: str) -> str:
    return f"## Failures on {target}"


def _section(page: str, target: str) -> str:
    """What a page says of a target's failures."""
    _, found, rest = page.partition(f"{_heading(target)}\n")
    return f"{rest.partition(f'{chr(10)}## ')[0].strip()}\n" if found else ""


def _table(noun: str, names: Mapping[str, str], passed: Mapping[str, Collection[str]]) -> str:
    """How many cases of each name pass on each target."""
    lines = [f"| {' | '.join((noun, 'cases', *passed))} |", f"|---|{'---:|' * (1 + len(passed))}"]
    lines += [
        f"| {name} | {_counts({case for case in names if names[case] == name}, passed)}"
        for name in sorted(set(names.values()))
    ]
    return "\n".join([*lines, f"| **all** | {_counts(set(names), passed, '**')}", ""])


def _counts(cases: set[str], passed: Mapping[str, Collection[str]], mark: str = "") -> str:
    numbers = (len(cases), *(len(cases.intersection(ids)) for ids in passed.values()))
    return "".join(f"{mark}{number}{mark} | " for number in numbers).rstrip()


def _failures(outcomes: Sequence[Outcome]) -> str:
    """A table from reason to cases, which many share."""
    reasons: dict[str, list[str]] = {}
    for outcome in sorted(outcomes, key=lambda outcome: outcome.id):
        if not outcome.passed:
            reasons.setdefault(shorten(outcome.reason), []).append(outcome.id)
    if not reasons:
        return ""
    rows = [f"| {_cell(reason)} | {len(ids)} | {_cell(', '.join(ids))} |" for reason, ids in sorted(reasons.items())]
    return "\n".join(["| reason | number | cases |", "|---|---:|---|", *rows, ""])


def _cell(text: str) -> str:
    """Text that Markdown takes literally inside a table."""
    return re.sub(r"([\\`*_<>\[\]|])", r"\\\1", text)
