"""How long the buffers of a plan are needed: from the first step that touches one to the last.

Steps are numbered in the order of the blocks, a loop's body once. What lives before a loop and is touched in it is
needed until the loop's end, since the next iteration may read it. The branches of an `if` are numbered one after
the other. A view's touches count for the buffer that it is a part of. What lies in another arena than the first lies
there alone: it is needed all the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from argosy.artifact.plan import (
    Block,
    BufferRecord,
    CheckStep,
    CopyStep,
    EvaluateStep,
    LoopBlock,
    RunStep,
    ShapeStep,
    Step,
    StraightBlock,
)

__all__ = ["Lifetime", "lifetimes", "root_of"]


class Lifetime(msgspec.Struct, frozen=True):
    """The first and the last step, both included, at which a buffer is needed."""

    start: int
    end: int


def root_of(buffers: Sequence[BufferRecord], number: int) -> int:
    """The buffer that `number` is a part of; itself where it is no view."""
    base = buffers[number].base
    while base is not None:
        number, base = base, buffers[base].base
    return number


def lifetimes(
    buffers: Sequence[BufferRecord],
    blocks: Sequence[Block],
    given: Iterable[int] = (),
    kept: Iterable[int] = (),
    *,
    visit: Callable[[int, Step], None] | None = None,
) -> dict[int, Lifetime]:
    """Lifetimes of all buffers that `blocks` touch, by number; views are counted with what they are a part of.

    `given` buffers are filled before the first step, `kept` ones are read after the last; `visit` is called with the
    number of every step and the step.
    """
    walk = _Walk(buffers, visit)
    walk.touch(given)
    walk.position += 1
    walk.blocks(blocks)
    walk.touch(kept)
    return {
        number: Lifetime(0, walk.position) if buffers[number].arena else Lifetime(start, walk.last[number])
        for number, start in walk.first.items()
    }


class _Walk:
    def __init__(self, buffers: Sequence[BufferRecord], visit: Callable[[int, Step], None] | None) -> None:
        self._visit = visit
        self._roots: list[int] = []
        for number, buffer in enumerate(buffers):
            self._roots.append(number if buffer.base is None else self._roots[buffer.base])
        self.position = 0
        self.first: dict[int, int] = {}
        self.last: dict[int, int] = {}

    def touch(self, numbers: Iterable[int | None]) -> None:
        for number in numbers:
            if number is not None:
                root = self._roots[number]
                self.first.setdefault(root, self.position)
                self.last[root] = self.position

    def blocks(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            if isinstance(block, StraightBlock):
                for step in block.steps:
                    if self._visit is not None:
                        self._visit(self.position, step)
                    self.touch(_touched(step))
                    self.position += 1
            elif isinstance(block, LoopBlock):
                self._loop(block)
            else:
                self.touch((block.condition,))
                self.position += 1
                self.blocks(block.then)
                self.blocks(block.otherwise)

    def _loop(self, block: LoopBlock) -> None:
        head = self.position
        around = (
            *(entry.current for entry in block.carried),
            *(entry.result for entry in block.collected),
            block.iteration,
        )
        self.touch((block.trip_count, block.condition, *(entry.initial for entry in block.carried), *around))
        self.position += 1
        self.blocks(block.body)
        self.touch(around)
        self.touch((block.next_condition, *(entry.next for entry in block.carried)))
        self.touch(entry.final for entry in block.carried)
        self.touch(entry.element for entry in block.collected)
        for root, last in self.last.items():
            if last > head and self.first[root] <= head:
                self.last[root] = self.position
        self.position += 1


def _touched(step: Step) -> Iterable[int | None]:
    if isinstance(step, EvaluateStep):
        return (*step.operands, *step.results)
    if isinstance(step, CopyStep):
        return (step.origin, step.destination)
    if isinstance(step, (ShapeStep, RunStep)):
        return (step.buffer,)
    if isinstance(step, CheckStep):
        return ()
    return (*step.reads, *step.writes)
