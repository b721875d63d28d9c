"""What an instruction is to the solutions: the problem that they are asked, and the order that readers want."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from argosy.ir.module import Instruction, Value
from argosy.ir.types import TensorType
from argosy.ops.fused import Fused
from argosy.options import CompileOptions
from argosy.targets.gpu.arches.row import GpuArch
from argosy.targets.gpu.solution import Order, Problem, Solution, solutions_for
from argosy.targets.lowering.values import anchor_of, in_memory, lone_module

__all__ = ["problem_of", "solutions_of", "wanted_order"]

_FAR = 8
"""Element-wise readers through which the wish of a window is looked for."""


def problem_of(instruction: Instruction, arch: GpuArch, options: CompileOptions, orders: tuple[Order, ...]) -> Problem:
    """What the solutions are asked to do for an instruction, whose operands lie in these orders."""
    op = instruction.op
    if isinstance(op, Fused):
        return Problem(op.module, anchor_of(op.module, rows=True)[1], arch, options, orders)
    module = lone_module(instruction)
    return Problem(module, module.instructions[0], arch, options, orders)


def solutions_of(instruction: Instruction) -> list[Solution]:
    """The solutions that may do an instruction, best first."""
    op = instruction.op
    if isinstance(op, Fused):
        return solutions_for(anchor_of(op.module, rows=True)[0])
    return solutions_for(op.name)


def wanted_order(
    value: Value,
    readers: Mapping[Value, Sequence[tuple[Instruction, int]]],
    arch: GpuArch,
    options: CompileOptions,
    far: int = _FAR,
) -> Order:
    """The order in which the readers of a value would like its axes, seen through element-wise ones."""
    if not isinstance(value.type, TensorType) or value.type.dims is None or value.rank < 3:
        return None
    for reader, index in readers.get(value, ()):
        if not in_memory(reader):
            continue
        count = sum(operand is not None for operand in reader.operands)
        asked = problem_of(reader, arch, options, (None,) * count)
        for solution in solutions_of(reader):
            liked = solution.prefers(asked, index)
            if liked is not None and len(liked) == value.rank:
                return liked
        passes = asked.anchor is None and len(reader.types) == 1 and _same_shape(value, reader.result())
        if passes and far:
            liked = wanted_order(reader.result(), readers, arch, options, far - 1)
            if liked is not None:
                return liked
    return None


def _same_shape(left: Value, right: Value) -> bool:
    return isinstance(right.type, TensorType) and right.type.dims == left.type.dims  # type: ignore[union-attr]
