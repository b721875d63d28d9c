"""Shape arithmetic: what is known of a value while compiling takes the place of its computation.

The builder tracks small values as numbers and dim expressions through `shape`, `gather`, `concat`,
arithmetic and whatever else has a meaning on dims. Where a result is known this way, its instruction becomes
a constant, or a `dims` instruction that evaluates the expressions from the sizes of the inputs. What the
computation read is then dead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from argosy.ir.builder import Builder
from argosy.ir.dim import Dim
from argosy.ir.dtype import INT32, INT64, DType
from argosy.ir.formula import Formula
from argosy.ir.literal import Literal
from argosy.ir.module import Constant, Instruction, Module, Value
from argosy.ir.op import Known
from argosy.ops.pointwise import Pointwise
from argosy.ops.view import DimValues, Reshape
from argosy.passes.manager import PassContext, register_pass
from argosy.rewrite.rebuild import transform

__all__ = ["FoldShapes"]


@register_pass
@dataclass(frozen=True, slots=True)
class FoldShapes:
    """f(known values) = dims or a constant."""

    name = "fold_shapes"

    def run(self, module: Module, context: PassContext) -> Module:
        """The module with known results in place of what computes them."""
        return transform(module, lambda: _fold, context.namer)


def _fold(build: Builder, instruction: Instruction) -> Sequence[Value] | None:
    if isinstance(instruction.op, Constant) or not instruction.types or not instruction.op.pure:
        return None
    if isinstance(instruction.op, DimValues) and any(isinstance(value, Dim) for value in instruction.op.values):
        return None
    values = []
    for result in instruction.results:
        # Floats among known values are scales of shapes; on their own they are constant folding's.
        if result.known is None or result.dtype.kind not in ("int", "uint", "bool"):
            return None
        folded = _spelt(build, result.known, result.dtype, _names(instruction, result))
        if folded is None:
            return None
        values.append(folded)
    return values


def _names(instruction: Instruction, result: Value) -> tuple[str, ...]:
    return instruction.names[result.index : result.index + 1]


def _spelt(build: Builder, known: Known, element: DType, names: tuple[str, ...]) -> Value | None:
    """Instructions that give a known value; None where its element type can't hold dims."""
    entries = tuple(known.reshape(-1).tolist())
    if not any(isinstance(entry, Dim) for entry in entries):
        plain = np.array(entries, element.numpy).reshape(known.shape)
        return build.constant(Literal.of(plain, element), name=next(iter(names), ""))
    if element not in (INT64, INT32):
        return None
    reshaped, converted = known.ndim > 1, element is not INT64
    value = build.add(DimValues(entries, scalar=known.ndim == 0), names=() if reshaped or converted else names)
    if reshaped:
        value = build.add(Reshape(known.shape, allow_zero=True), value, names=() if converted else names)
    if converted:
        value = build.add(_convert_to(element), value, names=names)
    return value


def _convert_to(element: DType) -> Pointwise:
    return Pointwise(Formula.of("convert", element))
