"""Instructions and steps in a line each."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from argosy.artifact.plan import CallStep, CheckStep, EvaluateStep, LaunchStep, PlanRecord, Step
from argosy.ir.module import Constant, Instruction, Module, Value
from argosy.ir.op import Op
from argosy.ir.printer import Writer
from argosy.ops.fused import Fused
from argosy.ops.pointwise import Pointwise

__all__ = ["buffer_words", "instruction_words", "op_words", "short_name", "step_words", "value_words"]

_NAME: Final = 48
"""Characters of a node's name in a line that lists nodes."""


def short_name(name: str) -> str:
    """The end of a long name, from a `/` on where there is one: such ends name nodes too."""
    if len(name) <= _NAME:
        return name
    end = name[-_NAME + 1 :]
    return f"…{end[max(end.find('/'), 0) :]}"


def instruction_words(instruction: Instruction, inside: Instruction | None = None) -> str:
    """An instruction, with what it reads by the names of the model: of one `inside` a fused op, as that reads it."""
    given: dict[Instruction, Value | None] = {}
    if inside is not None and isinstance(inside.op, Fused):
        given = dict(zip(inside.op.module.parameters, inside.operands, strict=True))
    read = [value and given.get(value.instruction, value) for value in instruction.operands]
    return f"{op_words(instruction)}  of {', '.join(map(value_words, read)) or 'nothing'}"


def op_words(instruction: Instruction) -> str:
    """An instruction without what it reads: its op, attributes and types."""
    op = instruction.op
    types = ", ".join(map(str, instruction.types))
    if isinstance(op, Constant):
        return f"constant {types}"
    if isinstance(op, Pointwise):
        return f"{op.formula} : {types}"
    attributes = _attributes(op)
    return f"{op.name}{f' {{{attributes}}}' if attributes else ''} : {types}"


def value_words(value: Value | None) -> str:
    """A value by its name in the model, else by where it comes from."""
    if value is None:
        return "_"
    made = value.instruction
    if value.name:
        return value.name
    return f"a constant {value.type}" if isinstance(made.op, Constant) else f"{made.op.name} of {made.source or 'ours'}"


def step_words(step: Step) -> str:
    """A step of a plan."""
    if isinstance(step, EvaluateStep):
        return f"evaluate {step.op} by numpy, {_buffers(step.operands)} → {_buffers(step.results)}"
    if isinstance(step, CallStep):
        return f"call {step.entry}, {step.chunks} chunks, {_buffers(step.reads)} → {_buffers(step.writes)}"
    if isinstance(step, LaunchStep):
        grid = " x ".join(map(str, step.grid))
        return f"launch {step.entry}, grid {grid}, {_buffers(step.reads)} → {_buffers(step.writes)}"
    if isinstance(step, CheckStep):
        told = ", ".join(f"{each.left} and {each.right}" for each in step.demands)
        return f"check that sizes fit: {told}"
    return type(step).__name__.removesuffix("Step").lower()


def buffer_words(plan: PlanRecord, number: int) -> str:
    """A buffer of a plan: its type, and where it lies."""
    buffer = plan.buffers[number]
    given = next((f"input {binding.name!r}" for binding in plan.inputs if binding.buffer == number), "")
    leaves = next((f", output {binding.name!r}" for binding in plan.outputs if binding.buffer == number), "")
    size = f", {buffer.size} bytes" if buffer.size else ""
    part = "" if buffer.base is None else f" of %{buffer.base}, {buffer.shift} bytes after its start"
    return f"%{number}: {buffer.type}, {given or buffer.kind}{part}{size}{leaves}"


def _buffers(numbers: Any) -> str:
    return ", ".join("_" if number is None else f"%{number}" for number in numbers)


def _attributes(op: Op) -> str:
    writer = Writer()
    texts = []
    for each in dataclasses.fields(op):  # type: ignore[arg-type]
        value = getattr(op, each.name)
        if isinstance(value, Module):
            texts.append(f"{each.name} of {len(value.instructions)} instructions")
        elif value != each.default:
            texts.append(f"{each.name} = {writer.attribute(value)}")
    return ", ".join(texts)
