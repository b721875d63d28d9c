"""`make conformance`: ONNX's backend suite on our targets, the page in the docs, and whether anything got worse.

The exit status is 1 where a case fails that the recorded list has as passing, or where fewer than
`--at-least` pass.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from tests.conformance import baseline
from tests.conformance.cases import Case, load_cases
from tests.conformance.judge import Outcome
from tests.conformance.pool import run_cases
from tests.conformance.report import page, shorten
from tests.conformance.runners import RUNNERS

DOCS = Path(__file__).resolve().parents[2] / "docs" / "conformance.md"


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, run, report."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--target", action="append", choices=list(RUNNERS), help="where to run (default: ref)")
    parser.add_argument("--only", metavar="REGEX", help="run the cases whose id matches; writes nothing")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="worker processes (default: 2)")
    parser.add_argument("--limit", type=float, default=120.0, metavar="S", help="seconds for one case (default: 120)")
    parser.add_argument("--at-least", type=int, default=0, metavar="N", help="fail where fewer cases pass")
    parser.add_argument("--record", action="store_true", help="take what passes now as the list to hold")
    options = parser.parse_args(arguments)
    cases = load_cases()
    if options.only:
        cases = tuple(case for case in cases if re.search(options.only, case.id))
    status = 0
    results = {}
    for target in options.target or ["ref"]:
        outcomes = _run(target, cases, options)
        results[target] = outcomes
        status |= _verdict(target, outcomes, options, whole=not options.only)
    if not options.only:
        DOCS.write_text(page(results, cases), encoding="utf-8")
        _say(f"wrote {DOCS.name}")
    return status


def _run(target: str, cases: tuple[Case, ...], options: argparse.Namespace) -> list[Outcome]:
    outcomes = []
    for outcome in run_cases(cases, RUNNERS[target], workers=options.workers, limit=options.limit):
        outcomes.append(outcome)
        if options.only and not outcome.passed:
            _say(f"FAILED {outcome.id}: {shorten(outcome.reason)}")
        if len(outcomes) % 250 == 0:
            _say(f"{target}: {len(outcomes)} of {len(cases)} cases")
    return outcomes


def _verdict(target: str, outcomes: list[Outcome], options: argparse.Namespace, *, whole: bool) -> int:
    """Say what passed, what got worse and what got better; 1 where that is not good enough."""
    passed = {outcome.id for outcome in outcomes if outcome.passed}
    _say(f"{target}: {len(passed)} of {len(outcomes)} cases pass")
    reasons = {outcome.id: outcome.reason for outcome in outcomes}
    held = set(baseline.read(target))
    worse = sorted(case for case in held & reasons.keys() if case not in passed)
    for case in worse:
        _say(f"  passed before: {case}: {shorten(reasons[case])}")
    if whole and options.record:
        baseline.write(target, passed)
        worse = []
    elif whole and passed - held:
        _say(f"  {len(passed - held)} cases pass that the list lacks: record them with --record")
    if len(passed) < options.at_least:
        _say(f"  that is fewer than {options.at_least}")
    return int(bool(worse) or len(passed) < options.at_least)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
