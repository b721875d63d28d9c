"""What a solution asked of the steps and what it was told, to be repeated for instructions with the same problem.

A network repeats its layers: dozens of instructions are the same problem on other buffers. A solution sees nothing
but the problem and the answers of the steps, so where both are the same it would do the same again; a script
does so without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from argosy.ir.types import TensorType
from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.cpu.layout import Blocked
from argosy.targets.cpu.solution import Problem, Solution, Steps
from argosy.targets.lowering.accesses import DeclinedError

__all__ = ["Script"]

A = TypeVar("A")
Renumber = Callable[[int], int]
Request = Callable[[Steps, Renumber], object]


class Script:
    """The requests of a solution in order, with their answers; its configuration, and how it ended."""

    def __init__(self) -> None:
        self._requests: list[tuple[Request, object]] = []
        self._declined: DeclinedError | None = None
        self.config: Any = None

    def write(self, solution: Solution, problem: Problem, steps: Steps) -> DeclinedError | None:
        """Let a solution write its steps, and take down what it does; what it declines with."""
        self.config = solution.configs(problem)[0]
        try:
            solution.lower(problem, self.config, _Recorder(steps, self._requests))
        except DeclinedError as declined:
            self._declined = declined
        return self._declined

    def repeat(self, steps: Steps) -> tuple[bool, DeclinedError | None]:
        """Do the same with other steps: whether all their answers agreed, and what the solution declined with.

        Buffers agree where they are different or the same as they were then. Steps that did not agree are worthless.
        """
        numbers: dict[int, int] = {}
        for request, answer in self._requests:
            if not _agrees(answer, request(steps, numbers.__getitem__), numbers):
                return False, None
        return len(set(numbers.values())) == len(numbers), self._declined


def _agrees(old: object, new: object, numbers: dict[int, int]) -> bool:
    """Whether an answer is what it was then; the buffers in it are entered into `numbers`."""
    if isinstance(old, int) and not isinstance(old, bool):
        return isinstance(new, int) and numbers.setdefault(old, new) == new
    if isinstance(old, tuple) and isinstance(new, tuple):
        return len(old) == len(new) and all(_agrees(*pair, numbers) for pair in zip(old, new, strict=True))
    return old == new


class _Recorder:
    """Steps that take down every request to other steps, and its answer."""

    def __init__(self, steps: Steps, requests: list[tuple[Request, object]]) -> None:
        self._steps = steps
        self._requests = requests

    def _pass(self, request: Callable[[Steps, Renumber], A]) -> A:
        answer = request(self._steps, _same)
        self._requests.append((request, answer))
        return answer

    def operand(self, index: int) -> int:
        return self._pass(lambda steps, _: steps.operand(index))

    def result(self, index: int = 0) -> int:
        return self._pass(lambda steps, _: steps.result(index))

    def blocked(self, index: int, need: Blocked, axes: tuple[int | None, ...] | None = None) -> tuple[int, Blocked]:
        return self._pass(lambda steps, _: steps.blocked(index, need, axes))

    def blocked_result(self, layout: Blocked, index: int = 0) -> int:
        return self._pass(lambda steps, _: steps.blocked_result(layout, index))

    def wanted(self, index: int = 0) -> Blocked | None:
        return self._pass(lambda steps, _: steps.wanted(index))

    def is_weight(self, index: int) -> bool:
        return self._pass(lambda steps, _: steps.is_weight(index))

    def temporary(self, kind: TensorType) -> int:
        return self._pass(lambda steps, _: steps.temporary(kind))

    def draw_number(self) -> int:
        return self._pass(lambda steps, _: steps.draw_number())

    def undefined(self, index: int = 0) -> Sequence[tuple[str, int]]:
        return self._pass(lambda steps, _: list(steps.undefined(index)))

    def prepared(self, kernel: Kernel, reads: Sequence[int], kind: TensorType) -> int:
        reads = tuple(reads)
        return self._pass(lambda steps, new: steps.prepared(kernel, [*map(new, reads)], kind))

    def call(self, kernel: Kernel, reads: Sequence[int], writes: Sequence[int]) -> None:
        reads, writes = tuple(reads), tuple(writes)
        self._pass(lambda steps, new: steps.call(kernel, [*map(new, reads)], [*map(new, writes)]))

    def define(self, symbol: str, buffer: int, axis: int | None = None, element: int = 0) -> None:
        self._pass(lambda steps, new: steps.define(symbol, new(buffer), axis, element))


def _same(number: int) -> int:
    return number
