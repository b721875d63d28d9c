"""Runs cases under limits of time and memory, in a process of its own, and watches over it.

In the child, a case that takes too much processor time is interrupted; what does not let itself be interrupted,
and what crashes, ends the child. The parent sees which case it was, and goes on behind it.
"""

from __future__ import annotations

import json
import logging
import resource
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from argosy.ir.program import Program
from tests.architecture.sources import ROOT
from tests.fuzz.cases import Case, Outcome, make_case, read, run
from tests.fuzz.limits import TooLongError, catch_timer, memory_limit, timer
from tests.fuzz.native import NativeRunner

__all__ = ["Summary", "run_cases", "run_child"]

SECONDS: Final = 5.0
"""Processor time that an import may take."""
_RUN_SECONDS: Final = 0.5
"""Processor time after which a run is given up: a model may loop for as long as it likes."""


@dataclass(slots=True)
class Summary:
    """Outcomes of many cases, and the failures one by one."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)
    slowest: float = 0.0

    def add(self, other: Summary) -> None:
        """Take in another summary."""
        self.outcomes += other.outcomes
        self.failures += other.failures
        self.slowest = max(self.slowest, other.slowest)


def run_cases(numbers: range, *, nice: bool = False, native: bool = False) -> Summary:
    """Judge the cases in a child; after a crash, in another one from the next case on. `native` code runs too."""
    total = Summary()
    first = numbers.start
    while first < numbers.stop:
        command = [sys.executable, "-m", "tests.fuzz", "--child", str(first), str(numbers.stop - first)]
        command += ["--native"] if native else []
        child = subprocess.run(
            ["nice", *command] if nice else command,
            cwd=ROOT, capture_output=True, text=True, check=False,
            timeout=SECONDS * 10 + (10.0 if native else 2.0) * len(numbers),
        )  # fmt: skip
        lines = child.stdout.splitlines()
        if child.returncode == 0 and lines and lines[-1].startswith("{"):
            total.add(_parse(lines[-1]))
            return total
        crashed = int(lines[-1]) if lines and lines[-1].isdigit() else first
        total.failures.append((crashed, f"the process ended with status {child.returncode}: {child.stderr[-500:]}"))
        total.outcomes["failure"] += 1
        first = crashed + 1
    return total


def _parse(line: str) -> Summary:
    data = json.loads(line)
    return Summary(Counter(data["outcomes"]), [(int(n), str(why)) for n, why in data["failures"]], data["slowest"])


def run_child(numbers: Sequence[int], *, native: bool = False) -> None:
    """Judge the cases in this process, and write a summary to the standard output as JSON."""
    catch_timer()
    logging.getLogger("argosy").setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    if native:
        _judge_all(numbers, NativeRunner())  # which limits what it does itself: compilers need more
    else:
        with memory_limit():
            _judge_all(numbers, _run)


def _judge_all(numbers: Sequence[int], go_on: Callable[[Case, Program], Outcome]) -> None:
    summary = Summary()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "weights.bin").write_bytes(bytes(range(256)) * 20)
        for number in numbers:
            print(number, flush=True)  # noqa: T201 - the protocol
            before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
            outcome = _judge(number, folder, go_on)
            summary.slowest = max(summary.slowest, resource.getrusage(resource.RUSAGE_SELF).ru_utime - before)
            summary.outcomes[outcome.kind] += 1
            if outcome.kind == "failure":
                summary.failures.append((number, outcome.why))
    print(json.dumps({  # noqa: T201
        "outcomes": summary.outcomes, "failures": summary.failures, "slowest": summary.slowest,
    }))  # fmt: skip


def _judge(number: int, folder: Path, go_on: Callable[[Case, Program], Outcome]) -> Outcome:
    """Import a case; what comes of it is up to `go_on`."""
    case = make_case(number)
    try:
        with timer(SECONDS):
            found = read(case, folder)
    except TooLongError:
        return Outcome("failure", f"the import took more than {SECONDS} s")
    except MemoryError:
        return Outcome("failure", "the import needs too much memory")
    return found if isinstance(found, Outcome) else go_on(case, found)


def _run(case: Case, program: Program) -> Outcome:
    try:
        with timer(_RUN_SECONDS):
            return run(case, program)
    except TooLongError:
        return Outcome("run: too long")
