"""Matrix products and convolutions of float32 take their operands in a short float; sums and all else stay float32.

    dot(a, b) = dot[float32](convert(a), convert(b))

So weights are stored short, and so is what lies between products where nothing else reads it; with `weights_only`
that stays as it is. Weights of a product that are dequantised from 8 bits or fewer stay as they come, or with `codes`
stand for short floats. Softmax, the moments of norms, exponentials, powers and reductions are no products: their error
would grow with the type's. Inputs and outputs keep their types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from argosy.errors import InternalError
from argosy.ir.builder import Builder
from argosy.ir.dtype import FLOAT32, DType, dtype
from argosy.ir.module import Constant, Instruction, Module, Value
from argosy.ir.types import TensorType
from argosy.ops.convolution import Conv
from argosy.ops.matmul import Dot
from argosy.ops.pointwise import Pointwise
from argosy.ops.quantize import Dequantize
from argosy.passes.manager import PassContext, register_pass
from argosy.rewrite.codes import dequantized_matrix
from argosy.rewrite.rebuild import Change, transform

__all__ = ["LowerPrecision"]

_VIEWS: Final = frozenset({"reshape", "transpose", "squeeze", "unsqueeze", "split"})


@register_pass
@dataclass(frozen=True, slots=True)
class LowerPrecision:
    """Products with operands of the element type called `element`, or with weights of it."""

    name = "lower_precision"
    element: str = "bfloat16"
    weights_only: bool = False
    codes: bool = False

    def run(self, module: Module, context: PassContext) -> Module:
        """The module with its products of float32 as products of the short float."""
        return transform(module, self._change, context.namer)

    def _change(self) -> Change:
        kind = dtype(self.element)
        steady: set[Instruction] = set()

        def change(build: Builder, instruction: Instruction) -> Sequence[Value] | None:
            operands = [operand.instruction for operand in instruction.operands if operand is not None]
            if operands and all(isinstance(operand.op, Constant) or operand in steady for operand in operands):
                steady.add(instruction)
            return self._lower(build, instruction, kind, steady)

        return change

    def _lower(
        self, build: Builder, instruction: Instruction, kind: DType, steady: set[Instruction]
    ) -> Sequence[Value] | None:
        op, operands = instruction.op, list(instruction.operands)
        if not isinstance(op, (Dot, Conv)):
            return None
        coded = isinstance(op, Dot) and operands[1] is not None and _stays_in_codes(operands[1], steady)
        if coded and not self.codes:
            return None
        for place, value in enumerate(operands[:2]):
            if coded and value is not None and value.dtype is kind:
                continue
            if value is None or not isinstance(value.type, TensorType) or value.dtype is not FLOAT32:
                return None
            if coded and place == 1:
                operands[place] = _in_codes(build, value, kind)
                continue
            weight = isinstance(value.instruction.op, Constant) or value.instruction in steady
            if weight or not self.weights_only:
                operands[place] = _short(build, value, kind)
        if tuple(operands) == instruction.operands:
            return None
        return [build.add(replace(op, dtype=FLOAT32), *operands)]


def _short(build: Builder, value: Value, kind: DType) -> Value:
    """A value in the short float, converted before the views that it is seen through, where its maker may do it.

    One that was widened from the short float is that again.
    """
    made = value.instruction
    source = made.operands[0] if made.operands else None
    if source is not None and source.dtype is kind and isinstance(made.op, Pointwise) and _only_converts(made.op):
        return source
    if made.op.name not in _VIEWS or source is None or source.dtype is not FLOAT32:
        return build.convert(value, kind)
    return build.add_all(made.op, _short(build, source, kind), *made.operands[1:], source=made.source)[value.index]


def _in_codes(build: Builder, value: Value, kind: DType) -> Value:
    """A dequantised matrix, turned over or not, as one of the short float."""
    made = value.instruction
    if isinstance(made.op, Dequantize):
        return build.add(replace(made.op, dtype=kind), *made.operands, source=made.source)
    source = made.operands[0]
    if source is None:
        raise InternalError(f"{made.op.name} has no operand")
    return build.add(made.op, _in_codes(build, source, kind), source=made.source)


def _only_converts(op: Pointwise) -> bool:
    return [step.primitive for step in op.formula.steps] == ["convert"]


def _stays_in_codes(weights: Value, steady: set[Instruction]) -> bool:
    """Whether the weights of a product are shorter as they come: codes of at most 8 bits."""
    found = dequantized_matrix(weights)
    return found is not None and found.instruction in steady
