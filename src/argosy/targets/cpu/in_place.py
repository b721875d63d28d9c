"""Results go where an operand lies that nothing needs any more: less memory, of which more is in the cache."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from argosy.artifact.lifetimes import lifetimes, root_of
from argosy.artifact.plan import CallStep, PlanRecord, Step
from argosy.targets.cpu.codegen.kernel import Kernel

__all__ = ["write_in_place"]


def write_in_place(plan: PlanRecord, kernels: Mapping[str, Kernel]) -> PlanRecord:
    """The plan with results as views of operands, where the kernel allows it and the operand is read for the last time.

    `kernels` are those that the plan calls, by entry.
    """
    steps: list[tuple[int, Step]] = []
    kept = [binding.buffer for binding in plan.outputs]
    lives = lifetimes(
        plan.buffers, plan.body, [binding.buffer for binding in plan.inputs], kept,
        visit=lambda position, step: steps.append((position, step)),
    )  # fmt: skip
    starts = {root: life.start for root, life in lives.items()}
    ends = {root: life.end for root, life in lives.items()}
    buffers = list(plan.buffers)
    for position, step in steps:
        if not isinstance(step, CallStep) or len(step.writes) != 1:
            continue
        result = step.writes[0]
        if buffers[result].kind != "planned" or starts[result] != position:
            continue
        roots = [root_of(buffers, number) for number in step.reads]
        for number in sorted(kernels[step.entry].in_place):
            operand, root = step.reads[number], roots[number]
            free = buffers[root].kind == "planned" and ends[root] == position and roots.count(root) == 1
            if free and operand < result and root != result:
                buffers[result] = msgspec.structs.replace(buffers[result], kind="view", arena=None, base=operand)
                ends[root] = ends[result]
                break
    return msgspec.structs.replace(plan, buffers=tuple(buffers))
