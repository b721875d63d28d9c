"""Concatenations without a copy: what is joined is written where it lies in the whole.

A kernel says that its result is its operands end to end (`Kernel.joins`). An operand that kernels of the same body
write into a planned buffer of its own becomes a view of the result's buffer, and the call goes. Buffers are written
once, so whoever else reads the operand finds it there. What can't be a view is copied by itself, and the log says why:

- inputs, weights, and what is of a size that only the run tells;
- what the host writes, or another body;
- what is a part of another whole already, or joined twice. The wholes of nested concatenations become one: a whole that
  is an operand, or whose operands all are, in its order, is itself a view of the larger one;
- what would make the arena larger: the whole is needed from its first operand to its last reader.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec.structs import replace

from argosy.artifact.lifetimes import lifetimes
from argosy.artifact.plan import (
    Block,
    BufferRecord,
    CallStep,
    CopyStep,
    EvaluateStep,
    IfBlock,
    PlanRecord,
    PointerArgument,
    RunStep,
    ScalarArgument,
    ShapeStep,
    Step,
    StraightBlock,
)
from argosy.artifact.renumber import bases_first
from argosy.ir.dim import DimLike, equal, evaluate, symbols_in
from argosy.ir.types import TensorType
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen.byte_copy import BYTE_COPY, copy_chunks
from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.lowering.plan_buffers import PlanBuffers

__all__ = ["join_in_place"]

log = logging.getLogger("argosy.cpu")
_USUAL: Final = 16
"""What a symbol is taken for where bytes are compared, within its bounds."""


def join_in_place(plan: PlanRecord, kernels: Mapping[str, Kernel], buffers: PlanBuffers) -> PlanRecord:
    """The plan with operands of concatenations as views of their results. Copies that stay call `BYTE_COPY`.

    `kernels` are those that the plan calls, by entry; `buffers` know the types of its buffers.
    """
    joining = _Joining(plan, kernels, buffers)
    for join in joining.joins.values():
        joining.join(join)
    return joining.plan()


@dataclass(frozen=True, slots=True)
class _Join:
    """A call that lays `parts`, buffers and their bytes, end to end in the buffer `whole`."""

    step: CallStep
    whole: int
    parts: tuple[tuple[int, DimLike], ...]

    def offset(self, part: int) -> DimLike:
        """Bytes before a part."""
        total: DimLike = 0
        for _, count in self.parts[:part]:
            total = count + total
        return total


@dataclass(frozen=True, slots=True)
class _Run:
    """Parts number `first` to before `last`, side by side in `root`, and their bytes."""

    root: int
    first: int
    last: int
    bytes: DimLike


@dataclass(frozen=True, slots=True)
class _Copy:
    """A part that is to be copied: its buffer, where it goes in the whole, and its bytes."""

    number: int
    shift: DimLike
    bytes: DimLike


class _Joining:
    def __init__(self, plan: PlanRecord, kernels: Mapping[str, Kernel], buffers: PlanBuffers) -> None:
        self._plan = plan
        self._buffers = buffers
        self._homes: dict[int, tuple[int, DimLike]] = {}
        self._copies: dict[int, list[_Copy]] = {}
        """What is still to be copied, by the whole."""
        self._copied: dict[int, list[tuple[int, DimLike]]] = {}
        """Where a buffer is copied to: the whole, and how many bytes after its start."""
        self._writers: dict[int, list[tuple[int, bool]]] = {}
        """The body of each step that writes a buffer, and whether it calls a kernel."""
        self.joins: dict[int, _Join] = {}
        """By the buffer of the whole, in the order of the plan."""
        for body, step, results in _results(plan.body, itertools.count()):
            for number in results:
                root = self._place(number)[0]
                self._writers.setdefault(root, []).append((body, isinstance(step, CallStep)))
            if isinstance(step, CallStep) and (joins := kernels[step.entry].joins):
                parts = tuple((step.reads[number], count) for number, count in joins)
                self.joins[step.writes[0]] = _Join(step, step.writes[0], parts)
        if self.joins:
            self._measure()

    def _measure(self) -> None:
        """How many bytes are live at each step, and the most that may be."""
        given = [binding.buffer for binding in self._plan.inputs]
        kept = [binding.buffer for binding in self._plan.outputs]
        lives = lifetimes(self._plan.buffers, self._plan.body, given, kept)
        planned = {number: life for number, life in lives.items() if self._plan.buffers[number].kind == "planned"}
        self._lives = {number: (life.start, life.end) for number, life in planned.items()}
        self._live = np.zeros(max((life.end for life in lives.values()), default=0) + 1, np.int64)
        for number, (start, end) in self._lives.items():
            self._live[start : end + 1] += self._usual(number)
        self._most = self._live.max()

    def _bytes(self, number: int) -> DimLike | None:
        """The bytes of a buffer; None where it holds no tensor of whole bytes."""
        kind = self._buffers.kinds[number]
        if not isinstance(kind, TensorType) or kind.dims is None or kind.dtype.is_packed:
            return None
        return product((*kind.dims, kind.dtype.bits // 8))

    def _usual(self, number: int) -> int:
        """About the bytes of a buffer."""
        count = self._bytes(number)
        if count is None:
            return 0
        values = {s.name: max(s.lower, min(_USUAL, _USUAL if s.upper is None else s.upper)) for s in symbols_in(count)}
        return evaluate(count, values)

    def _place(self, number: int) -> tuple[int, DimLike]:
        """What a buffer is a part of in the end, and how many bytes after its start it begins."""
        shift: DimLike = 0
        while True:
            base = self._plan.buffers[number].base
            if number in self._homes:
                number, more = self._homes[number]
            elif base is not None:
                number, more = base, self._buffers.shifts[number]
            else:
                return number, shift
            shift = more + shift

    def _places(self, number: int) -> list[tuple[int, DimLike]]:
        """Like `_place`, and where else the same bytes lie."""
        found = [self._place(number)]
        for whole, shift in self._copied.get(number, ()):
            root, more = self._place(whole)
            found.append((root, more + shift))
        return found

    # One concatenation

    def join(self, join: _Join) -> None:
        """Make views of what can be, and note what is to be copied."""
        if why := self._declines(join):
            log.info("concat copies: %s: %s", join.step.source, why)
            return
        if self._is_part(join):
            self._copies[join.whole] = []
            return
        found, reasons = self._candidates(join)
        left = self._affordable(join.whole, [run.root for run in found])
        covered: set[int] = set()
        for run in found:
            parts = range(run.first, run.last)
            if run.root in left:
                covered.update(parts)
                self._homes[run.root] = join.whole, join.offset(run.first)
            else:
                reasons.update(dict.fromkeys(parts, "the arena would grow"))
        for part, why in sorted(reasons.items()):
            log.info("concat copies operand %d: %s: %s", part, join.step.source, why)
        if covered:
            copies = [_Copy(number, join.offset(part), count) for part, (number, count) in enumerate(join.parts)]
            self._copies[join.whole] = [copy for part, copy in enumerate(copies) if part not in covered]
            for copy in self._copies[join.whole]:
                self._copied.setdefault(copy.number, []).append((join.whole, copy.shift))

    def _declines(self, join: _Join) -> str:
        """Why nothing of a concatenation can be a view, or nothing."""
        if self._plan.buffers[join.whole].kind != "planned":
            return f"the result is {self._plan.buffers[join.whole].kind}"
        if len(self._writers[join.whole]) != 1:
            return "more than one step writes the result"
        if any(not equal(_or_none(self._bytes(number)), count) for number, count in join.parts):
            return "only the run knows whether the sizes fit"
        return ""

    def _is_part(self, join: _Join) -> bool:
        """Whether all parts lie side by side somewhere already, so that the whole is a view of that."""
        for root, shift in self._places(join.parts[0][0]):
            spread = self._spread(join, 0, root, shift)
            if spread.last < len(join.parts) or self._unfit(join, root):
                continue
            if self._affordable(root, [join.whole]):
                self._homes[join.whole] = root, shift
                return True
        return False

    def _candidates(self, join: _Join) -> tuple[list[_Run], dict[int, str]]:
        """Buffers that may be views of the whole, and why other parts can't be views."""
        found: list[_Run] = []
        reasons: dict[int, str] = {}
        part = 0
        while part < len(join.parts):
            for root, shift in self._places(join.parts[part][0]):
                run = self._spread(join, part, root, shift)
                why = self._unfit(join, root)
                if root in [other.root for other in found]:
                    why = "it is joined twice"
                if not why and equal(shift, 0) and equal(_or_none(self._bytes(root)), run.bytes):
                    found.append(run)
                    part = run.last
                    break
                reasons.setdefault(part, why or "it is a part of something else")
            else:
                part += 1
                continue
            reasons.pop(run.first, None)
        return found, reasons

    def _unfit(self, join: _Join, root: int) -> str:
        """Why a buffer can't share memory with the whole, or nothing."""
        kind = self._plan.buffers[root].kind
        if root == join.whole:
            return "it is joined twice"
        if kind != "planned":
            return "its size depends on data" if kind == "pooled" else f"its buffer is of kind {kind}"
        writers = self._writers.get(root, [])
        if not all(by_kernel for _, by_kernel in writers):
            return "the host writes it"
        if {body for body, _ in writers} != {body for body, _ in self._writers[join.whole]}:
            return "another body writes it"
        return ""

    def _spread(self, join: _Join, first: int, root: int, shift: DimLike) -> _Run:
        """The parts from `first` on that lie side by side in `root`, the first of them at `shift`."""
        count: DimLike = 0
        for last in range(first, len(join.parts)):
            number, size = join.parts[last]
            at = count + shift
            if not any(place == root and equal(start, at) for place, start in self._places(number)):
                return _Run(root, first, last, count)
            count = size + count
        return _Run(root, first, len(join.parts), count)

    def _affordable(self, whole: int, parts: Sequence[int]) -> set[int]:
        """Which buffers may be views of `whole` so that no more bytes are live than at first; counts them as such."""
        left = set(parts)
        first, final = self._lives[whole]
        while left:
            start = min(first, *(self._lives[number][0] for number in left))
            end = max(final, *(self._lives[number][1] for number in left))
            live = self._live.copy()
            live[start:first] += self._usual(whole)
            live[final + 1 : end + 1] += self._usual(whole)
            for number in left:
                live[self._lives[number][0] : self._lives[number][1] + 1] -= self._usual(number)
            if live.max() <= self._most:
                self._live, self._lives[whole] = live, (start, end)
                return left
            # What makes the whole live longest stays apart.
            spans = {n: max(0, first - self._lives[n][0]) + max(0, self._lives[n][1] - final) for n in left}
            left.remove(max(spans, key=lambda n: (spans[n], n)))
        return left

    # The plan

    def plan(self) -> PlanRecord:
        """The plan as it is now."""
        if not self._homes:
            return self._plan
        size = self._buffers.size
        buffers = list(self._plan.buffers)
        for number, (whole, shift) in self._homes.items():
            buffers[number] = replace(buffers[number], kind="view", arena=None, base=whole, shift=size(shift))
        instead: dict[int, list[Step]] = {}
        for whole, copies in self._copies.items():
            instead[whole] = []
            for copy in copies:
                to = len(buffers)
                buffers.append(BufferRecord("view", buffers[copy.number].type, base=whole, shift=size(copy.shift)))
                instead[whole].append(self._copy(copy, to, self.joins[whole].step.source))
        return bases_first(replace(self._plan, buffers=tuple(buffers), body=_replaced(self._plan.body, instead)))

    def _copy(self, copy: _Copy, to: int, source: str) -> CallStep:
        size = self._buffers.size
        arguments = (
            PointerArgument(0, copy.number),
            PointerArgument(8, to),
            ScalarArgument(16, "int64", size(copy.bytes)),
        )
        chunks = size(copy_chunks(copy.bytes))
        return CallStep(0, BYTE_COPY.entry, chunks, 24, arguments, (copy.number,), (to,), source=source)


def _or_none(count: DimLike | None) -> DimLike:
    """Bytes as a dim; where there are none that can be told, what no buffer has."""
    return -1 if count is None else count


def _results(blocks: Sequence[Block], bodies: Iterator[int]) -> Iterator[tuple[int, Step | None, Sequence[int]]]:
    """The buffers that each step or loop writes, with the number of the body that it is in."""
    body = next(bodies)
    for block in blocks:
        if isinstance(block, StraightBlock):
            yield from ((body, step, _written_by(step)) for step in block.steps)
        elif isinstance(block, IfBlock):
            yield from _results(block.then, bodies)
            yield from _results(block.otherwise, bodies)
        else:
            ends = [number for entry in block.carried for number in (entry.current, entry.final)]
            ends += [entry.result for entry in block.collected]
            yield body, None, ends if block.iteration is None else [*ends, block.iteration]
            yield from _results(block.body, bodies)


def _written_by(step: Step) -> Sequence[int]:
    if isinstance(step, EvaluateStep):
        return step.results
    if isinstance(step, CopyStep):
        return (step.destination,)
    if isinstance(step, RunStep):
        return (step.buffer,)
    return () if isinstance(step, ShapeStep) else step.writes


def _replaced(blocks: Sequence[Block], instead: Mapping[int, Sequence[Step]]) -> tuple[Block, ...]:
    """The blocks with other steps for the calls that write some buffers."""

    def steps(step: Step) -> Sequence[Step]:
        found = step.writes if isinstance(step, CallStep) else ()
        return instead[found[0]] if len(found) == 1 and found[0] in instead else (step,)

    made: list[Block] = []
    for block in blocks:
        if isinstance(block, StraightBlock):
            made.append(replace(block, steps=tuple(new for step in block.steps for new in steps(step))))
        elif isinstance(block, IfBlock):
            then, otherwise = _replaced(block.then, instead), _replaced(block.otherwise, instead)
            made.append(replace(block, then=then, otherwise=otherwise))
        else:
            made.append(replace(block, body=_replaced(block.body, instead)))
    return tuple(made)
