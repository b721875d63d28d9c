"""Concatenations and pieces without a copy: operands are written where they lie in the whole, pieces read there.

A kernel says that its result is its operands end to end (`Kernel.joins`), or that its results are pieces of operands
(`Kernel.pieces`). An operand that kernels of the same body write into a planned buffer of its own becomes a view of the
result's buffer, a piece one of the operand's, and the call goes. Buffers are written once, so whoever else reads them
finds there what is to be found. What can't be a view is copied, and the log says why:

- inputs, weights, and what is of a size that only the run tells;
- operands that do not lie end to end: along an inner axis, channels of more than one image (`Kernel.apart`);
- operands that the host writes, or another body;
- operands that are a part of another whole already, or joined twice. The wholes of nested concatenations become one: a
  whole that is an operand, or whose operands all are, in its order, is itself a view of the larger one;
- what would make the arena larger by more than `_GROWTH`: a whole is needed from its first operand to its last reader,
  also where a piece is all that is read.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec.structs import replace

from argosy.artifact.lifetimes import lifetimes
from argosy.artifact.plan import BufferRecord, CallStep, PlanRecord, PointerArgument, ScalarArgument, Step
from argosy.artifact.renumber import bases_first
from argosy.ir.dim import DimLike, equal, evaluate, symbols_in
from argosy.ir.types import TensorType
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen.byte_copy import BYTE_COPY, copy_chunks
from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.cpu.plan_steps import replaced, written
from argosy.targets.lowering.plan_buffers import PlanBuffers

__all__ = ["avoid_copies"]

log = logging.getLogger("argosy.cpu")
_USUAL: Final = 16
"""What a symbol is taken for where bytes are compared, within its bounds."""
_GROWTH: Final = 1 / 16
"""By how much more bytes may be live at once, of those that are live without any view."""


def avoid_copies(plan: PlanRecord, kernels: Mapping[str, Kernel], buffers: PlanBuffers) -> PlanRecord:
    """The plan with operands of concatenations, and pieces, as views. Operands that stay apart go by `BYTE_COPY`.

    `kernels` are those that the plan calls, by entry; `buffers` know the types of its buffers.
    """
    views = _Views(plan, kernels, buffers)
    for copies in views.calls:
        if isinstance(copies, _Join):
            views.join(copies)
        else:
            views.cut_all(copies)
    return views.plan()


@dataclass(frozen=True, slots=True)
class _Join:
    """A call that lays `parts`, buffers and their bytes, end to end in the buffer `whole`."""

    step: CallStep
    whole: int
    parts: tuple[tuple[int, DimLike], ...]

    def offsets(self) -> list[DimLike]:
        """Bytes before each part."""
        found: list[DimLike] = [0]
        for _, count in self.parts[:-1]:
            found.append(count + found[-1])
        return found


@dataclass(frozen=True, slots=True)
class _Run:
    """Parts number `first` to before `last`, side by side in `root`, and their bytes."""

    root: int
    first: int
    last: int
    bytes: DimLike


@dataclass(frozen=True, slots=True)
class _Copy:
    """A part that is to be copied: its buffer, where it goes in the whole, its bytes, and for which node."""

    number: int
    shift: DimLike
    bytes: DimLike
    source: str


@dataclass(frozen=True, slots=True)
class _Cut:
    """A call whose results are pieces of its operands: for each the buffer of the operand, and its first byte there."""

    step: CallStep
    pieces: tuple[tuple[int, DimLike], ...]


class _Views:
    def __init__(self, plan: PlanRecord, kernels: Mapping[str, Kernel], buffers: PlanBuffers) -> None:
        self._plan = plan
        self._buffers = buffers
        self._homes: dict[int, tuple[int, DimLike]] = {}
        self._instead: dict[int, list[_Copy]] = {}
        """What is still to be copied of a call, by the first buffer that it writes."""
        self._copied: dict[int, list[tuple[int, DimLike]]] = {}
        """Where a buffer is copied to: the whole, and how many bytes after its start."""
        self._writers: dict[int, list[tuple[int, bool]]] = {}
        """The body of each step that writes a buffer, and whether it calls a kernel."""
        self._decided: set[int] = set()
        """The first results of the cuts that were decided about."""
        self.calls: list[_Join | _Cut] = []
        """The calls that only copy, in the order of the plan."""
        for body, step, results in written(plan.body, itertools.count()):
            for number in results:
                root = self._place(number)[0]
                self._writers.setdefault(root, []).append((body, isinstance(step, CallStep)))
            if isinstance(step, CallStep):
                kernel = kernels[step.entry]
                if kernel.apart:
                    log.info("concat copies: %s: %s", step.source, kernel.apart)
                if kernel.joins:
                    parts = tuple((step.reads[number], count) for number, count in kernel.joins)
                    self.calls.append(_Join(step, step.writes[0], parts))
                elif kernel.pieces:
                    pieces = tuple((step.reads[number], shift) for number, shift in kernel.pieces)
                    self.calls.append(_Cut(step, pieces))
        if self.calls:
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
        self._most = (1 + _GROWTH) * self._live.max(initial=0)

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

    # One call

    def cut_all(self, first: _Cut) -> None:
        """Make views of what this call and later ones cut from the same buffers, where that can be."""
        if first.step.writes[0] in self._decided:
            return
        same = [cut for cut in self.calls if isinstance(cut, _Cut) and cut.step.reads == first.step.reads]
        self._decided.update(cut.step.writes[0] for cut in same)
        for cut in same if len(same) == 1 or self._cut(same) else ():
            if why := self._cut([cut]):
                log.info("pieces are copied: %s: %s", cut.step.source, why)

    def _cut(self, cuts: Sequence[_Cut]) -> str:
        """Make views of the results of calls; or why not."""
        results = [result for cut in cuts for result in cut.step.writes]
        places = [(*self._place(number), shift) for cut in cuts for number, shift in cut.pieces]
        if any(self._plan.buffers[result].kind != "planned" for result in results):
            return "the size of a piece depends on data"
        if any(len(self._writers[result]) != 1 for result in results):
            return "more than one step writes a piece"
        groups: dict[int, list[int]] = {}
        for result, (root, *_) in zip(results, places, strict=True):
            if why := self._unshared(root):
                return why
            groups.setdefault(root, []).append(result)
        before = self._live, dict(self._lives)
        if any(len(self._affordable(root, group)) < len(group) for root, group in groups.items()):
            self._live, self._lives = before
            return "the arena would grow"
        for result, (root, start, shift) in zip(results, places, strict=True):
            self._homes[result] = root, start + shift
        self._instead.update((cut.step.writes[0], []) for cut in cuts)
        return ""

    def join(self, join: _Join) -> None:
        """Make views of what can be, and note what is to be copied."""
        if why := self._declines(join):
            log.info("concat copies: %s: %s", join.step.source, why)
            return
        if self._is_part(join):
            self._instead[join.whole] = []
            return
        found, reasons = self._candidates(join)
        afford = self._affordable(join.whole, [run.root for run in found])
        covered: set[int] = set()
        offsets = join.offsets()
        for run in found:
            parts = range(run.first, run.last)
            if run.root in afford:
                covered.update(parts)
                self._homes[run.root] = join.whole, offsets[run.first]
            else:
                reasons.update(dict.fromkeys(parts, "the arena would grow"))
        for part, why in sorted(reasons.items()):
            log.info("concat copies operand %d: %s: %s", part, join.step.source, why)
        if covered:
            copies = [
                _Copy(number, offset, count, join.step.source)
                for (number, count), offset in zip(join.parts, offsets, strict=True)
            ]
            left = [copy for part, copy in enumerate(copies) if part not in covered]
            self._instead[join.whole] = left
            for copy in left:
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
        taken: set[int] = set()
        reasons: dict[int, str] = {}
        part = 0
        while part < len(join.parts):
            for root, shift in self._places(join.parts[part][0]):
                run = self._spread(join, part, root, shift)
                why = self._unfit(join, root)
                if root in taken:
                    why = "it is joined twice"
                if not why and equal(shift, 0) and equal(_or_none(self._bytes(root)), run.bytes):
                    found.append(run)
                    taken.add(root)
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
        if root == join.whole:
            return "it is joined twice"
        if why := self._unshared(root):
            return why
        writers = self._writers.get(root, [])
        if not all(by_kernel for _, by_kernel in writers):
            return "the host writes it"
        if {body for body, _ in writers} != {body for body, _ in self._writers[join.whole]}:
            return "another body writes it"
        return ""

    def _unshared(self, root: int) -> str:
        """Why no view can be of a buffer, or nothing."""
        kind = self._plan.buffers[root].kind
        if kind == "pooled":
            return "its size depends on data"
        return "" if kind == "planned" else f"its buffer is of kind {kind}"

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
        for first, copies in self._instead.items():
            instead[first] = []
            for copy in copies:
                to = len(buffers)
                buffers.append(BufferRecord("view", buffers[copy.number].type, base=first, shift=size(copy.shift)))
                instead[first].append(self._copy(copy, to))
        return bases_first(replace(self._plan, buffers=tuple(buffers), body=replaced(self._plan.body, instead)))

    def _copy(self, copy: _Copy, to: int) -> CallStep:
        size = self._buffers.size
        arguments = (
            PointerArgument(0, copy.number),
            PointerArgument(8, to),
            ScalarArgument(16, "int64", size(copy.bytes)),
        )
        chunks = size(copy_chunks(copy.bytes))
        return CallStep(
            0, BYTE_COPY.entry, chunks, 24, arguments, (copy.number,), (to,), source=copy.source, whole=True
        )


def _or_none(count: DimLike | None) -> DimLike:
    """Bytes as a dim; where there are none that can be told, what no buffer has."""
    return -1 if count is None else count
