"""Emitters of quantize and dequantize, with a scale for all, for an axis, or for blocks."""

from __future__ import annotations

import ml_dtypes

from argosy.ir import dim as dims
from argosy.ir.access import Access
from argosy.ir.dim import DimLike
from argosy.ir.dtype import FLOAT32, INT32, DType
from argosy.ir.module import Instruction, Value
from argosy.ops.quantize import Dequantize, Quantize
from argosy.ops.shapes import normalize_axis
from argosy.targets.cpu.codegen.element import Elements, element
from argosy.targets.lowering.accesses import axes_access, op_of, present


def _parameter(elements: Elements, value: Value, access: Access, axis: int, block_size: int) -> str:
    """The element of a scale or zero point that belongs to an element of the tensor."""
    rank = len(access.source)
    if all(size == 1 for size in value.shape):
        indices: list[DimLike] = [0] * value.rank
    elif not block_size:
        size, index = value.shape[0], access.indices[normalize_axis(axis, rank)]
        indices = [index if isinstance(size, int) else dims.dim_min(index, size - 1)]
    else:
        indices = list(access.indices)
        place = normalize_axis(axis, rank)
        indices[place] = dims.floordiv(indices[place], block_size)
    return elements.of(value, axes_access(access.extents, value.shape, indices))


def _converted(elements: Elements, name: str, source: DType, target: DType) -> str:
    """A value of element type `source` rounded to `target`, in the compute type of that."""
    if source is target:
        return name
    return elements.let(target, elements.expression("convert", [name], [source], target))


def _is_one(value: Value) -> bool:
    """Whether a parameter is known to be 1, so that a division by it changes nothing."""
    literal = value.constant
    return literal is not None and literal.size == 1 and literal.item() == 1


@element("quantize")
def _quantize(elements: Elements, instruction: Instruction, access: Access) -> str:
    op = op_of(instruction, Quantize)
    x, scale = present(instruction, 0), present(instruction, 1)
    zero_point = instruction.operands[2] if len(instruction.operands) > 2 else None
    precise = op.precision or scale.dtype
    if not precise.is_float or precise.bits < 16:
        precise = FLOAT32
    wide = precise.compute
    quotient = _converted(elements, elements.of(x, access), x.dtype, precise)
    if not _is_one(scale):
        divisor = _parameter(elements, scale, access, op.axis, op.block_size)
        divisor = _converted(elements, divisor, scale.dtype, precise)
        quotient = elements.let(wide, f"{quotient} / {divisor}")
    if wide is not precise:
        quotient = _converted(elements, quotient, wide, precise)
    offset = elements.constant(0, wide)
    if zero_point is not None and not (op.dtype.is_float and op.dtype.bits == 8):
        zero = _parameter(elements, zero_point, access, op.axis, op.block_size)
        offset = _converted(elements, zero, zero_point.dtype, wide)
    if op.dtype.is_float:
        total = elements.let(wide, f"{quotient} + {offset}")
        if op.saturate:
            most = float(ml_dtypes.finfo(op.dtype.numpy).max)  # type: ignore[no-untyped-call]
            low, high = elements.constant(-most, wide), elements.constant(most, wide)
            total = elements.let(wide, f"{total} < {low} ? {low} : {total} > {high} ? {high} : {total}")
        return elements.let(op.dtype, elements.expression("convert", [total], [wide], op.dtype))
    bits = op.dtype.bits - (op.dtype.kind == "int")
    high = elements.constant(float(2**bits - 1), wide)
    low = elements.constant(float(-(2**bits) if op.dtype.kind == "int" else 0), wide)
    total = elements.let(wide, f"round_{wide}({quotient}) + {offset}")
    # the comparison is false for NaN, which becomes the greatest value
    bounded = elements.let(wide, f"{total} < {high} ? {total} : {high}")
    bounded = elements.let(wide, f"{bounded} > {low} ? {bounded} : {low}")
    if op.dtype.bits == 8:
        return elements.let(op.dtype, f"whole_to_{op.dtype}({bounded})")
    return elements.let(op.dtype, elements.expression("convert", [bounded], [wide], op.dtype))


@element("dequantize")
def _dequantize(elements: Elements, instruction: Instruction, access: Access) -> str:
    op = op_of(instruction, Dequantize)
    x, scale = present(instruction, 0), present(instruction, 1)
    zero_point = instruction.operands[2] if len(instruction.operands) > 2 else None
    whole = INT32 if x.dtype.is_integer else FLOAT32
    value = _converted(elements, elements.of(x, access), x.dtype, whole)
    if zero_point is not None:
        zero = _parameter(elements, zero_point, access, op.axis, op.block_size)
        zero = _converted(elements, zero, zero_point.dtype, whole)
        value = elements.let(whole, elements.expression("sub", [value, zero], [whole, whole], whole))
    factor = _parameter(elements, scale, access, op.axis, op.block_size)
    factor = _converted(elements, factor, scale.dtype, FLOAT32)
    product = elements.let(FLOAT32, f"{_converted(elements, value, whole, FLOAT32)} * {factor}")
    return elements.let(op.dtype, elements.expression("convert", [product], [FLOAT32], op.dtype))
