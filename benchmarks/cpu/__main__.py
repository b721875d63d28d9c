"""`python -m benchmarks.cpu`: this CPU's code beside ONNX Runtime and OpenVINO, peers interleaved in one run.

For each model a process makes it ready (compiled by us; the dims are bound for all engines), then one for
each thread count runs all engines in turn. A failure is a row. Results go to `benchmarks/results/`, a JSON file and
a table for each CPU and precision; with `--only --save`, models are measured anew and the other rows stay as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import argosy
from argosy.targets.cpu.arch import native
from benchmarks.cpu.cases import Case, cases
from benchmarks.cpu.contenders import ENGINES, OURS, SYMBOLIC
from benchmarks.cpu.table import means, report

RESULTS: Final = Path(__file__).resolve().parents[1] / "results"
_PACKAGES: Final = ("onnxruntime", "openvino", "ziglang", "onnx", "numpy")


def run_child(verb: str, request: dict[str, Any], limit: float) -> dict[str, Any]:
    """The child's answer. Raises RuntimeError with what went wrong, in a line."""
    command = [sys.executable, "-m", "benchmarks.cpu.child", verb, json.dumps(request)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            out, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise RuntimeError(f"{verb} took more than {limit:.0f} s") from None
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        lines = errors.strip().splitlines()
        raise RuntimeError(f"{verb} ended with {process.returncode}: {(lines or ['no message'])[-1][:300]}")
    answer: dict[str, Any] = json.loads(out.splitlines()[-1])
    return answer


def measure(case: Case, options: argparse.Namespace) -> dict[str, Any]:
    """The row of a model."""
    row: dict[str, Any] = {
        "name": case.name, "origin": case.origin, "quantised": case.quantised, "facts": {}, "runs": {}, "failures": [],
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="argosy-bench-") as folder:
        base = {
            "case": {"name": case.name, "origin": case.origin, "quantised": case.quantised},
            "folder": folder,
            "precision": options.precision,
        }
        try:
            row["facts"] = run_child("prepare", base, options.limit)
            for threads in options.threads:
                before = os.getloadavg()[0]
                request = {**base, "threads": threads, "rounds": options.rounds, "peers": options.peers}
                answer = run_child("measure", request, options.limit)
                row["runs"][str(threads)] = {**answer, "load": round((before + os.getloadavg()[0]) / 2, 1)}
        except RuntimeError as error:
            row["failures"].append(str(error))
    return row


def cpu_name() -> str:
    """The CPU's name as the system tells it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    fields = dict(re.findall(r"^(model name|cpu family|model)\s*:\s*(.+)$", text, re.MULTILINE))
    numbers = f" (family {fields['cpu family']}, model {fields['model']})" if "cpu family" in fields else ""
    return fields.get("model name", platform.machine()) + numbers


def versions() -> dict[str, str]:
    """What was measured with what."""
    found = {"argosy": argosy.__version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def results_of(rows: Sequence[dict[str, Any]], options: argparse.Namespace) -> dict[str, Any]:
    """Rows with what makes them comparable."""
    return {
        "machine": {"cpu": cpu_name(), "cores": len(os.sched_getaffinity(0)), "level": native().name},
        "versions": versions(),
        "settings": {"precision": options.precision, "threads": options.threads, "rounds": options.rounds},
        "means": means(rows, options.threads),
        "models": list(rows),
    }


def result_path(precision: str) -> Path:
    """Where the results of this CPU lie: named by the CPU's level and family, never by a date or a machine."""
    return RESULTS / f"cpu-{native().name}-{precision}.json"


def merged(rows: Sequence[dict[str, Any]], path: Path) -> list[dict[str, Any]]:
    """The rows of the file, those that were measured anew replaced, in the order of the catalogue."""
    known = {}
    if path.is_file():
        known = {row["name"]: row for row in json.loads(path.read_text(encoding="utf-8"))["models"]}
    known |= {row["name"]: row for row in rows}
    order = [case.name for case in cases("all")]
    return sorted(known.values(), key=lambda row: order.index(row["name"]) if row["name"] in order else len(order))


def keep(rows: Sequence[dict[str, Any]], options: argparse.Namespace) -> None:
    """Put rows among those of this CPU and precision, as JSON and as a table."""
    path = result_path(options.precision)
    path.parent.mkdir(exist_ok=True)
    results = results_of(merged(rows, path), options)
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".txt").write_text(report(results, kernels=8), encoding="utf-8")


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Rows as they come, each told on standard error."""
    chosen = [case for case in cases(options.set) if re.search(options.only, case.name)]
    for number, case in enumerate(chosen, 1):
        print(f"[{number}/{len(chosen)}] {case.name}", file=sys.stderr, flush=True)
        row = measure(case, options)
        for failure in row["failures"]:
            print(f"  {failure}", file=sys.stderr, flush=True)
        yield row


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and show; the exit status is 2 where no model fits `--only`, 0 else."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cpu", description=__doc__)
    parser.add_argument("--only", default="", metavar="REGEX", help="measure the models whose name it finds")
    parser.add_argument("--set", choices=("per-change", "all"), default="per-change", help="real models to measure")
    parser.add_argument("--threads", default="1,2", help="thread counts (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=9, help="samples of each engine (default %(default)s)")
    parser.add_argument("--precision", choices=("fp32", "bf16", "fp16"), default="fp32", help="of ours and OpenVINO")
    known = ",".join(name for name in ENGINES if name not in (OURS, SYMBOLIC))
    told = f"engines to compare with (default %(default)s); {SYMBOLIC}: our own code for every size"
    parser.add_argument("--peers", default=known, help=told)
    parser.add_argument("--kernels", type=int, default=0, metavar="N", help="show our N slowest calls of each model")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for a process (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--save", action="store_true", help="keep the rows in benchmarks/results, also with --only")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # an exception, so that the child goes too
    options.threads = [int(part) for part in options.threads.split(",")]
    options.peers = [part for part in options.peers.split(",") if part]
    rows = []
    for row in measured(options):
        rows.append(row)
        if options.save or not options.only:
            keep([row], options)  # each at once: a run that is stopped leaves what it has
    if not rows:
        print(f"no model fits {options.only!r}", file=sys.stderr)
        return 2
    results = results_of(rows, options)
    print(json.dumps(results, indent=1) if options.json else report(results, kernels=options.kernels), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
