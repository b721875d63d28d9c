"""How many multiplications and additions ops do, by what they mean; what way a kernel goes is another matter.

A multiplication and an addition are two operations, so a product of [m, k] and [k, n] does 2 m n k (Golub and Van Loan,
Matrix Computations, 1.1); a convolution is such a product over windows, by its definition in the ONNX standard; a
recurrent layer does two products for each gate and step, by the same standard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.ir.dim import DimLike
from argosy.ir.module import Instruction, Value
from argosy.ir.types import Dims, TensorType
from argosy.ops.convolution import Conv, ConvTranspose
from argosy.ops.matmul import Dot
from argosy.ops.recurrent import Recurrent

__all__ = ["COUNTED", "Product", "products_of"]

COUNTED = (Conv, ConvTranspose, Dot, Recurrent)
"""The ops whose operations are counted."""


@dataclass(frozen=True, slots=True)
class Product:
    """A product that an instruction does: its multiplications and additions, and the operands that it is of.

    Of a recurrent layer there are two: of the input, which is one product, and of the state, which is one in each step.
    """

    operations: DimLike
    operands: tuple[Value, ...]
    is_stepwise: bool = False


def products_of(instruction: Instruction) -> Sequence[Product] | None:
    """The products of an instruction, none of an op that is not counted; None where a rank is unknown."""
    op = instruction.op
    if not isinstance(op, COUNTED):
        return ()
    present = [value for value in instruction.operands[:3] if value is not None]
    shapes = [_dims(value) for value in (*present[:2], instruction.result())]
    first, second, result = shapes
    if first is None or second is None or result is None:
        return None
    operands = tuple(present[:2])
    match op:
        case Conv():
            return (Product(_times(2, *result, *second[1:]), operands),)
        case ConvTranspose():
            return (Product(_times(2, *first, *second[1:]), operands),)
        case Dot():
            return (Product(_times(2, *result, first[-1]), operands),)
        case Recurrent():
            hidden = present[2].shape[-1]
            each = _times(2, first[0], first[1], second[0], second[1])
            return Product(each * second[2], operands), Product(each * hidden, tuple(present), is_stepwise=True)


def _dims(value: Value) -> Dims | None:
    return value.type.dims if isinstance(value.type, TensorType) else None


def _times(*factors: DimLike) -> DimLike:
    found: DimLike = 1
    for factor in factors:
        found = found * factor
    return found
