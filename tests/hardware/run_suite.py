"""`run-suite FOLDER`: judges ONNX's backend suite on this machine's device, by the artifacts that packs hold.

Each artifact is restored bit for bit, opened as any other and run; the verdict is that of the conformance suite. A case
fails, too, where nothing was compiled for it, or where the suite makes another model here than where it was compiled.
A kernel that reads where it must not spoils the driver for its process: what fails is judged again, alone in a process,
and the second verdict counts. What has passed only so is told.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import argosy
from argosy.drivers.discovery import devices, driver_words
from tests.conformance.cases import Case
from tests.conformance.judge import Outcome, judge, shorten
from tests.conformance.pool import run_cases
from tests.conformance.runners import Run
from tests.hardware.packs import PackError, Packs
from tests.hardware.suite import MODE, MODEL, STEM, STRICT, add_only, chosen, fingerprint

__all__ = ["PackedRunner", "add", "judge_packed"]


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to a command line."""
    parser = verbs.add_parser("run-suite", help="judge the packed suite on a device here", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the packs are")
    parser.add_argument("--device", default="cuda", help="what runs the artifacts (default: cuda)")
    parser.add_argument("--workers", type=int, default=30, metavar="N", help="worker processes (default: 30)")
    parser.add_argument("--limit", type=float, default=60.0, metavar="S", help="seconds for one case (default: 60)")
    parser.add_argument("--json", type=Path, metavar="F", help="write counts and failures to this file")
    parser.add_argument("--at-least-strict", type=int, default=0, metavar="N", help="fail where fewer pass strictly")
    parser.add_argument("--at-least", type=int, default=0, metavar="N", help="fail where fewer pass in all")
    add_only(parser)
    parser.set_defaults(run=_run)


@dataclass(frozen=True, slots=True)
class PackedRunner:
    """A session on the artifact that was packed for the case `name`."""

    packs: Packs
    name: str
    device: str

    def prepare(self, model: onnx.ModelProto) -> Run:
        """A session on the restored artifact. Raises PackError where it was compiled from another model."""
        if fingerprint(model) != self.packs.about(self.name)[MODEL]:
            raise PackError("the suite makes another model here than the one that was compiled")
        return argosy.Session(self.packs.content(self.name), device=self.device).run


def judge_packed(case: Case, packs: Packs, device: str) -> Outcome:
    """The verdict on a case; where nothing was packed, the reason that the pack gives."""
    if case.id not in packs:
        return Outcome(case.id, "it was not packed", 0.0)
    if reason := packs.reason(case.id):
        return Outcome(case.id, reason, 0.0)
    return judge(case, PackedRunner(packs, case.id, device))


def _run(options: argparse.Namespace) -> int:
    packs = Packs(options.folder, STEM)
    cases = chosen(options)
    start = time.monotonic()
    verdict = partial(judge_packed, packs=packs, device=options.device)
    how = {"workers": options.workers, "limit": options.limit}
    outcomes: dict[str, Outcome] = {}
    for outcome in run_cases(cases, verdict, **how):
        outcomes[outcome.id] = outcome
        if len(outcomes) % 250 == 0:
            _say(f"{len(outcomes)} of {len(cases)} cases")
    again = [case for case in cases if not outcomes[case.id].passed and case.id in packs and not packs.reason(case.id)]
    alone = {outcome.id: outcome for outcome in run_cases(again, verdict, **how, alone=True)}
    found = report(cases, packs, [*(outcomes | alone).values()]) | {
        "passed only alone": [outcome.id for outcome in alone.values() if outcome.passed],
        "seconds": round(time.monotonic() - start, 1),
        "on": _about(),
    }
    for name, reason in found["failures"].items():
        _say(f"FAILED {name}: {shorten(reason)}")
    _say(json.dumps({key: value for key, value in found.items() if key != "failures"}))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    passed: dict[str, int] = found["passed"]
    enough = passed["strict"] >= options.at_least_strict and passed["in all"] >= options.at_least
    return 0 if enough else 1


def report(cases: Sequence[Case], packs: Packs, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Counts of cases, by kind and in all, and the reason of each failure by the case's id."""
    passed = {outcome.id for outcome in outcomes if outcome.passed}
    strict = {name for name in passed if packs.about(name)[MODE] == STRICT}
    compiled = [packs.about(case.id).get(MODE, "not") for case in cases if case.id in packs]
    return {
        "cases": len(cases),
        "compiled": dict(Counter(compiled)),
        "passed": {"strict": len(strict), "in all": len(passed)},
        "passed by kind": dict(Counter(case.kind for case in cases if case.id in passed)),
        "failures": {each.id: each.reason for each in sorted(outcomes, key=lambda one: one.id) if not each.passed},
    }


def _about() -> dict[str, str]:
    """What the figures come from. Asked last: a process that has asked a driver can't fork workers that do."""
    found = devices()
    return {
        "devices": ", ".join(
            f"{each.name} ({each.arch}, driver {driver_words(each.kind, each.driver)})" for each in found
        ),
        "argosy": argosy.__version__,
        "onnx": onnx.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
