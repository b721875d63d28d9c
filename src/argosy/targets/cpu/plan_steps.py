"""Who writes the buffers of a plan, and other steps in place of some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from argosy.artifact.plan import (
    Block,
    CallStep,
    CheckStep,
    CopyStep,
    EvaluateStep,
    IfBlock,
    RunStep,
    ShapeStep,
    Step,
    StraightBlock,
)

__all__ = ["replaced", "written"]


def written(blocks: Sequence[Block], bodies: Iterator[int]) -> Iterator[tuple[int, Step | None, Sequence[int]]]:
    """The buffers that each step or loop writes, with the number of the body that it is in."""
    body = next(bodies)
    for block in blocks:
        if isinstance(block, StraightBlock):
            yield from ((body, step, _written_by(step)) for step in block.steps)
        elif isinstance(block, IfBlock):
            yield from written(block.then, bodies)
            yield from written(block.otherwise, bodies)
        else:
            ends = [number for entry in block.carried for number in (entry.current, entry.final)]
            ends += [entry.result for entry in block.collected]
            yield body, None, ends if block.iteration is None else [*ends, block.iteration]
            yield from written(block.body, bodies)


def _written_by(step: Step) -> Sequence[int]:
    if isinstance(step, EvaluateStep):
        return step.results
    if isinstance(step, CopyStep):
        return (step.destination,)
    if isinstance(step, RunStep):
        return (step.buffer,)
    return () if isinstance(step, (ShapeStep, CheckStep)) else step.writes


def replaced(blocks: Sequence[Block], instead: Mapping[int, Sequence[Step]]) -> tuple[Block, ...]:
    """The blocks with other steps `instead` of calls, by the first buffer that these write."""

    def steps(step: Step) -> Sequence[Step]:
        found = step.writes if isinstance(step, CallStep) else ()
        return instead.get(found[0], (step,)) if found else (step,)

    made: list[Block] = []
    for block in blocks:
        if isinstance(block, StraightBlock):
            made.append(replace(block, steps=tuple(new for step in block.steps for new in steps(step))))
        elif isinstance(block, IfBlock):
            then, otherwise = replaced(block.then, instead), replaced(block.otherwise, instead)
            made.append(replace(block, then=then, otherwise=otherwise))
        else:
            made.append(replace(block, body=replaced(block.body, instead)))
    return tuple(made)
