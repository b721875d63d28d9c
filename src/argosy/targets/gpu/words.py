"""Complex numbers that kernels only move, as 64-bit words: no element is converted, so that each keeps its bits.

ONNX moves complex numbers and computes nothing with them but in ops of its own for signals, on pairs of floats.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from argosy.ir.dtype import DTYPES
from argosy.ir.literal import Literal
from argosy.ir.module import Constant, Instruction, Module, Parameter, Value
from argosy.ir.types import TensorType, Type
from argosy.ops.pointwise import Pointwise
from argosy.rewrite.view_chain import view_access

__all__ = ["in_words", "words_type"]

_WORD: Final = DTYPES["uint64"]
_MOVES: Final = frozenset({"compress", "concat", "gather_elements", "gather_nd", "pad", "reverse_sequence", "split",
                           "triangle"})  # fmt: skip
"""Ops that put elements, or zeros, into other places, beside views and those that say so of themselves."""


def words_type(kind: TensorType) -> TensorType:
    """The type as kernels that copy see it: a complex128 is two words, along an axis of their own behind the others."""
    if kind.dtype.kind != "complex":
        return kind
    words = kind.with_dtype(_WORD)
    return words if kind.dtype.bits == _WORD.bits or kind.dims is None else words.with_dims((*kind.dims, 2))


def in_words(module: Module) -> Module:
    """The module with words in place of complex numbers.

    The same one where it has none, or computes with some, or has some of two words.
    """
    instructions = (*module.parameters, *module.instructions)
    complexes = [instruction for instruction in instructions if _touches(instruction)]
    if not complexes or not all(_moves(instruction) for instruction in complexes):
        return module
    made: dict[Instruction, Instruction] = {}

    def moved(value: Value) -> Value:
        return made[value.instruction].result(value.index)

    for instruction in instructions:
        op = instruction.op
        if isinstance(op, Parameter):
            op = Parameter(_held(op.type))
        elif isinstance(op, Constant):
            op = Constant(_words(op.literal))
        operands = tuple(None if operand is None else moved(operand) for operand in instruction.operands)
        types = tuple(_held(kind) for kind in instruction.types)
        made[instruction] = Instruction(op, operands, types, instruction.known, instruction.names, instruction.source)
    return Module(
        module.name,
        tuple(made[parameter] for parameter in module.parameters),
        tuple(made[instruction] for instruction in module.instructions),
        tuple(moved(value) for value in module.results),
        module.result_names,
    )


def _held(kind: Type) -> Type:
    return words_type(kind) if isinstance(kind, TensorType) else kind


def _words(literal: Literal) -> Literal:
    if literal.dtype.kind != "complex":
        return literal
    if literal.is_splat:
        word = np.asarray(literal.item(), literal.dtype.numpy).view(_WORD.numpy)
        return Literal.splat(word.item(), _WORD, literal.shape)
    return Literal.of(literal.array().view(_WORD.numpy), _WORD)


def _is_complex(value: Value | None) -> bool:
    return value is not None and isinstance(value.type, TensorType) and value.dtype.kind == "complex"


def _touches(instruction: Instruction) -> bool:
    return any(map(_is_complex, (*instruction.operands, *instruction.results)))


def _moves(instruction: Instruction) -> bool:
    """Whether every element of its results is one of its operands', or zero."""
    op = instruction.op
    values = filter(_is_complex, (*instruction.operands, *instruction.results))
    if any(value is not None and value.dtype.bits != _WORD.bits for value in values):
        return False
    if isinstance(op, Pointwise):
        steps = op.formula.steps
        return all(step.primitive == "select" and all(isinstance(ref, int) for ref in step.args) for step in steps)
    if isinstance(op, (Parameter, Constant)) or op.moves_data or op.name in _MOVES:
        return True
    if op.name.startswith("scatter"):
        return getattr(op, "reduction", "") == "none"
    return view_access(instruction) is not None
