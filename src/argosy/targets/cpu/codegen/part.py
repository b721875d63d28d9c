"""A part of a fused module: what some values need, up to a cut. Kernels of one op read only what they use."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from argosy.ir.builder import Builder
from argosy.ir.module import Instruction, Module, Value

__all__ = ["Part", "append", "part_of"]


@dataclass(frozen=True, slots=True)
class Part:
    """A module over the same instructions, and which parameters of the whole are its own, in order."""

    module: Module
    parameters: tuple[int, ...]


def part_of(module: Module, values: Sequence[Value], cut: Collection[Instruction] = ()) -> Part:
    """All that `values` are computed from but for what is `cut` off, whose results the kernel has otherwise."""
    needed: set[Instruction] = set()
    pending = [value.instruction for value in values]
    while pending:
        instruction = pending.pop()
        if instruction in needed or instruction in cut:
            continue
        needed.add(instruction)
        pending += [operand.instruction for operand in instruction.operands if operand is not None]
    kept = [index for index, parameter in enumerate(module.parameters) if parameter in needed]
    parameters = tuple(module.parameters[index] for index in kept)
    inner = tuple(instruction for instruction in module.instructions if instruction in needed)
    names = tuple(f"y{index}" for index in range(len(values)))
    return Part(Module(module.name, parameters, inner, tuple(values), names), tuple(kept))


def append(build: Builder, module: Module, values: dict[Value, Value]) -> None:
    """Append a module to one in the making: its parameters, but for those among `values`, and its instructions.

    `values` get what everything of the module has become.
    """
    for parameter in module.parameters:
        if parameter.result() not in values:
            values[parameter.result()] = build.parameter(parameter.names[0], parameter.types[0])
    for instruction in module.instructions:
        if instruction in module.parameters:
            continue
        operands = [None if operand is None else values[operand] for operand in instruction.operands]
        values.update(zip(instruction.results, build.keep(instruction, operands), strict=True))
