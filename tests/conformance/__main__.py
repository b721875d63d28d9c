"""`make conformance`: a suite on our targets, its page in the docs, and whether anything got worse.

The exit status is 1 where a case fails that the recorded list has as passing, or where fewer than
`--at-least` pass.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
from collections.abc import Sequence

from tests.conformance import baseline
from tests.conformance.judge import Outcome, shorten
from tests.conformance.pool import HasId, run_cases
from tests.conformance.report import page
from tests.conformance.runners import RUNNERS
from tests.conformance.suites import SUITES, Suite


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, run, report."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--suite", choices=list(SUITES), default="onnx", help="which cases (default: onnx)")
    parser.add_argument("--target", action="append", choices=list(RUNNERS), help="where to run (default: ref)")
    parser.add_argument("--only", metavar="REGEX", help="run the cases whose id matches; writes nothing")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="worker processes (default: 2)")
    parser.add_argument("--limit", type=float, default=120.0, metavar="S", help="seconds for one case (default: 120)")
    parser.add_argument("--at-least", type=int, default=0, metavar="N", help="fail where fewer cases pass")
    parser.add_argument("--record", action="store_true", help="take what passes now as the list to hold")
    options = parser.parse_args(arguments)
    suite = SUITES[options.suite]
    try:
        cases = suite.load()
    except FileNotFoundError as error:
        _say(f"the data of this suite are not here: {error.filename}")
        return 1
    if options.only:
        cases = [case for case in cases if re.search(options.only, case.id)]
    results = {target: _run(suite, target, cases, options) for target in options.target or ["ref"]}
    good = [_verdict(suite.baseline(target), outcomes, options) for target, outcomes in results.items()]
    if not options.only:
        recorded = {target: held for target in RUNNERS if (held := baseline.read(suite.baseline(target)))}
        before = suite.page.read_text(encoding="utf-8") if suite.page.is_file() else ""
        suite.page.write_text(page(suite, cases, results, recorded, before), encoding="utf-8")
        _say(f"wrote {suite.page.name}")
    return 0 if all(good) else 1


def _run(suite: Suite, target: str, cases: Sequence[HasId], options: argparse.Namespace) -> list[Outcome]:
    runner = RUNNERS[target]
    outcomes = []
    for outcome in run_cases(
        cases, lambda case: suite.judge(case, runner), workers=options.workers, limit=options.limit
    ):
        outcomes.append(outcome)
        if options.only and not outcome.passed:
            _say(f"FAILED {outcome.id}: {shorten(outcome.reason)}")
        if len(outcomes) % 250 == 0:
            _say(f"{target}: {len(outcomes)} of {len(cases)} cases")
    return outcomes


def _verdict(recorded: str, outcomes: list[Outcome], options: argparse.Namespace) -> bool:
    """Say what passed, what got worse and what got better; whether that is good enough."""
    reasons = {outcome.id: outcome.reason for outcome in outcomes}
    passed = {name for name, reason in reasons.items() if not reason}
    held = set(baseline.read(recorded))
    worse = sorted((held & reasons.keys()) - passed)
    _say(f"{recorded}: {len(passed)} of {len(outcomes)} cases pass")
    for name in worse:
        _say(f"  passed before: {name}: {shorten(reasons[name])}")
    if options.record and not options.only:
        baseline.write(recorded, passed)
        worse = []
    elif passed - held:
        _say(f"  {len(passed - held)} cases pass that the list lacks: record them with --record")
    if len(passed) < options.at_least:
        _say(f"  that is fewer than {options.at_least}")
    return not worse and len(passed) >= options.at_least


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    logging.getLogger("argosy").setLevel(logging.ERROR)  # many cases are odd on purpose
    sys.exit(main())
