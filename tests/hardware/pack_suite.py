"""`pack-suite FOLDER`: ONNX's backend suite, compiled here for a device elsewhere, in packs.

Packs hold artifacts alone: models, inputs and expected outputs are made again by the suite where it runs. A case that
can't be compiled is in its pack too, with the compiler's message.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from argosy.targets.base import find_archs
from argosy.targets.gpu.target import GpuTarget
from tests.conformance.cases import Case
from tests.conformance.judge import Outcome, explain, shorten
from tests.conformance.pool import run_cases
from tests.conformance.runners import SessionRunner
from tests.hardware.kernels_first import compile_kernels_first
from tests.hardware.packs import PackError, PackWriter
from tests.hardware.suite import HOST_STEPS, MODE, MODEL, STEM, STRICT, WHY, add_only, chosen, fingerprint

__all__ = ["add", "pack"]


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to a command line."""
    parser = verbs.add_parser("pack-suite", help="compile ONNX's suite into packs", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the packs go")
    parser.add_argument("--arch", default="sm_90", help="the GPU arch (default: sm_90)")
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--strict", action="store_false", dest="loose", help="no host steps (the default)")
    ways.add_argument("--loose", action="store_true", help="with host steps what can't be compiled without them")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="worker processes (default: 2)")
    parser.add_argument("--limit", type=float, default=600.0, metavar="S", help="seconds for one case (default: 600)")
    add_only(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    counts = pack(
        options.folder, chosen(options), options.arch, loose=options.loose, workers=options.workers, limit=options.limit
    )
    _say(", ".join(f"{number} {words}" for words, number in counts.items()))
    return 0


def pack(folder: Path, cases: Sequence[Case], arch: str, *, loose: bool, workers: int, limit: float) -> dict[str, int]:
    """Compile cases for an arch and write their packs; how many were compiled in which way, and how many were not."""
    (target,) = find_archs(arch)
    if not isinstance(target, GpuTarget):
        raise SystemExit(f"{arch} is no GPU arch: packs are for devices elsewhere")
    start = time.monotonic()
    compile_kernels_first((case.read()[0] for case in cases), target, workers, _say)
    counts = {STRICT: 0, HOST_STEPS: 0, "refused": 0}
    with tempfile.TemporaryDirectory(prefix="argosy-") as made, PackWriter(folder, STEM) as writer:
        job = _Compile(Path(made), arch, loose=loose)
        reasons = {outcome.id: outcome.reason for outcome in _told(run_cases(cases, job, workers=workers, limit=limit))}
        for case in cases:
            counts[_put(writer, case, job.place(case), reasons[case.id])] += 1
    for path in writer.written:
        _say(f"{path.name}: {path.stat().st_size / (1 << 20):.1f} MiB")
    _say(f"{time.monotonic() - start:.0f} s")
    return counts


class _Compile:
    """Compiles a case in a worker process, as the conformance suite does, and leaves the artifact in a folder.

    The outcome's reason is what the compiler said against the case without host steps, if anything.
    """

    def __init__(self, folder: Path, arch: str, *, loose: bool) -> None:
        self._folder = folder
        self._strict, self._loose = SessionRunner(arch, strict=True, jobs=1), SessionRunner(arch, jobs=1)
        self._takes_loose = loose

    def place(self, case: Case) -> Path:
        """Where the artifact of a case goes."""
        return self._folder / case.id.replace("/", ".")

    def __call__(self, case: Case) -> Outcome:
        start = time.perf_counter()
        reason = self._attempt(self._strict, case)
        if reason and self._takes_loose and (worse := self._attempt(self._loose, case)):
            reason = worse
        return Outcome(case.id, reason, time.perf_counter() - start)

    def _attempt(self, runner: SessionRunner, case: Case) -> str:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.place(case).write_bytes(runner.compiled(case.read()[0]))
        except Exception as error:  # noqa: BLE001 - whatever the compiler says is what the pack tells
            return explain(error)
        return ""


def _put(writer: PackWriter, case: Case, place: Path, reason: str) -> str:
    """Pack a case, in one of three ways: which."""
    model = {MODEL: fingerprint(case.read()[0])}
    if not place.is_file():
        writer.refuse(case.id, reason, model)
        return "refused"
    way = HOST_STEPS if reason else STRICT
    try:
        writer.add(case.id, place.read_bytes(), model | {MODE: way} | ({WHY: shorten(reason)} if reason else {}))
    except PackError as error:
        writer.refuse(case.id, str(error), model)
        return "refused"
    return way


def _told(outcomes: Iterator[Outcome]) -> Iterator[Outcome]:
    """The outcomes; says of some how things are going, and of failures what they are."""
    for number, outcome in enumerate(outcomes, 1):
        if outcome.reason:
            _say(f"{outcome.id}: {shorten(outcome.reason)}")
        if number % 250 == 0:
            _say(f"{number} cases")
        yield outcome


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
