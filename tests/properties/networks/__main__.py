"""Compare random networks as long as asked, as by `--count 1000 --on ref,cpu,gfx942:fp16`."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import onnx

from argosy.errors import ArgosyError
from tests.properties.networks.compared import compare_network, draw_network


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, compare, report."""
    parser = argparse.ArgumentParser(prog="python -m tests.properties.networks", description=__doc__)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first network (default: 0)")
    parser.add_argument("--count", type=int, default=100, metavar="N", help="how many networks (default: 100)")
    parser.add_argument("--seconds", type=float, metavar="S", help="start none after so many seconds")
    parser.add_argument(
        "--on", default="ref", metavar="PLACES", help="ref, cpu, archs, as gfx942:fp16:bound (default: ref)"
    )
    parser.add_argument(
        "--write", type=Path, metavar="DIR", help="write the models that differ there, and their inputs"
    )
    parser.add_argument("--in-turn", action="store_true", help="each network on one of the archs, not on all of them")
    parser.add_argument("--all", action="store_true", help="write those that agree, too")
    options = parser.parse_args(arguments)
    places = options.on.split(",")
    started, verdicts = time.monotonic(), Counter[tuple[str, str]]()
    for number in range(options.first, options.first + options.count):
        if options.seconds is not None and time.monotonic() - started > options.seconds:
            break
        network = draw_network(number)
        for place in (places[number % len(places)],) if options.in_turn else places:
            try:
                verdict = compare_network(network, place)
                kind, why = verdict.kind, verdict.why
            except ArgosyError as error:
                kind, why = "raises", f"{type(error).__name__}: {error}"
            verdicts[place, kind] += 1
            if kind in ("differs", "raises", "amplified", "not run"):
                _say(f"network {number} on {place}: {kind}: {why}")
            if options.write and (options.all or kind in ("differs", "raises")):
                options.write.mkdir(parents=True, exist_ok=True)
                onnx.save(network.model(), options.write / f"network-{number}.onnx")
                for run in network.runs:
                    np.savez(options.write / f"network-{number}-{run}.npz", **network.feeds(run))  # type: ignore[arg-type]
    for (place, kind), count in sorted(verdicts.items()):
        _say(f"{count:8} {place}: {kind}")
    return int(any(kind in ("differs", "raises") for _, kind in verdicts))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
