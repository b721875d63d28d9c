"""Other numbers for the buffers of a plan, so that what a view is a part of has a lower number than the view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from argosy.artifact.plan import (
    Argument,
    Block,
    CallStep,
    CheckStep,
    CopyStep,
    EvaluateStep,
    IfBlock,
    LaunchStep,
    PlanRecord,
    PointerArgument,
    Step,
    StraightBlock,
    TensorMapArgument,
)
from argosy.artifact.record import Record

__all__ = ["bases_first"]

R = TypeVar("R", bound=Record)


def bases_first(plan: PlanRecord) -> PlanRecord:
    """The same plan with every base before its views; the order stays as it is otherwise."""
    order: list[int] = []
    new = [-1] * len(plan.buffers)
    for number in range(len(plan.buffers)):
        waiting: list[int] = []
        following: int | None = number
        while following is not None and new[following] < 0:
            waiting.append(following)
            following = plan.buffers[following].base
        for found in reversed(waiting):
            new[found] = len(order)
            order.append(found)
    if order == list(range(len(order))):
        return plan
    return _Renumbering(new).plan(plan, order)


class _Renumbering:
    """`new` has the new number of each buffer."""

    def __init__(self, new: Sequence[int]) -> None:
        self._new = new

    def plan(self, plan: PlanRecord, order: Sequence[int]) -> PlanRecord:
        return replace(
            plan,
            inputs=tuple(self._fields(binding, "buffer") for binding in plan.inputs),
            outputs=tuple(self._fields(binding, "buffer") for binding in plan.outputs),
            buffers=tuple(self._fields(plan.buffers[number], "base") for number in order),
            body=self._blocks(plan.body),
            prepare=tuple(
                replace(module, results=self._all(module.results), body=self._blocks(module.body))
                for module in plan.prepare
            ),
        )

    def _all(self, numbers: Sequence[int]) -> tuple[int, ...]:
        return tuple(self._new[number] for number in numbers)

    def _fields(self, record: R, *names: str) -> R:
        """A record whose fields `names` are buffers, or None."""
        numbers = {name: getattr(record, name) for name in names}
        return replace(record, **{name: None if n is None else self._new[n] for name, n in numbers.items()})

    def _blocks(self, blocks: Sequence[Block]) -> tuple[Block, ...]:
        return tuple(self._block(block) for block in blocks)

    def _block(self, block: Block) -> Block:
        if isinstance(block, StraightBlock):
            return replace(block, steps=tuple(self._step(step) for step in block.steps))
        if isinstance(block, IfBlock):
            then, otherwise = self._blocks(block.then), self._blocks(block.otherwise)
            return replace(self._fields(block, "condition"), then=then, otherwise=otherwise)
        return replace(
            self._fields(block, "trip_count", "condition", "next_condition", "iteration"),
            body=self._blocks(block.body),
            carried=tuple(self._fields(entry, "initial", "current", "next", "final") for entry in block.carried),
            collected=tuple(self._fields(entry, "element", "result") for entry in block.collected),
        )

    def _step(self, step: Step) -> Step:
        if isinstance(step, EvaluateStep):
            operands = tuple(None if number is None else self._new[number] for number in step.operands)
            return replace(step, results=self._all(step.results), operands=operands)
        if isinstance(step, CopyStep):
            return self._fields(step, "origin", "destination")
        if isinstance(step, (CallStep, LaunchStep)):
            arguments = tuple(self._argument(argument) for argument in step.arguments)
            return replace(step, arguments=arguments, reads=self._all(step.reads), writes=self._all(step.writes))
        return step if isinstance(step, CheckStep) else self._fields(step, "buffer")

    def _argument(self, argument: Argument) -> Argument:
        named = isinstance(argument, (PointerArgument, TensorMapArgument))
        return self._fields(argument, "buffer") if named else argument
