"""The page of the documentation: totals, families, and every failure with its reason."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import ml_dtypes
import numpy as np
import onnx

import argosy
from tests.conformance.cases import KINDS, Case
from tests.conformance.families import family
from tests.conformance.judge import Outcome

__all__ = ["page", "shorten"]

_OP = re.compile(r"([\w.]+::\w+), opset \d+")

_HEAD = """\
# Conformance

<!-- Written by `make conformance`. -->

ONNX ships a suite of models with inputs and expected outputs. Every case runs the whole way: import, compile,
save, load from the saved bytes, run. A case passes when every output of every data set is there under its
name, in the model's order, with exactly the declared element type and shape, with non-finite values in the
same places, with integers equal and floats within the suite's own tolerances. Anything else is a failure:
an exception of any kind, the suite's "not supposed to implement it" among them, or more than the time limit.

Versions: {versions}.
"""


def page(results: Mapping[str, Sequence[Outcome]], cases: Sequence[Case]) -> str:
    """The page, in Markdown, for the outcomes of each target."""
    versions = ", ".join(
        f"{name} {version}"
        for name, version in (
            ("argosy", argosy.__version__),
            ("onnx", onnx.__version__),
            ("opset", onnx.defs.onnx_opset_version()),
            ("numpy", np.__version__),
            ("ml_dtypes", ml_dtypes.__version__),
            ("Python", ".".join(platform.python_version_tuple()[:2])),
        )
    )
    by_id = {case.id: case for case in cases}
    parts = [_HEAD.format(versions=versions)]
    for target, outcomes in results.items():
        parts += _target(target, sorted(outcomes, key=lambda outcome: outcome.id), by_id)
    return "\n".join(parts)


def _target(target: str, outcomes: Sequence[Outcome], cases: Mapping[str, Case]) -> list[str]:
    kinds = _table("kind", outcomes, lambda outcome: cases[outcome.id].kind, KINDS)
    nodes = [outcome for outcome in outcomes if cases[outcome.id].kind == "node"]
    families = {outcome.id: family(cases[outcome.id]) for outcome in nodes}
    rows = _table("family", nodes, lambda outcome: families[outcome.id], sorted(set(families.values())))
    failed = [outcome for outcome in outcomes if not outcome.passed]
    parts = [f"## {target}\n", kinds, "### Node cases by family of ops\n", rows]
    if failed:
        reasons: dict[str, list[str]] = {}
        for outcome in failed:
            reasons.setdefault(shorten(outcome.reason), []).append(outcome.id)
        parts += ["### Failures\n", "| reason | number | cases |", "|---|---:|---|"]
        parts += [
            f"| {_cell(reason)} | {len(reasons[reason])} | {_cell(', '.join(reasons[reason]))} |"
            for reason in sorted(reasons)
        ]
        parts.append("")
    return parts


def _table(noun: str, outcomes: Sequence[Outcome], key: Callable[[Outcome], str], order: Iterable[str]) -> str:
    lines = [f"| {noun} | cases | passed | failed |", "|---|---:|---:|---:|"]
    for name in order:
        found = [outcome.passed for outcome in outcomes if key(outcome) == name]
        if found:
            lines.append(f"| {name} | {len(found)} | {sum(found)} | {len(found) - sum(found)} |")
    passed = sum(outcome.passed for outcome in outcomes)
    lines.append(f"| **all** | **{len(outcomes)}** | **{passed}** | **{len(outcomes) - passed}** |")
    return "\n".join([*lines, ""])


def shorten(reason: str, limit: int = 240) -> str:
    """A reason in one line of at most `limit` characters; of unsupported nodes, the ops."""
    if reason.startswith("UnsupportedError") and (ops := _OP.findall(reason)):
        reason = f"unsupported: {', '.join(sorted(set(ops)))}"
    line = re.sub(r"\s+", " ", reason).strip()
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _cell(text: str) -> str:
    """Text that Markdown takes literally inside a table."""
    return re.sub(r"([\\`*_<>\[\]|])", r"\\\1", text)
