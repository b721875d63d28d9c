"""`python -m tests.fuzz --count 100000`: damaged ONNX models, and what became of them.

The exit status is 1 where one did anything but be refused with a ModelError or be imported.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fuzz.cases import make_case
from tests.fuzz.worker import Summary, run_cases, run_child

_CHUNK = 2500
_NATIVE_CHUNK = 100


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, run, report."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first case (default: 0)")
    parser.add_argument("--count", type=int, default=20_000, metavar="N", help="how many cases (default: 20000)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes (default: 2)")
    parser.add_argument("--native", action="store_true", help="run what is imported as native code too")
    parser.add_argument("--write", type=int, metavar="N", help="write the model of case N to case-N.onnx, and stop")
    parser.add_argument("--child", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        first, count = options.child
        run_child(range(first, first + count), native=options.native)
        return 0
    if options.write is not None:
        case = make_case(options.write)
        Path(f"case-{case.number}.onnx").write_bytes(case.data)
        _say(f"case-{case.number}.onnx: {case.name}")
        return 0
    stop = options.first + options.count
    size = _NATIVE_CHUNK if options.native else _CHUNK
    chunks = [range(first, min(first + size, stop)) for first in range(options.first, stop, size)]
    total = Summary()
    with ThreadPoolExecutor(options.jobs) as pool:
        for summary in pool.map(lambda numbers: run_cases(numbers, nice=True, native=options.native), chunks):
            total.add(summary)
    _report(total, options.count)
    return 1 if total.failures else 0


def _report(total: Summary, count: int) -> None:
    refused = {kind: number for kind, number in total.outcomes.items() if kind.startswith("refused")}
    kinds = {kind: number for kind, number in total.outcomes.items() if kind not in refused}
    kinds["refused"] = sum(refused.values())
    for kind, number in sorted(kinds.items(), key=lambda item: -item[1]):
        _say(f"{number:8} {kind}")
    _say(f"{count} cases, {len(refused)} different refusals, the slowest import and run {total.slowest:.2f} s")
    for number, why in total.failures:
        _say(f"case {number} ({make_case(number).name}): {why}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
