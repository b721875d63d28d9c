"""What an instruction is to a lowering: whether kernels can hold its values, its module, its anchor, its readers."""

from __future__ import annotations

from argosy.ir.dtype import UINT8
from argosy.ir.module import Instruction, Module, Parameter, Value
from argosy.ir.types import TensorType, Type
from argosy.passes.fuse_loops import ANCHORS, TRANSFORMS
from argosy.rewrite.attention import find_attentions
from argosy.rewrite.rows import find_rows

__all__ = ["anchor_of", "in_bytes", "in_memory", "is_numeric", "lone_module", "readers_of"]


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


def anchor_of(module: Module, *, rows: bool = False) -> tuple[str, Instruction | None]:
    """By what name the solutions know the anchor of a fused module, and the instruction: the last one of attention.

    `rows` says that the target does work on whole rows as one.
    """
    for attention in find_attentions(module):
        return "attention", attention.product
    found = [instruction for instruction in module.instructions if instruction.op.name in ANCHORS | TRANSFORMS]
    if rows and found and module.results[0].instruction in find_rows(module):
        return ("rows", module.results[0].instruction)
    return (found[0].op.name, found[0]) if found else ("", None)


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
