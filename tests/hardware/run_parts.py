"""`run-parts FOLDER`: every instruction of packed models on this machine's device, compared with ref.

Alone, on true inputs, no instruction may differ, nor be further off than rounding explains.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import argosy
from argosy.artifact.artifact import Artifact
from argosy.verification import Parts, Report
from benchmarks.models import catalog
from tests.conformance.judge import Outcome, explain, shorten
from tests.conformance.pool import Named, run_cases
from tests.hardware.pack_parts import ARTIFACT, PARTS
from tests.hardware.packs import Packs

__all__ = ["add", "judge_parts"]


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to a command line."""
    parser = verbs.add_parser("run-parts", help="compare packed instructions on a device here", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the packs are")
    parser.add_argument("--device", default="cuda", help="what runs the code (default: cuda)")
    parser.add_argument("--workers", type=int, default=4, metavar="N", help="processes at a time (default: 4)")
    parser.add_argument("--limit", type=float, default=120.0, metavar="S", help="seconds for one model (default: 120)")
    parser.add_argument("--reports", type=Path, metavar="FOLDER", help="where the whole reports go, as JSON")
    parser.set_defaults(run=_run)


def judge_parts(packs: Packs, name: str, device: str, reports: Path | None = None) -> Outcome:
    """The verdict on a model."""
    start = time.perf_counter()
    try:
        report = _report(packs, name, device)
        reason = "; ".join(_wrong(report))
        if reports is not None:
            reports.mkdir(parents=True, exist_ok=True)
            (reports / f"{name}.json").write_text(json.dumps(report.to_json(), indent=1), encoding="utf-8")
            (reports / f"{name}.txt").write_text(f"{report}\n", encoding="utf-8")
    except Exception as error:  # noqa: BLE001 - whatever it raises fails the model
        reason = explain(error)
    return Outcome(name, reason, time.perf_counter() - start)


def _report(packs: Packs, name: str, device: str) -> Report:
    with tempfile.TemporaryDirectory() as place:
        for item in packs.names:
            if item.startswith(f"{name}/"):
                file = Path(place, item.removeprefix(f"{name}/"))
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(packs.content(item))
        parts = Parts.open(Path(place, PARTS))
        program, weights = None, None
        if any(preset.name == name for _, preset in catalog.presets()):
            program = argosy.load_onnx(catalog.make(name))
            weights = parts.weights(program)
        artifact = Artifact.open(Path(place, ARTIFACT), weights=weights)
        options: dict[str, Any] = {"device": device, "per_instruction": True, "parts": parts}
        return argosy.verify(program or artifact.program(), artifact, **options)


def _wrong(report: Report) -> list[str]:
    found = [] if report.passed else ["the outputs differ"]
    found += [f"{entry.node} does not run: {entry.failed}" for entry in report.instructions if entry.failed]
    found += [f"{entry.node} differs: {entry.mismatches[0]}" for entry in report.instructions if entry.mismatches]
    return found + [
        f"{entry.node} is further off than rounding explains: {entry.rounding[0]}"
        for entry in report.instructions
        if entry.rounding and not entry.mismatches
    ]


def _run(options: argparse.Namespace) -> int:
    packs = Packs(options.folder, PARTS)
    names = [item.removesuffix(f"/{ARTIFACT}") for item in packs.names if item.endswith(f"/{ARTIFACT}")]
    passed = 0
    verdicts = run_cases(
        [Named(name) for name in names],
        lambda case: judge_parts(packs, case.id, options.device, options.reports),
        workers=options.workers,
        limit=options.limit,
        alone=True,
    )
    for outcome in verdicts:
        passed += outcome.passed
        verdict = "every instruction agrees" if outcome.passed else f"FAILED: {shorten(outcome.reason, 600)}"
        sys.stdout.write(f"{outcome.id}: {verdict}, {outcome.seconds:.1f} s\n")
        sys.stdout.flush()
    sys.stdout.write(f"{passed} of {len(names)} models have no instruction that is wrong alone\n")
    return 0 if passed == len(names) else 1
