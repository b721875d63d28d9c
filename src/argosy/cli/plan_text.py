"""A plan in words: its buffers are numbers, its steps lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argosy.artifact.plan import Block, PlanRecord

__all__ = ["plan_lines"]


def plan_lines(plan: PlanRecord) -> Iterator[str]:
    """The lines: interface, shape program, memory, which buffers are parts of others, what is prepared, the body."""
    for title, bindings in (("input", plan.inputs), ("output", plan.outputs)):
        for binding in bindings:
            yield f"{title} {binding.name} = %{binding.buffer}: {plan.buffers[binding.buffer].type}"
    for entry in plan.shapes:
        yield f"shape {_fields(entry)}"
    for arena in plan.arenas:
        yield f"arena {arena.space}, aligned to {arena.alignment}: {_arena_size(plan)}"
    for number, buffer in enumerate(plan.buffers):
        if buffer.base is not None:
            yield f"view %{number} = %{buffer.base} + {buffer.shift} bytes: {buffer.type}"
    for module in plan.prepare:
        yield f"prepare {module.name}:"
        yield from (f"  {line}" for line in _blocks(module.body, plan))
    yield "run:"
    yield from (f"  {line}" for line in _blocks(plan.body, plan))


def _arena_size(plan: PlanRecord) -> str:
    """The bytes that the runtime will plan, beside those that are live at once, which no plan can do without."""
    from argosy.runtime.planned_memory import PlannedMemory

    memory = PlannedMemory(plan, "plan")
    if memory.symbols:
        return f"its size depends on {', '.join(memory.symbols)}"
    placed = memory.placement({})
    return f"{placed.size} bytes, of which at most {placed.live} are live at once"


def _blocks(blocks: Sequence[Block], plan: PlanRecord) -> Iterator[str]:
    from argosy.artifact.plan import IfBlock, StraightBlock

    for block in blocks:
        if isinstance(block, StraightBlock):
            yield from (_step(step, plan) for step in block.steps)
        elif isinstance(block, IfBlock):
            yield f"if %{block.condition}:{_source(block)}"
            yield from (f"  {line}" for line in _blocks(block.then, plan))
            yield "else:"
            yield from (f"  {line}" for line in _blocks(block.otherwise, plan))
        else:
            yield f"loop:{_source(block)}"
            yield from (f"  {line}" for line in _blocks(block.body, plan))


def _step(step: Any, plan: PlanRecord) -> str:
    from argosy.artifact.plan import CallStep, EvaluateStep, LaunchStep

    if isinstance(step, EvaluateStep):
        results = ", ".join(f"%{number}: {plan.buffers[number].type}" for number in step.results)
        operands = ", ".join("_" if number is None else f"%{number}" for number in step.operands)
        return f"{results} = {step.op}({operands}){_source(step)}"
    if isinstance(step, (LaunchStep, CallStep)):
        size = f"grid {step.grid} block {step.block}" if isinstance(step, LaunchStep) else f"{step.chunks} chunks"
        kind = "launch" if isinstance(step, LaunchStep) else "call"
        return f"{kind} {step.entry}({_numbers(step.reads)}) -> {_numbers(step.writes)}, {size}{_source(step)}"
    return f"{type(step).__name__.removesuffix('Step').lower()} {_fields(step)}"


def _numbers(buffers: Sequence[int]) -> str:
    return ", ".join(f"%{number}" for number in buffers)


def _fields(record: Any) -> str:
    return ", ".join(f"{name} = {getattr(record, name)}" for name in record.__struct_fields__)


def _source(record: Any) -> str:
    return f"  # {record.source}" if record.source else ""
