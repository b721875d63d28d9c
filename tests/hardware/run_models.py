"""`run-models FOLDER`: packed real models on this machine's device agree with ONNX Runtime, at both sizes.

Each model has a process of its own, so that what one does to the device's context is not counted against others.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import argosy
from tests.conformance.judge import Outcome, explain, shorten
from tests.conformance.pool import Named, run_cases
from tests.hardware.packs import Packs
from tests.hardware.trials import MODELS, read_trial, said_of, trial_names

__all__ = ["add", "judge_model"]


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to a command line."""
    parser = verbs.add_parser("run-models", help="judge packed models on a device here", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the packs are")
    parser.add_argument("--device", default="cuda", help="what runs the artifacts (default: cuda)")
    parser.add_argument("--model", action="append", help="only these (default: all in the packs)")
    parser.add_argument("--workers", type=int, default=4, metavar="N", help="processes at a time (default: 4)")
    parser.add_argument("--limit", type=float, default=60.0, metavar="S", help="seconds for one model (default: 60)")
    parser.set_defaults(run=_run)


def judge_model(packs: Packs, name: str, device: str) -> Outcome:
    """The verdict on a model."""
    start = time.perf_counter()
    try:
        trial = read_trial(packs, name)
        reason = "; ".join(trial.mismatches(argosy.Session(trial.artifact, device=device)))
    except Exception as error:  # noqa: BLE001 - whatever it raises fails the model
        reason = explain(error)
    return Outcome(name, reason, time.perf_counter() - start)


def _run(options: argparse.Namespace) -> int:
    packs = Packs(options.folder, MODELS)
    names = options.model or trial_names(packs)
    passed = 0
    verdicts = run_cases(
        [Named(name) for name in names],
        lambda case: judge_model(packs, case.id, options.device),
        workers=options.workers,
        limit=options.limit,
        alone=True,
    )
    for outcome in verdicts:
        passed += outcome.passed
        note, runs = said_of(packs, outcome.id)
        verdict = "agrees" if outcome.passed else f"FAILED: {shorten(outcome.reason)}"
        sys.stdout.write(f"{outcome.id} ({note}; {' and '.join(runs)}): {verdict}, {outcome.seconds:.1f} s\n")
        sys.stdout.flush()
    sys.stdout.write(f"{passed} of {len(names)} models agree with ONNX Runtime at both sizes\n")
    return 0 if passed == len(names) else 1
