"""What an instruction is to the solutions: the problem that they are asked, and the layout that readers want."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from argosy.ir.module import Instruction, Value
from argosy.ops.fused import Fused
from argosy.options import CompileOptions
from argosy.targets.cpu.arch import CpuArch
from argosy.targets.cpu.layout import Blocked
from argosy.targets.cpu.solution import Problem, Solution, solutions_for
from argosy.targets.lowering.values import anchor_of, in_memory, lone_module

__all__ = ["problem_of", "solutions_of", "wanted_layout"]


def problem_of(
    instruction: Instruction, arch: CpuArch, options: CompileOptions, layouts: tuple[Blocked | None, ...]
) -> Problem:
    """What the solutions are asked to do for an instruction, whose operands are at hand in these blocked layouts."""
    op = instruction.op
    if isinstance(op, Fused):
        return Problem(op.module, anchor_of(op.module)[1], arch, options, layouts)
    module = lone_module(instruction)
    return Problem(module, module.instructions[0], arch, options, layouts)


def wanted_layout(
    value: Value, readers: Sequence[tuple[Instruction, int]], problem: Callable[[Instruction], Problem]
) -> Blocked | None:
    """The least blocked layout that covers what the readers of a value would like; None where none would."""
    found: Blocked | None = None
    for reader, index in readers:
        if not in_memory(reader):
            continue
        asked = problem(reader)
        liked = (solution.prefers(asked, index) for solution in solutions_of(reader))
        layout = next((layout for layout in liked if layout is not None), None)
        if layout is not None and len(layout.halo) == value.rank - 2:
            found = layout if found is None else found.merged(layout)
    return found


def solutions_of(instruction: Instruction) -> list[Solution]:
    """The solutions that may do an instruction, best first."""
    op = instruction.op
    if isinstance(op, Fused):
        return solutions_for(anchor_of(op.module)[0])
    return solutions_for(op.name)
