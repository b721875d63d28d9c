"""A sequence of blocks ready to run: its nodes, which buffers its arena holds and for how long, its layouts."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Final

from argosy.artifact.arena import Placement, place
from argosy.artifact.decode import Decoder
from argosy.artifact.lifetimes import lifetimes
from argosy.artifact.plan import Block, BufferRecord, CopyStep, RunStep, ShapeStep
from argosy.runtime.buffers import BufferTable
from argosy.runtime.forking import survive_forks
from argosy.runtime.layout import Frame, Holdings, Layout, Workspace, make_layout
from argosy.runtime.memory import ALIGNMENT
from argosy.runtime.nodes import Branch, Calls, Evaluation, Launches, Loop, Node, build_nodes

__all__ = ["Body"]

_LAYOUTS: Final = 64
"""Sets of sizes that a session remembers; the oldest is forgotten."""


class Body:
    """The blocks of a plan, or of one of its prepare modules. Safe to share between threads."""

    def __init__(
        self,
        blocks: Sequence[Block],
        records: Sequence[BufferRecord],
        table: BufferTable,
        decoder: Decoder,
        holdings: Holdings,
        where: str,
        *,
        given: Iterable[int] = (),
        kept: Iterable[int] = (),
    ) -> None:
        self.nodes = build_nodes(blocks, table, decoder, where)
        self._table = table
        self._holdings = holdings
        runs = [calls for calls in _calls_in(self.nodes) if calls.number is not None]
        self.fixed = tuple(sorted(runs, key=lambda calls: calls.number or 0))
        """The foreign calls whose arguments are known before a run, by number."""
        called = {
            table[number].root
            for calls in _calls_in(self.nodes)
            for call in calls.calls
            for number in (*call.step.reads, *call.step.writes)
        }
        self.called = frozenset(called)
        """Roots that kernels touch."""
        self.staged = tuple(number for number in given if number in called)
        """Inputs that kernels read: where they are, or copied into the arena of the run."""
        outputs = tuple(kept)
        shared = {table[number].root for number in range(len(table)) if table[number].root != number}
        shared |= {number for calls in _calls_in(self.nodes) for call in calls.calls for number in call.step.writes}
        self.in_place = frozenset(
            number
            for number in self.staged
            if holdings.code is not None
            and holdings.code.sees_everything
            and table.is_settled(number)
            and table[number].size == 0
            and number not in shared
            and number not in outputs
        )
        """Those of them that kernels may read where the caller has them: nothing else lies there or is written."""
        lives = lifetimes(records, blocks, self.staged, outputs)
        self.is_plain = (
            all(isinstance(node, Calls) and node.number is not None and not node.stale for node in self.nodes)
            and all(table.is_settled(number) for number in self.staged)
            and all(table.is_settled(number) and table.is_reused(number) for number in outputs)
        )
        """Whether a run is nothing but copies in, foreign calls, copies out."""
        self.evaluates = any(True for _ in _evaluations_in(self.nodes))
        """Whether numpy computes something."""
        self._lives = {
            root: life for root, life in lives.items() if table[root].kind == "planned" or root in self.staged
        }
        self._touched = sorted({*_touched(self.nodes), *outputs, *self.staged})
        self.symbols = sorted(self._size_symbols() - table.late)
        """Names of the symbols on which a layout depends."""
        self._scratch = max((c.step.scratch for calls in _calls_in(self.nodes) for c in calls.calls), default=0)
        self._layouts: OrderedDict[tuple[int | None, ...], Layout] = OrderedDict()
        self._workspaces: deque[Workspace] = deque()
        self._lock = Lock()
        survive_forks(self)

    def after_fork(self) -> None:
        """See `Survivor`."""
        self._lock = Lock()

    def _size_symbols(self) -> set[str]:
        table, sizes = self._table, self._table.sizes
        found: set[str] = set()
        for root in self._lives:
            found |= table.room_symbols(root)
        for number in self._touched:
            found |= table.place_symbols(number) | table.type_symbols(number)
        for calls in self.fixed:
            for call in calls.calls:
                found |= sizes.symbols(call.step.chunks)
                for pointer in call.pointers:
                    found |= sizes.symbols(pointer.shift) | table.place_symbols(pointer.buffer)
                for scalar in call.scalars:
                    found |= sizes.symbols(scalar.value)
        return found

    def layout(self, symbols: Mapping[str, int]) -> Layout:
        """The layout for these values of the symbols."""
        key = tuple([symbols.get(name) for name in self.symbols])
        found = self._layouts.get(key)
        if found is None:
            placed = self.placement(symbols)
            offsets = dict(zip(self._lives, placed.offsets, strict=True))
            found = make_layout(symbols, self._table, offsets, placed, self.fixed, self._holdings)
            with self._lock:
                self._layouts[key] = found
                if len(self._layouts) > _LAYOUTS:
                    self._layouts.popitem(last=False)
        return found

    def placement(self, symbols: Mapping[str, int]) -> Placement:
        """Where the buffers of the arena lie, for these values of the symbols."""
        lives = self._lives
        return place(
            [self._table.bytes(root, symbols) for root in lives],
            [life.start for life in lives.values()],
            [life.end for life in lives.values()],
            ALIGNMENT,
        )

    def take(self) -> Workspace:
        """The memory for one run, to be given back after it."""
        try:
            return self._workspaces.pop()
        except IndexError:
            return Workspace(self._scratch, self._holdings)

    def give(self, workspace: Workspace) -> None:
        """Take back the memory of a run."""
        self._workspaces.append(workspace)

    def frame(self, workspace: Workspace, symbols: Mapping[str, int]) -> Frame:
        """The frame for these values of the symbols in a workspace."""
        return workspace.frame(self.layout(symbols), self._frame)

    def _frame(self, layout: Layout, workspace: Workspace) -> Frame:
        return Frame(layout, workspace, self._table, self._touched, self._holdings)


def _calls_in(nodes: Sequence[Node]) -> Iterator[Calls]:
    for node in nodes:
        match node:
            case Calls():
                yield node
            case Branch():
                yield from _calls_in(node.then)
                yield from _calls_in(node.otherwise)
            case Loop():
                yield from _calls_in(node.body)
            case _:
                pass


def _evaluations_in(nodes: Sequence[Node]) -> Iterator[Evaluation]:
    for node in nodes:
        match node:
            case Evaluation():
                yield node
            case Branch():
                yield from _evaluations_in(node.then)
                yield from _evaluations_in(node.otherwise)
            case Loop():
                yield from _evaluations_in(node.body)
            case _:
                pass


def _touched(nodes: Sequence[Node]) -> Iterator[int]:
    """The buffers that are read or written other than by kernels."""
    for node in nodes:
        match node:
            case Evaluation():
                yield from (number for number in node.operands if number is not None)
                yield from node.results
            case CopyStep():
                yield from (node.origin, node.destination)
            case ShapeStep() | RunStep():
                yield node.buffer
            case Branch():
                yield node.condition
                yield from _touched(node.then)
                yield from _touched(node.otherwise)
            case Loop():
                block = node.block
                for carried in block.carried:
                    yield from (carried.initial, carried.current, carried.next, carried.final)
                for collected in block.collected:
                    yield from (collected.element, collected.result)
                ends = (block.trip_count, block.condition, block.next_condition, block.iteration)
                yield from (number for number in ends if number is not None)
                yield from _touched(node.body)
            case Calls() | Launches():
                pass
