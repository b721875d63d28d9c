"""The page of the documentation: totals, families, and every failure with its reason."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence

import ml_dtypes
import numpy as np
import onnx

import argosy
from tests.conformance.judge import Outcome
from tests.conformance.pool import HasId
from tests.conformance.suites import Suite

__all__ = ["page", "shorten"]

_OP = re.compile(r"([\w.]+::\w+), opset \d+")


def page(suite: Suite, cases: Sequence[HasId], results: Mapping[str, Sequence[Outcome]]) -> str:
    """The page of a suite, in Markdown, for the outcomes of each target."""
    versions = {
        "argosy": argosy.__version__,
        "onnx": onnx.__version__,
        "opset": onnx.defs.onnx_opset_version(),
        "numpy": np.__version__,
        "ml_dtypes": ml_dtypes.__version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
    }
    parts = [f"# {suite.title}\n", "<!-- Written by `make conformance`. -->\n", suite.about]
    parts.append(f"Versions: {', '.join(f'{name} {version}' for name, version in versions.items())}.\n")
    groups = {case.id: suite.group(case) for case in cases}
    families = {case.id: name for case in cases if (name := suite.family(case)) is not None}
    for target, outcomes in results.items():
        parts += [f"## {target}\n", _table("kind", outcomes, groups), "### By family of ops\n"]
        parts.append(_table("family", [outcome for outcome in outcomes if outcome.id in families], families))
        parts += _failures(outcomes)
    if suite.remarks:
        parts.append(suite.remarks)
    return "\n".join(parts)


def _table(noun: str, outcomes: Sequence[Outcome], names: Mapping[str, str]) -> str:
    lines = [f"| {noun} | cases | passed | failed |", "|---|---:|---:|---:|"]
    for name in sorted({names[outcome.id] for outcome in outcomes}):
        found = [outcome for outcome in outcomes if names[outcome.id] == name]
        lines.append(f"| {name} | {_counts(found)}")
    return "\n".join([*lines, f"| **all** | {_counts(outcomes, '**')}", ""])


def _counts(outcomes: Sequence[Outcome], mark: str = "") -> str:
    passed = sum(outcome.passed for outcome in outcomes)
    numbers = (len(outcomes), passed, len(outcomes) - passed)
    return "".join(f"{mark}{number}{mark} | " for number in numbers).rstrip()


def _failures(outcomes: Sequence[Outcome]) -> list[str]:
    """A table from reason to cases, which many share."""
    reasons: dict[str, list[str]] = {}
    for outcome in sorted(outcomes, key=lambda outcome: outcome.id):
        if not outcome.passed:
            reasons.setdefault(shorten(outcome.reason), []).append(outcome.id)
    if not reasons:
        return []
    rows = [f"| {_cell(reason)} | {len(ids)} | {_cell(', '.join(ids))} |" for reason, ids in sorted(reasons.items())]
    return ["### Failures\n", "| reason | number | cases |", "|---|---:|---|", *rows, ""]


def shorten(reason: str, limit: int = 240) -> str:
    """A reason in one line of at most `limit` characters; of unsupported nodes, the ops."""
    if reason.startswith("UnsupportedError") and (ops := _OP.findall(reason)):
        reason = f"unsupported: {', '.join(sorted(set(ops)))}"
    line = re.sub(r"\s+", " ", reason).strip()
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _cell(text: str) -> str:
    """Text that Markdown takes literally inside a table."""
    return re.sub(r"([\\`*_<>\[\]|])", r"\\\1", text)
