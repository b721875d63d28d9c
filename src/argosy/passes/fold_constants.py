"""Constant folding within bounds: what depends on constants alone is computed while compiling.

Folding must not grow a program: a result may take at most `small_bytes`, or as much as the constants that
it replaces and `large_bytes`. Work on whole weights is left to the weight passes, whose results are made
when an artifact is loaded. Two kinds of folding cost nothing and have no bound: a contiguous view of a
constant, and anything pointwise or a view of splats, which stays a splat.

Codes below 16 bits stay with what they stand for, unless asked otherwise: `lower_quantize` multiplies the codes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from argosy.errors import InternalError
from argosy.ir.builder import Builder
from argosy.ir.dtype import DType
from argosy.ir.literal import Literal
from argosy.ir.module import Constant, Instruction, Module, Value
from argosy.ir.op import Op
from argosy.ir.types import TensorType
from argosy.ops.pointwise import Pointwise
from argosy.ops.quantize import Dequantize
from argosy.ops.view import Broadcast, Reshape, Slice, Squeeze, Tile, Transpose, Unsqueeze
from argosy.passes.manager import PassContext, register_pass
from argosy.rewrite.rebuild import transform

__all__ = ["FoldConstants"]

_STRING_BYTES: Final = 16
"""What a string counts for; its length is not known before it is made."""

_SAME_ORDER: Final = (Reshape, Squeeze, Unsqueeze)
_KEEPS_SPLAT: Final = (*_SAME_ORDER, Transpose, Broadcast, Slice, Tile)


@register_pass
@dataclass(frozen=True, slots=True)
class FoldConstants:
    """f(constants) = constant, for pure f without bodies whose result is small enough."""

    name = "fold_constants"
    small_bytes: int = 1 << 16
    large_bytes: int = 1 << 20
    dequantizes: bool = False

    def run(self, module: Module, context: PassContext) -> Module:
        """The module with constant results in place of what computes them."""
        return transform(module, lambda: self._fold, context.namer)

    def _fold(self, build: Builder, instruction: Instruction) -> Sequence[Value] | None:
        op = instruction.op
        if isinstance(op, Constant) or not op.pure or op.modules() or not instruction.operands:
            return None
        codes = instruction.operands[0]
        if isinstance(op, Dequantize) and not self.dequantizes and codes is not None and codes.dtype.bits <= 8:
            return None
        literals = [None if operand is None else operand.constant for operand in instruction.operands]
        if any(
            literal is None and operand is not None
            for literal, operand in zip(literals, instruction.operands, strict=True)
        ):
            return None
        shapes = _static_shapes(instruction)
        if shapes is None or op.has_symbols():
            return None
        present = [literal for literal in literals if literal is not None]
        folded = _splat(instruction, present, shapes)
        if folded is None:
            if not self._affordable(instruction, present, shapes):
                return None
            folded = _evaluate(instruction, literals)
        pairs = zip(folded, instruction.results, strict=True)
        return [build.constant(literal, name=result.name) for literal, result in pairs]

    def _affordable(self, instruction: Instruction, literals: list[Literal], shapes: list[tuple[int, ...]]) -> bool:
        if isinstance(instruction.op, _SAME_ORDER) and literals[0].dtype.bits >= 8 and not literals[0].is_splat:
            return True  # shares the bytes of its operand
        size = sum(
            _bytes(value.dtype, math.prod(shape)) for value, shape in zip(instruction.results, shapes, strict=True)
        )
        return size <= max(self.small_bytes, min(self.large_bytes, sum(literal.nbytes for literal in literals)))


def _bytes(dtype: DType, elements: int) -> int:
    return elements * _STRING_BYTES if dtype.kind == "string" else dtype.byte_size(elements)


def _static_shapes(instruction: Instruction) -> list[tuple[int, ...]] | None:
    """The shapes of all results, where they are tensors of numbers only."""
    shapes = []
    for kind in instruction.types:
        if not isinstance(kind, TensorType) or kind.dims is None:
            return None
        sizes = tuple(dim for dim in kind.dims if isinstance(dim, int))
        if len(sizes) != len(kind.dims):
            return None
        shapes.append(sizes)
    return shapes


def _splat(instruction: Instruction, literals: list[Literal], shapes: list[tuple[int, ...]]) -> list[Literal] | None:
    """The result as a splat, where every operand is one and the op keeps it so."""
    op = instruction.op
    kind = instruction.results[0].dtype
    if isinstance(op, _KEEPS_SPLAT) and literals[0].is_splat and all(shapes[0]):
        return [Literal.splat(literals[0].item(), kind, shapes[0])]
    if not isinstance(op, Pointwise) or not all(_uniform(literal) for literal in literals):
        return None
    if not any(literal.is_splat for literal in literals) or kind.kind == "string" or not all(shapes[0]):
        return None
    (element,) = _quietly(op, [literal.array().reshape(-1)[:1].reshape(()) for literal in literals])
    return [Literal.splat(element, kind, shapes[0])]


def _uniform(literal: Literal) -> bool:
    return literal.size == 1 or (literal.is_splat and literal.size > 0)


def _evaluate(instruction: Instruction, literals: list[Literal | None]) -> list[Literal]:
    arrays = [None if literal is None else literal.array() for literal in literals]
    results = _quietly(instruction.op, arrays)
    folded = []
    for value, kind in zip(results, instruction.types, strict=True):
        literal = Literal.of(value)
        if TensorType(literal.dtype, literal.shape) != kind:
            raise InternalError(
                f"{instruction.op.name} gives {literal.dtype}{list(literal.shape)}, its type is {kind}",
                where=instruction.source,
            )
        folded.append(literal)
    return folded


def _quietly(op: Op, arrays: list[Any]) -> tuple[Any, ...]:
    """Evaluate without numpy's warnings: infinities and NaN are values like any other."""
    with np.errstate(all="ignore"):
        return op.evaluate(*arrays)
