"""What a value is in 8-bit codes: `(codes - zero) * scale`, found behind dequantisations, zero points and views."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from argosy.ir.builder import Builder
from argosy.ir.dim import DimLike
from argosy.ir.dtype import DTYPES, FLOAT32, INT32, UINT8, Array, DType
from argosy.ir.formula import Constant, Formula
from argosy.ir.module import Instruction, Value
from argosy.ops.pointwise import Pointwise
from argosy.ops.quantize import Dequantize
from argosy.ops.shapes import normalize_axis, product
from argosy.ops.view import Reshape, Squeeze, Transpose, Unsqueeze

__all__ = [
    "FLOATS",
    "INT8",
    "VIEWS",
    "Codes",
    "DequantizedMatrix",
    "codes_of",
    "dequantized_matrix",
    "flipped",
    "is_single",
    "narrowed",
    "origin_of",
    "signed",
]

INT8: Final = DTYPES["int8"]
_BYTES: Final = (INT8, UINT8)
FLOATS: Final = frozenset(DTYPES[f"float8_{name}"] for name in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz"))
"""Floats of 8 bits that products take as they are."""
VIEWS: Final = (Reshape, Squeeze, Transpose, Unsqueeze)
"""Ops under which codes are those of their operand, in another order."""
_BYTE: Final = 8
_HALF: Final = 128
_FLIPS: Final = {
    UINT8: Formula.trace(lambda x: (x.convert(INT32) - _HALF).convert(INT8), 1),
    INT8: Formula.trace(lambda x: (x.convert(INT32) + _HALF).convert(UINT8), 1),
}
"""Codes without a sign as those with one, which are 128 less, and the other way."""


@dataclass(frozen=True, slots=True)
class Codes:
    """A value as `(codes - zero) * scale`.

    `codes` are int8 or uint8, or one of `FLOATS` where asked for: those have no zero. An absent zero is 0,
    an absent scale 1. They are scalars, or vectors along `axis`.
    `array` has the codes where they are constant.
    """

    codes: Value
    zero: Value | None = None
    scale: Value | None = None
    axis: int | None = None
    array: Array | None = None

    def spread(self, build: Builder, parameter: Value, axis: int, rank: int) -> Value:
        """A zero or scale to broadcast against a tensor of `rank`: a vector stands at `axis`."""
        if self.axis is None:
            return parameter
        if rank - axis == 1:
            return parameter
        if parameter.constant is not None:
            return build.constant(parameter.constant.array().reshape(-1, *[1] * (rank - axis - 1)))
        return build.add(Reshape((parameter.shape[0], *[1] * (rank - axis - 1))), parameter)


@dataclass(frozen=True, slots=True)
class DequantizedMatrix:
    """`(codes - zero) * scale`, where `turned` its transpose; what `scale` and `zero` belong to says `Dequantize`."""

    instruction: Instruction
    axis: int
    block_size: int
    codes: Value
    scale: Value
    zero: Value | None
    turned: bool


def flipped(build: Builder, codes: Value) -> Value:
    """int8 codes for uint8 ones, 128 less, or the other way: the same numbers by a zero point that moves with them."""
    return build.pointwise(_FLIPS[codes.dtype], codes)


def origin_of(value: Value) -> Value | None:
    """The codes that `value` was made from by `flipped`; None where it was not."""
    op, operands = value.instruction.op, value.instruction.operands
    if not isinstance(op, Pointwise) or len(operands) != 1 or operands[0] is None:
        return None
    return operands[0] if op.formula == _FLIPS.get(operands[0].dtype) else None


def signed(build: Builder, found: Codes) -> Codes:
    """A value in int8 codes."""
    if found.codes.dtype is INT8:
        return found
    array = None if found.array is None else (found.array.astype(np.int16) - _HALF).astype(np.int8)
    codes = flipped(build, found.codes)
    if found.zero is None:
        zero = build.constant(np.array(-_HALF, np.int32))
    elif found.zero.constant is not None:
        zero = build.constant(found.zero.constant.array() - np.int32(_HALF))
    else:
        zero = build.pointwise(lambda z: z - _HALF, found.zero)
    return replace(found, codes=codes, zero=zero, array=array)


def codes_of(build: Builder, value: Value, *, floats: bool = False) -> Codes | None:
    """A value in codes, or in 8-bit `floats` too; None where it has none. Adds what it takes to `build`."""
    instruction = value.instruction
    op = instruction.op
    if value.dtype in _BYTES:
        origin = origin_of(value)
        if origin is not None:
            return Codes(origin, build.constant(np.array(_HALF if value.dtype is INT8 else -_HALF, np.int32)))
        return _plain(value, None, None, None)
    if isinstance(op, Dequantize):
        return _dequantized(build, instruction, op, (*_BYTES, *FLOATS) if floats else _BYTES)
    if isinstance(op, VIEWS) and instruction.operands[0] is not None:
        inner = codes_of(build, instruction.operands[0], floats=floats)
        return None if inner is None else _viewed(build, inner, instruction)
    if value.dtype is INT32 and value.constant is not None:
        return _counted(build, value.constant.array())
    if isinstance(op, Pointwise) and value.dtype is INT32:
        return _moved(build, instruction, op)
    return None


def narrowed(build: Builder, found: Codes) -> Codes:
    """Constant codes with their zero taken away, as int8, where they fit it; else as they are."""
    if found.array is None or (found.zero is not None and found.zero.constant is None):
        return found
    numbers = found.array.astype(np.int32)
    if found.zero is not None and found.zero.constant is not None:
        zero = found.zero.constant.array().astype(np.int32)
        axis = found.axis or 0
        numbers = numbers - zero.reshape([-1 if place == axis else 1 for place in range(numbers.ndim)])
    if found.zero is None and found.codes.dtype is INT8:
        return found
    if not numbers.size or numbers.min() < -_HALF or numbers.max() >= _HALF:
        return found
    if found.zero is None:
        codes = build.convert(found.codes, INT8)
    else:
        zero_value = found.spread(build, found.zero, found.axis or 0, found.codes.rank)
        codes = build.pointwise(lambda x, z: (x.convert(INT32) - z).convert(INT8), found.codes, zero_value)
    axis_left = found.axis if found.scale is not None and found.scale.rank else None
    return Codes(codes, None, found.scale, axis_left, numbers.astype(np.int8))


def _plain(codes: Value, zero: Value | None, scale: Value | None, axis: int | None) -> Codes:
    literal = codes.constant
    return Codes(codes, zero, scale, axis, None if literal is None else literal.array())


def _dequantized(build: Builder, instruction: Instruction, op: Dequantize, kinds: Sequence[DType]) -> Codes | None:
    x, scale = instruction.operands[:2]
    zero = instruction.operands[2] if len(instruction.operands) > 2 else None
    if x is None or scale is None or x.dtype not in kinds or op.block_size or op.dtype is not FLOAT32:
        return None
    if zero is not None and _is_zero(zero):
        zero = None
    if zero is not None and x.dtype in FLOATS:
        return None
    parameters = [value for value in (scale, zero) if value is not None]
    single = all(is_single(value) for value in parameters)
    if not single and any(value.rank != 1 for value in parameters if not is_single(value)):
        return None
    axis = None if single else normalize_axis(op.axis, x.rank)
    scale = _parameter(build, scale, FLOAT32, axis)
    zero = None if zero is None else _parameter(build, zero, INT32, axis)
    return _plain(x, zero, scale, axis)


def _parameter(build: Builder, value: Value, dtype: DType, axis: int | None) -> Value:
    """A scalar where there is no axis, else a vector along it, a single number too; in `dtype`."""
    dims: tuple[DimLike, ...] = () if axis is None else (product(value.shape),)
    if value.constant is not None:
        return build.constant(value.constant.array().astype(dtype.numpy).reshape([-1] * len(dims)))
    value = build.convert(value, dtype)
    return value if value.shape == dims else build.add(Reshape(dims), value)


def _viewed(build: Builder, inner: Codes, instruction: Instruction) -> Codes | None:
    op, axis = instruction.op, inner.axis
    if axis is not None:
        if not isinstance(op, Transpose):
            return None
        axis = instruction.results[0].rank - 1 - axis if op.permutation is None else op.permutation.index(axis)
    codes = build.add(op, inner.codes, *instruction.operands[1:])
    array = inner.array
    if array is not None:
        array = op.evaluate(array)[0] if len(instruction.operands) == 1 else None
    return replace(inner, codes=codes, axis=axis, array=array)


def _counted(build: Builder, numbers: Array) -> Codes | None:
    """Constant int32 numbers that are no further apart than codes can be."""
    if not numbers.size or not numbers.ndim:
        return None
    low, high = int(numbers.min()), int(numbers.max())
    if high - low > 2 * _HALF - 1:
        return None
    shift = max(0, high - (_HALF - 1)) or min(0, low + _HALF)
    codes = (numbers - shift).astype(np.int8)
    zero = build.constant(np.array(-shift, np.int32)) if shift else None
    return Codes(build.constant(codes), zero, None, None, codes)


def _moved(build: Builder, instruction: Instruction, op: Pointwise) -> Codes | None:
    """`convert(x) - convert(zero)`, of which either may be int32 already or a number."""
    steps, operands = op.formula.steps, instruction.operands
    x = operands[0]
    if x is None or x.dtype not in _BYTES or steps[0].primitive != "convert" or steps[0].args != (0,):
        return None
    if len(steps) == 1:
        return _plain(x, None, None, None)
    last = steps[-1]
    arity = op.formula.arity
    if last.primitive != "sub" or last.args[0] != arity or instruction.types[0] != x.type.with_dtype(INT32):  # type: ignore[union-attr]
        return None
    behind = last.args[1]
    if isinstance(behind, Constant) and len(steps) == 2:
        return _plain(x, build.constant(np.array(behind.value, np.int32)), None, None)
    zero = operands[1] if arity == 2 else None
    if zero is None or len(steps) > 3:
        return None
    if len(steps) == 3 and (steps[1].primitive, steps[1].args, behind) != ("convert", (1,), arity + 1):
        return None
    if len(steps) == 2 and behind != 1:
        return None
    axis = _axis_of(zero, x.rank)
    if axis is None:
        return None
    along = None if axis < 0 else axis
    return _plain(x, _parameter(build, zero, INT32, along), None, along)


def _axis_of(zero: Value, rank: int) -> int | None:
    """The axis of a tensor of `rank` along which a broadcast value varies, -1 for none; None for several."""
    axes = [
        rank - zero.rank + place for place, size in enumerate(zero.shape) if not (isinstance(size, int) and size == 1)
    ]
    if not axes:
        return -1
    return axes[0] if len(axes) == 1 and axes[0] >= 0 else None


def dequantized_matrix(value: Value, *, short: bool = False) -> DequantizedMatrix | None:
    """How a matrix of float32 comes from codes of at most 8 bits, turned over or not; None where it does not.

    With `short`, a matrix of float16 or bfloat16 as well.
    """
    instruction, turned = value.instruction, False
    while isinstance(instruction.op, Transpose) and instruction.operands[0] is not None:
        instruction, turned = instruction.operands[0].instruction, not turned
    op = instruction.op
    if not isinstance(op, Dequantize) or not (op.dtype is FLOAT32 or (short and op.dtype.bits == 2 * _BYTE)):
        return None
    codes, scale, zero = (*instruction.operands, None)[:3]
    if codes is None or scale is None or codes.dtype.bits > _BYTE or not codes.dtype.is_integer or codes.rank != 2:
        return None
    return DequantizedMatrix(instruction, op.axis % 2, op.block_size, codes, scale, zero, turned)


def is_single(value: Value) -> bool:
    """Whether a value has one element."""
    return all(isinstance(size, int) and size == 1 for size in value.shape)


def _is_zero(value: Value) -> bool:
    literal = value.constant
    return literal is not None and math.prod(literal.shape) > 0 and not literal.array().any()
