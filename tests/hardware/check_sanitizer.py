"""`check-sanitizer FOLDER`: cases of the packed suite under compute-sanitizer, by memcheck and by racecheck.

The cases are the same for the same packs: one of each family of ops, then those that bring kernels of other names, all
without host steps. They run in one process, as the tool needs seconds for each. Their outputs must be right, too. A
case's kernels are started one by one: a session makes graphs from its second run on.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from argosy.artifact.artifact import Artifact
from argosy.artifact.plan import LaunchStep, steps_in
from tests.conformance import baseline
from tests.conformance.cases import Case, find_case, load_cases
from tests.conformance.families import family
from tests.conformance.judge import shorten
from tests.hardware.packs import Packs
from tests.hardware.run_suite import judge_packed
from tests.hardware.suite import MODE, STEM, STRICT

__all__ = ["add", "choose", "kernel_names"]

_CASES: Final = 60
_SEED: Final = 5
_LONG: Final = ("real",)
"""Kinds of cases that take minutes under the tool: whole nets, made of kernels that others have."""
_TOOLS: Final = ("memcheck", "racecheck")
_FOUND: Final = 9
"""The exit status of the tool where it found something."""
_PLACES: Final = ("/usr/local/cuda/bin/compute-sanitizer",)
_NUMBERS: Final = re.compile(r"\d.*")


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to a command line."""
    parser = verbs.add_parser("check-sanitizer", help="packed cases under compute-sanitizer", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the packs of pack-suite are")
    parser.add_argument("--tool", action="append", choices=_TOOLS, help="only this one (default: both)")
    parser.add_argument("--sanitizer", default="", metavar="PROGRAM", help="where compute-sanitizer is")
    parser.add_argument("--limit", type=float, default=280.0, metavar="S", help="seconds for one tool (default: 280)")
    parser.add_argument("--device", default="cuda", help="what runs the artifacts (default: cuda)")
    parser.add_argument("--case", action="append", metavar="ID", help="run these here, without the tool")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    packs = Packs(options.folder, STEM)
    if options.case:
        return _judged(packs, options.case, options.device)
    right = set(baseline.read("cpu"))  # what ONNX's suite expects by chance, no target can be right about
    names = choose(packs, [case for case in load_cases() if case.id in right])
    program = options.sanitizer or shutil.which("compute-sanitizer") or next(filter(_is_file, _PLACES), "")
    if not program:
        sys.stdout.write("compute-sanitizer is not on the path; give it with --sanitizer\n")
        return 1
    child = [sys.executable, "-m", "tests.hardware", "check-sanitizer", str(options.folder), "--device", options.device]
    child += [word for name in names for word in ("--case", name)]
    tools = options.tool or _TOOLS
    good = sum(_watched([program, "--tool", tool, "--error-exitcode", str(_FOUND), *child], tool, options.limit)
               for tool in tools)  # fmt: skip
    return 0 if good == len(tools) else 1


def _is_file(path: str) -> bool:
    return Path(path).is_file()


def _watched(command: Sequence[str], tool: str, limit: float) -> bool:
    """Run the tool; whether it found nothing and all cases were right."""
    start = time.monotonic()
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit, check=False
        )
        output, status = done.stdout, done.returncode
    except subprocess.TimeoutExpired as error:
        output, status = (error.stdout or b"").decode(errors="replace"), -1
    told = [line for line in output.splitlines() if not line.startswith("right ")]
    sys.stdout.write("".join(f"    {line}\n" for line in told[:60]))
    words = {0: "clean", _FOUND: "ERRORS", -1: f"not done in {limit:g} s"}.get(status, f"the exit status is {status}")
    right = sum(line.startswith("right ") for line in output.splitlines())
    sys.stdout.write(f"{tool}: {words}, {right} cases right, {time.monotonic() - start:.0f} s\n")
    sys.stdout.flush()
    return status == 0


def _judged(packs: Packs, names: Sequence[str], device: str) -> int:
    """Judge cases here, one after another."""
    bad = 0
    for name in names:
        case = find_case(name)
        reason = "there is no such case" if case is None else judge_packed(case, packs, device).reason
        bad += bool(reason)
        sys.stdout.write(f"FAILED {name}: {shorten(reason)}\n" if reason else f"right {name}\n")
        sys.stdout.flush()
    return 1 if bad else 0


def choose(packs: Packs, cases: Sequence[Case], count: int = _CASES) -> list[str]:
    """The cases to run: one of each family of ops, then those that bring most kernels of other names."""
    shuffled = [
        case
        for case in cases
        if case.kind not in _LONG and case.id in packs and packs.about(case.id).get(MODE) == STRICT
    ]
    random.Random(_SEED).shuffle(shuffled)
    kernels = {case.id: names for case in shuffled if (names := kernel_names(packs.content(case.id)))}
    families: defaultdict[str, list[str]] = defaultdict(list)
    for case in shuffled:
        if case.id in kernels:
            families[family(case)].append(case.id)
    chosen = [families[name][0] for name in sorted(families)][:count]
    seen = {name for case_id in chosen for name in kernels[case_id]}
    while len(chosen) < count:
        rest = [case_id for case_id in kernels if case_id not in chosen]
        if not rest:
            break
        chosen.append(best := max(rest, key=lambda case_id: len(kernels[case_id] - seen)))
        seen |= kernels[best]
    return chosen


def kernel_names(artifact: bytes) -> set[str]:
    """What the kernels of an artifact are called, without sizes of windows and hashes."""
    opened = Artifact.open(artifact)
    return {
        _NUMBERS.sub("", step.entry.rpartition("_")[0])
        for variant in opened.variants
        for step in steps_in(opened.plan(variant.key).body)
        if isinstance(step, LaunchStep)
    }
