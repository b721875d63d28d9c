"""What a process of its own does for one model: make it ready, or measure it with one thread count.

`python -m benchmarks.cpu.child prepare|measure REQUEST`: the request is JSON, so is the answer, the last line of
standard output.
"""

from __future__ import annotations

import gc
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import argosy
from argosy.artifact.plan import Block, EvaluateStep, IfBlock, LoopBlock, StraightBlock
from argosy.profiling import perf
from argosy.profiling.work import operations
from argosy.runtime.planned_memory import PlannedMemory
from argosy.targets.cpu.arch import native
from argosy.verification.tolerance import Tolerance
from benchmarks.cpu.cases import Case, Files, sizes, write
from benchmarks.cpu.contenders import ENGINES, OURS, Contender, Feeds
from benchmarks.cpu.work import peak_meter

__all__ = ["main"]

SAMPLE: Final = 0.03
"""Seconds that a sample takes at least: shorter runs are repeated within it."""
_KERNELS: Final = 40
_WATCHED: Final = 7


def _spent() -> float:
    """CPU seconds of this process and its children."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def prepare(case: Case, files: Files, precision: str) -> dict[str, Any]:
    """Write the model and its inputs, compile it, and say what is known of it."""
    write(case, files)
    begin = _spent()
    program = argosy.load_onnx(files.model, dims=sizes(files.feeds()))
    artifact = argosy.compile(program, targets=["cpu"], precision=precision)
    seconds = _spent() - begin
    artifact.save(files.artifact)
    (variant,) = artifact.variants
    plan = artifact.plan(variant.key)
    memory = PlannedMemory(plan, case.name)
    placed = None if memory.symbols else memory.placement({})
    facts = {
        "outputs": list(program.outputs),
        "operations": operations(program),
        "compile_seconds": round(seconds, 2),
        "host_steps": sum(isinstance(step, EvaluateStep) for step in _steps(plan.body)),
        "variant": variant.words,
        "arena": placed and {"bytes": placed.size, "live": placed.live},
        "bytes": files.artifact.stat().st_size,
    }
    files.facts.write_text(json.dumps(facts), encoding="utf-8")
    return facts


def _steps(blocks: Sequence[Block]) -> Iterator[Any]:
    for block in blocks:
        match block:
            case StraightBlock():
                yield from block.steps
            case IfBlock():
                yield from _steps((*block.then, *block.otherwise))
            case LoopBlock():
                yield from _steps(block.body)


def measure(
    case: Case, files: Files, *, precision: str, threads: int, rounds: int, peers: Sequence[str]
) -> dict[str, Any]:
    """Run ours and the peers in turn; times in milliseconds, of CPU at one thread, else of the clock on the wall."""
    feeds = files.feeds()
    notes: dict[str, str] = {}
    contenders: list[Contender] = []
    for name in (OURS, *peers):
        try:
            contenders.append(ENGINES[name](files, feeds, threads, precision))
        except Exception as error:  # what a peer can't run is a note
            if name == OURS:
                raise
            notes[name] = f"can't run it: {_told(error)}"
    agreed = _agreed(contenders, files, feeds, Tolerance(quantised=case.quantised, precision=precision), notes)
    with tempfile.TemporaryDirectory() as folder:
        peak = peak_meter(native(), Path(folder))
        clock = time.process_time if threads == 1 else time.perf_counter
        times, peaks = _rounds(contenders, rounds, clock, peak)
    return {
        "times": {
            name: {"median": statistics.median(found) * 1e3, "minimum": min(found) * 1e3}
            for name, found in times.items()
        },
        "agreed": agreed,
        "notes": notes,
        "peak": max(peaks),
        "kernels": _kernels(contenders[0], feeds) if threads == 1 else [],
    }


def _told(error: Exception) -> str:
    """An error in a line, without the places in OpenVINO's sources."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = " ".join(line for line in lines if line and not line.startswith(("Exception from", "Check '")))
    return (said or str(error) or type(error).__name__)[:160]


def _agreed(
    contenders: Sequence[Contender], files: Files, feeds: Feeds, rule: Tolerance, notes: dict[str, str]
) -> list[str]:
    """The peers whose outputs agree with ours. Where none does, `ref` says who is right; `notes` tell the others."""
    ours, *peers = contenders
    expected = ours.results()
    results = {peer.name: peer.results() for peer in peers}
    differing = {name: rule.compare(expected, found) for name, found in results.items()}
    if differing and all(differing.values()):
        expected = argosy.Session(files.artifact, device="ref").run(dict(feeds))
        wrong = rule.compare(expected, ours.results())
        if wrong:
            notes[OURS] = f"differs from ref: {wrong[0]}"
        differing = {name: rule.compare(expected, found) for name, found in results.items()}
    for name, mismatches in differing.items():
        if mismatches:
            notes[name] = f"differs: {mismatches[0]}"
    return [name for name, mismatches in differing.items() if not mismatches]


def _rounds(
    contenders: Sequence[Contender], rounds: int, clock: Callable[[], float], peak: Callable[[], float]
) -> tuple[dict[str, list[float]], list[float]]:
    """Seconds for an inference, a sample of each contender in each round: A B C A B C."""
    counts: dict[str, int] = {}
    for contender in contenders:
        contender.run()
        begin = clock()
        contender.run()
        counts[contender.name] = max(1, round(SAMPLE / max(clock() - begin, 1e-7)))
    times: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    peaks: list[float] = []
    gc.collect()
    gc.disable()
    for _ in range(rounds):
        for contender in contenders:
            run, count = contender.run, counts[contender.name]
            run()
            begin = clock()
            for _ in range(count):
                run()
            times[contender.name].append((clock() - begin) / count)
        peaks.append(peak())
    gc.enable()
    return times, peaks


def _kernels(ours: Contender, feeds: Feeds) -> list[dict[str, Any]]:
    """Our own calls, the slowest first: what, for which node, milliseconds in a run, share."""
    report = perf(ours.session, inputs=dict(feeds), iterations=_WATCHED, warmup=0, clock=time.process_time)
    slowest = sorted(report.instructions, key=lambda entry: -entry.seconds)[:_KERNELS]
    return [
        {"kernel": entry.op, "node": entry.node, "ms": round(entry.seconds * 1e3, 4), "share": round(entry.share, 4)}
        for entry in slowest
    ]


def main() -> int:
    """Do what the request says."""
    verb, text = sys.argv[1:]
    request = json.loads(text)
    case, files = Case(**request.pop("case")), Files(Path(request.pop("folder")))
    answer = (prepare if verb == "prepare" else measure)(case, files, **request)
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
