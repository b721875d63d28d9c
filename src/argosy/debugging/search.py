"""Where in a module the code is wrong first: by halving, on true inputs.

The code of the first k instructions is right for k = 0 and wrong for all of them, so halving finds a k at which it
turns wrong, in log2(n) trials, whichever branch of the graph it is on: the prefix holds all of them. Then the least of
the instructions that lead there is sought that is wrong on true inputs: the last one, the last two, four, and so on.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Final

from argosy.debugging.reduction.ddmin import minimise
from argosy.ir.module import Instruction
from argosy.verification.cutting import Cut, Truth, cut

__all__ = ["first_wrong", "turning_point"]

_TRIALS: Final = 40
"""How often something is left out of the part that was found, at most."""


def first_wrong(truth: Truth, is_wrong: Callable[[Cut], bool]) -> Cut | None:
    """The smallest part found whose last instruction is the first wrong one; None where the whole is not wrong."""

    def wrong(chosen: Sequence[Instruction]) -> Cut | None:
        made = cut(truth, chosen)
        return made if made is not None and is_wrong(made) else None

    steps = truth.steps
    end = turning_point(len(steps), lambda count: wrong(steps[:count]) is not None)
    if end is None:
        return None
    before = _ancestors(steps[:end])
    for size in _sizes(len(before)):
        part = wrong(before[-size:])
        if part is not None:
            return _thinned(part, wrong)
    whole = cut(truth, steps[:end])
    return None if whole is None else _thinned(whole, wrong)


def turning_point(count: int, is_wrong: Callable[[int], bool]) -> int | None:
    """The number from 1 to `count` at which it turns wrong, by halving; None where it is right at the end."""
    if not count or not is_wrong(count):
        return None
    right, wrong = 0, count
    while wrong - right > 1:
        middle = (right + wrong) // 2
        if is_wrong(middle):
            wrong = middle
        else:
            right = middle
    return wrong


def _sizes(count: int) -> list[int]:
    """1, 2, 4, … and the whole."""
    doubling = itertools.takewhile(lambda size: size < count, (1 << power for power in itertools.count()))
    return [*doubling, count]


def _ancestors(steps: Sequence[Instruction]) -> list[Instruction]:
    """The last of the steps and what it depends on, in order."""
    needed = {steps[-1]}
    for step in reversed(steps):
        if step in needed:
            needed.update(operand.instruction for operand in step.operands if operand is not None)
    return [step for step in steps if step in needed]


def _thinned(part: Cut, wrong: Callable[[Sequence[Instruction]], Cut | None]) -> Cut:
    """The part without what it is wrong without. The last instruction stays; that it is right alone is known."""
    *before, last = part.instructions
    trials = itertools.count()

    def holds(chosen: Sequence[Instruction]) -> bool:
        nonlocal part
        less = wrong([*chosen, last]) if next(trials) < _TRIALS else None
        part = less or part
        return less is not None

    minimise(before, holds)
    return part
