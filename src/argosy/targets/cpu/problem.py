"""What an instruction is to the solutions: whether kernels can hold its values, its module, who reads its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from argosy.ir.dtype import UINT8
from argosy.ir.module import Instruction, Module, Parameter, Value
from argosy.ir.types import TensorType, Type
from argosy.ops.fused import Fused
from argosy.options import CompileOptions
from argosy.passes.fuse_loops import ANCHORS
from argosy.rewrite.attention import find_attentions
from argosy.targets.cpu.arch import CpuArch
from argosy.targets.cpu.layout import Blocked
from argosy.targets.cpu.solution import Problem, Solution, solutions_for

__all__ = [
    "in_bytes",
    "in_memory",
    "is_numeric",
    "lone_module",
    "problem_of",
    "readers_of",
    "solutions_of",
    "wanted_layout",
]


def readers_of(module: Module) -> dict[Value, list[tuple[Instruction, int]]]:
    """The instructions that read each value, and as which of their operands, absent ones not counted."""
    found: dict[Value, list[tuple[Instruction, int]]] = {}
    for instruction in module.instructions:
        present = [operand for operand in instruction.operands if operand is not None]
        for index, operand in enumerate(present):
            found.setdefault(operand, []).append((instruction, index))
    return found


def is_numeric(kind: Type) -> bool:
    """Whether kernels can hold values of the type: tensors of numbers, of known rank."""
    return isinstance(kind, TensorType) and kind.dims is not None and kind.dtype.kind != "string"


def in_memory(instruction: Instruction) -> bool:
    """Whether kernels can hold all operands and results: tensors of known rank, and no strings."""
    operands = (operand.type for operand in instruction.operands if operand is not None)
    return all(is_numeric(kind) for kind in (*instruction.types, *operands))


def in_bytes(of: Type) -> Type:
    """The type of a buffer with no more than one element to a byte."""
    return of.with_dtype(UINT8) if isinstance(of, TensorType) and of.dtype.is_packed else of


def problem_of(
    instruction: Instruction, arch: CpuArch, options: CompileOptions, layouts: tuple[Blocked | None, ...]
) -> Problem:
    """What the solutions are asked to do for an instruction, whose operands are at hand in these blocked layouts."""
    op = instruction.op
    if isinstance(op, Fused):
        return Problem(op.module, _anchor(op.module)[1], arch, options, layouts)
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
        return solutions_for(_anchor(op.module)[0])
    return solutions_for(op.name)


def _anchor(module: Module) -> tuple[str, Instruction | None]:
    """By what name the solutions know the anchor of a fused module, and the instruction: the last one of attention."""
    for attention in find_attentions(module):
        return "attention", attention.product
    found = next((i for i in module.instructions if i.op.name in ANCHORS), None)
    return ("", None) if found is None else (found.op.name, found)


def lone_module(instruction: Instruction) -> Module:
    """An instruction that was not fused, as a module: its operands are the parameters, what is known stays."""
    parameters = [
        None if operand is None else _parameter(f"x{index}", operand)
        for index, operand in enumerate(instruction.operands)
    ]
    operands = tuple(None if parameter is None else parameter.result() for parameter in parameters)
    moved = Instruction(
        instruction.op, operands, instruction.types, instruction.known, instruction.names, instruction.source
    )
    return Module(
        instruction.op.name,
        tuple(parameter for parameter in parameters if parameter is not None),
        (moved,),
        moved.results,
        tuple(f"y{index}" for index in range(len(moved.types))),
    )


def _parameter(name: str, value: Value) -> Instruction:
    return Instruction(Parameter(value.type), (), (value.type,), (value.known,), (name,))
