"""`argosy.perf`: runs a session many times and watches the clock."""

from __future__ import annotations

import logging
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from argosy.artifact.artifact import Artifact
from argosy.artifact.decode import decode_symbols
from argosy.artifact.manifest import VariantRecord
from argosy.errors import UsageError
from argosy.inputs import InputRequest, make_inputs
from argosy.ir.dim import DimLike, substitute
from argosy.ir.interpreter import bind_symbols
from argosy.ir.module import Instruction
from argosy.ir.op import Env
from argosy.ir.parser import parse_dim
from argosy.ir.types import TensorType, Type
from argosy.options import Dimensions, DimValue
from argosy.profiling.comparing import Rival, compared, make_rivals
from argosy.profiling.footprint import footprint, peak_memory
from argosy.profiling.instructions import InstructionTime, by_op, by_shape, node_of, op_of
from argosy.profiling.launches import by_device, device_times
from argosy.profiling.outside import Outside
from argosy.profiling.ranges import Ranges, range_library
from argosy.profiling.report import Report
from argosy.profiling.roofline import Roofline, roofline_of
from argosy.profiling.spans import Span
from argosy.profiling.times import Times
from argosy.profiling.watching import Clock, Execution, watch
from argosy.profiling.work import Work, work_of
from argosy.runtime.nodes import KernelCall
from argosy.runtime.session import Session

__all__ = ["perf"]

log = logging.getLogger("argosy.perf")

MAX_ITERATIONS: Final = 100
_BUDGET: Final = 10.0
"""Seconds after which runs stop, where no number of them is asked for; at least `_FEWEST` are done."""
_FEWEST: Final = 3
_OBSERVED: Final = 10


def perf(
    source: Session | Artifact | str | Path | bytes,
    *,
    inputs: Mapping[str, Any] | InputRequest | None = None,
    dims: Mapping[str, DimValue] | Dimensions | None = None,
    iterations: int | None = None,
    warmup: int = 2,
    device: str | None = None,
    exact: bool = False,
    compare: Sequence[Rival] = (),
    ranges: bool = False,
    clock: Clock = time.perf_counter,
) -> Report:
    """Measure a session, or an artifact on this machine, on one set of inputs.

    `inputs` are arrays by name or a request; what is missing is generated, with sizes from `dims`. Without `iterations`
    there are 100 runs, fewer where they would take over ten seconds. `clock` gives seconds: on a busy machine, with one
    thread, `time.process_time` counts what the process itself used. Others in `compare` (see `Rival`) run the
    same inputs in turn with the session. With `ranges`, profilers see each instruction under the name of its node, by
    NVTX or roctx: runs then go step by step, and take longer.
    """
    if iterations is not None and iterations < 1:
        raise UsageError(f"iterations is {iterations}, expected at least 1")
    session = source if isinstance(source, Session) else Session(source, device=device, exact=exact)
    request = inputs if isinstance(inputs, InputRequest) else InputRequest()
    given = None if isinstance(inputs, InputRequest) else inputs
    held = None if session.artifact.is_slim else session.artifact.program
    made = make_inputs(session.inputs, request, Dimensions.of(dims), given=given, program=held)
    with made.explaining():
        variant = session.choice(made.values)
    library = range_library(variant.variant.family if variant.variant else "") if ranges else None
    marks = Ranges(library) if library else None

    def run() -> object:
        return marks.run(session, made.values) if marks else session.run(made.values)

    with made.explaining():
        first = _timed(run, clock)
    rivals = make_rivals(compare, session, made.values, lambda artifact: Session(artifact, device=device, exact=exact))
    contenders = [run, *(rival.run for rival in rivals)]
    for _ in range(warmup):
        for contender in contenders:
            contender()
    seconds, *others = _rounds(contenders, iterations, clock)
    beside = compared(rivals, others, seconds, session, made.values) if rivals else ()
    peak = peak_memory()  # before what follows here, which a run doesn't need
    observed = min(len(seconds), _OBSERVED)
    seen = watch(session, made.values, observed, clock)
    watched = seen.runs
    sizes = _sizes(session, made.values)
    emulated = session.device.startswith("emulated")  # by that clock, no device has a peak
    roofline = None if emulated else roofline_of(variant.variant)
    works = _works(watched, sizes, session.artifact, variant.variant)
    instructions = _instructions(watched, sizes, works, roofline)
    launched = device_times(session, variant.variant, made.values) if marks is None else None
    if launched is not None:
        instructions = by_device(instructions, launched)
    total = _total(works)
    least = roofline.compute_seconds(total) if roofline and total else None
    times = Times.of(seconds)
    outside = None
    if variant.variant is not None:
        kernels = launched.seconds if launched else sum(entry.seconds for entry in instructions if entry.is_kernel)
        outside = Outside.of(times.median - kernels, instructions, seen)
    told = {name: f"{_told(value)}, {made.origins[name]}" for name, value in made.values.items()}
    return Report(
        variant.words,
        told,
        first,
        warmup,
        times,
        observed,
        instructions,
        by_op(instructions),
        by_shape(instructions),
        footprint(session.artifact, variant.variant, sizes),
        sum(total.values()) if total else None,
        (least, roofline.words) if roofline and least is not None else None,
        peak_memory=peak,
        device_seconds=launched.seconds if launched is not None else None,
        outside=outside,
        ranges=library.name if library else "",
        compared=beside,
        emulated=emulated,
        spans=_spans(watched, sizes),
    )


def _timed(run: Callable[[], object], clock: Clock) -> float:
    begin = clock()
    run()
    return clock() - begin


def _rounds(
    contenders: Sequence[Callable[[], object]], iterations: int | None, clock: Clock
) -> tuple[list[float], ...]:
    """The seconds of each contender, a run of each in every round: what disturbs a while disturbs all of them.

    Another one begins each round. Of several, each runs once before it is timed, so that caches hold its own data.
    """
    seconds: tuple[list[float], ...] = tuple([] for _ in contenders)
    end = time.perf_counter() + _BUDGET
    count = len(contenders)
    for number in range(iterations or MAX_ITERATIONS):
        if iterations is None and number >= _FEWEST and time.perf_counter() > end:
            break
        log.info("run %d", number + 1)
        for place in (*range(number % count, count), *range(number % count)):
            if count > 1:
                contenders[place]()
            seconds[place].append(_timed(contenders[place], clock))
    return seconds


def _sizes(session: Session, values: Mapping[str, Any]) -> Mapping[str, int]:
    """The sizes of the symbols that inputs of these shapes give."""
    env = Env()
    for name, kind in session.inputs.items():
        bind_symbols(kind, values[name], env, name)
    return env.symbols


def _works(
    watched: Sequence[Sequence[Execution]],
    sizes: Mapping[str, int],
    artifact: Artifact,
    variant: VariantRecord | None,
) -> Mapping[Instruction, tuple[Work, int]]:
    """What each instruction does at these sizes, and how often a run executes it."""
    symbols = {} if variant is None else decode_symbols(artifact.plan(variant.key).symbols)

    def dim(text: str) -> DimLike:
        return parse_dim(text, symbols)

    calls: dict[Instruction, int] = {}
    for run in watched:
        calls.update(Counter(instruction for instruction, _, _ in run))
    return {instruction: (work_of(instruction, sizes, dim), count) for instruction, count in calls.items()}


def _total(works: Mapping[Instruction, tuple[Work, int]]) -> Mapping[str, int] | None:
    """The operations of a run by element type; None where they are not known of all."""
    total: Counter[str] = Counter()
    steps = [instruction.op.step for instruction in works if isinstance(instruction.op, KernelCall)]
    if steps and not any(step.whole or step.operations for step in steps):
        return None  # an older version's
    for work, calls in works.values():
        if work.operations is None:
            return None
        total.update({kind: count * calls for kind, count in work.operations.items()})
    return total


def _instructions(
    watched: Sequence[Sequence[Execution]],
    sizes: Mapping[str, int],
    works: Mapping[Instruction, tuple[Work, int]],
    roofline: Roofline | None,
) -> tuple[InstructionTime, ...]:
    totals: dict[Instruction, list[float]] = {}
    for run in watched:
        spent: dict[Instruction, list[float]] = {}
        for instruction, begin, end in run:
            spent.setdefault(instruction, []).append(end - begin)
        for instruction, times in spent.items():
            totals.setdefault(instruction, []).append(sum(times))
    medians = {instruction: statistics.median(times) for instruction, times in totals.items()}
    whole = sum(medians.values()) or 1.0
    return tuple(
        InstructionTime(
            node=node_of(instruction),
            op=op_of(instruction),
            operands=_told_types((None if value is None else value.type for value in instruction.operands), sizes),
            type=_told_types(instruction.types, sizes),
            seconds=seconds,
            share=seconds / whole,
            calls=calls,
            operations=_operations(work, calls),
            bytes=None if work.bytes is None else work.bytes * calls,
            least=_least(instruction, work, calls, roofline),
            is_kernel=isinstance(instruction.op, KernelCall),
        )
        for instruction, seconds in medians.items()
        for work, calls in (works[instruction],)
    )


def _operations(work: Work, calls: int) -> int | None:
    """The operations of a run; a step of an older version, which tells nothing of its bytes either, has no 0."""
    if work.operations is None or (not work.operations and work.bytes is None):
        return None
    return sum(work.operations.values()) * calls


def _least(instruction: Instruction, work: Work, calls: int, roofline: Roofline | None) -> float | None:
    """The seconds of a kernel's work at the roofline; what the host evaluates has none."""
    if roofline is None or work.operations is None or work.bytes is None:
        return None
    if not isinstance(instruction.op, KernelCall):
        return None
    least = roofline.seconds(work.operations, work.bytes)
    return None if least is None else least * calls


def _spans(watched: Sequence[Sequence[Execution]], sizes: Mapping[str, int]) -> tuple[Span, ...]:
    start = next((run[0][1] for run in watched if run), 0.0)
    return tuple(
        Span(
            node_of(instruction),
            op_of(instruction),
            _told_types(instruction.types, sizes),
            number,
            begin - start,
            end - start,
        )
        for number, run in enumerate(watched)
        for instruction, begin, end in run
    )


def _told_types(kinds: Iterable[Type | None], sizes: Mapping[str, int]) -> str:
    """Types in words, with the sizes that are known; an absent operand is a dash."""
    return ", ".join("-" if kind is None else str(_bound(kind, sizes)) for kind in kinds)


def _bound(kind: Type, sizes: Mapping[str, int]) -> Type:
    if not isinstance(kind, TensorType) or kind.dims is None:
        return kind
    return TensorType(kind.dtype, tuple(substitute(dim, sizes) for dim in kind.dims))


def _told(value: Any) -> str:
    if value is None:
        return "absent"
    if isinstance(value, (list, dict)):
        return f"{type(value).__name__} of {len(value)}"
    return f"{value.dtype}{list(value.shape)}"
