"""Products of quantised tensors become products of their codes, with int32 sums.

    dot((a - za) * sa, (b - zb) * sb) = (dot(a, b) - za * columns(b) - zb * (rows(a) - depth * za)) * (sa * sb)

with the sums of the columns of `b` and of the rows of `a`; of a convolution those of the window, for which what is
padded has the zero point as its code. All integers wrap at 32 bits, so the sums are exact where the whole sum fits, and
a product of floats is lowered only where it surely does. What belongs to constants alone is folded behind this pass.

Instructions of CPUs want codes without a sign for the values inside a program, and with one for weights where they fit;
matrix instructions of GPUs want all of them `signed`: uint8 codes and their zero points become 128 less. There 8-bit
floats are multiplied as such too, with float32 sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from argosy.ir.builder import Builder
from argosy.ir.dtype import FLOAT32, INT32, UINT8, DType
from argosy.ir.formula import Expr
from argosy.ir.module import Instruction, Module, Value
from argosy.ir.types import Dims, TensorType
from argosy.ops.convolution import Conv
from argosy.ops.matmul import Dot
from argosy.ops.pooling import Pool
from argosy.ops.quantize import Dequantize, Quantize
from argosy.ops.recurrent import Recurrent
from argosy.ops.reduce import Reduce
from argosy.ops.shapes import product
from argosy.ops.slicing import Pad
from argosy.ops.view import Reshape
from argosy.passes.manager import PassContext, register_pass
from argosy.rewrite.codes import FLOATS, INT8, VIEWS, Codes, codes_of, flipped, narrowed, origin_of, signed
from argosy.rewrite.rebuild import transform

__all__ = ["LowerQuantize"]

_W, _R, _R_SCALE, _W_SCALE = 1, 2, 8, 9
"""Operands of a recurrent layer."""
_RESIDENT: Final = 1 << 14
"""Weights of a recurrent layer that stay in the first cache as floats."""
_DEEPEST: Final = (2**31 - 1) // 255**2
"""Products of codes less their zeros whose sum fits int32, whatever they are."""


@register_pass
@dataclass(frozen=True, slots=True)
class LowerQuantize:
    """Make integer products. Unless `exact`, a quantisation multiplies by the inverse of a constant scale.

    With `signed`, both operands of a product are int8.
    """

    name = "lower_quantize"
    exact: bool = False
    signed: bool = False

    def run(self, module: Module, context: PassContext) -> Module:
        """The module with products of codes."""
        return transform(module, lambda: self._lower, context.namer)

    def _lower(self, build: Builder, instruction: Instruction) -> Sequence[Value] | None:
        op = instruction.op
        if not all(operand is None or _has_dims(operand) for operand in instruction.operands):
            return None
        build.at(instruction.source)
        if isinstance(op, Quantize):
            return self._quantize(build, instruction, op)
        if isinstance(op, Dequantize):
            return _dequantize(build, instruction, op)
        if isinstance(op, Pool):
            return _pool(build, instruction, op)
        if isinstance(op, VIEWS):
            return _view(build, instruction)
        if isinstance(op, Recurrent):
            return _recurrent(build, instruction, op)
        if isinstance(op, Dot):
            return _dot(build, instruction, all_signed=self.signed)
        return _conv(build, instruction, op, all_signed=self.signed) if isinstance(op, Conv) else None

    def _quantize(self, build: Builder, instruction: Instruction, op: Quantize) -> Sequence[Value] | None:
        x, scale = instruction.operands[:2]
        zero = instruction.operands[2] if len(instruction.operands) > 2 else None
        if x is None or scale is None or op.dtype not in (INT8, UINT8) or op.block_size:
            return None
        again = _same_codes(build, x, scale, zero, op)
        if again is not None:
            return [again]
        precise = op.precision or scale.dtype
        literal = scale.constant
        inverse = None
        if literal is not None and literal.size == 1 and x.dtype is precise is FLOAT32 and not self.exact:
            inverse = np.float32(1) / np.float32(literal.item())
        if inverse is not None and inverse != 1 and np.isfinite(inverse):
            x = build.pointwise("mul", x, build.constant(np.array(inverse, np.float32)))
            scale = build.constant(np.array(1, np.float32))
        elif op.dtype is self._inside:
            return None
        if op.dtype is self._inside:
            return [build.add(op, x, scale, zero)]
        moved = build.add(replace(op, dtype=self._inside), x, scale, _moved(build, zero, self._inside))
        return [flipped(build, moved)]

    @property
    def _inside(self) -> DType:
        """The codes of values inside a program."""
        return INT8 if self.signed else UINT8


def _has_dims(value: Value) -> bool:
    """Whether a value is a tensor of known rank; maps and sequences pass through programs too."""
    return isinstance(value.type, TensorType) and value.type.dims is not None


def _same_codes(build: Builder, x: Value, scale: Value, zero: Value | None, op: Quantize) -> Value | None:
    """The codes that `x` has already by this very scale and zero."""
    found = codes_of(build, x)
    if found is None or found.scale is None or found.axis is not None:
        return None
    moves = 0 if found.codes.dtype is op.dtype else 128 if op.dtype is INT8 else -128
    if _number(found.scale, 1.0) is None or _number(found.scale, 1.0) != _number(scale, 1.0):
        return None
    mine, its = _number(found.zero, 0), _number(zero, 0)
    if mine is None or its is None or mine != its + moves:
        return None
    return flipped(build, found.codes) if moves else found.codes


def _number(value: Value | None, default: float) -> float | None:
    """The number that a parameter is, `default` where it is absent; None where it is not known or not one."""
    if value is None:
        return default
    return float(value.constant.item()) if value.constant is not None and value.constant.size == 1 else None


def _dequantize(build: Builder, instruction: Instruction, op: Dequantize) -> Sequence[Value] | None:
    """Of codes that were made from codes of the other kind, those."""
    x, scale = instruction.operands[:2]
    zero = instruction.operands[2] if len(instruction.operands) > 2 else None
    origin = None if x is None else origin_of(x)
    if origin is None:
        return None
    return [build.add(op, origin, scale, _moved(build, zero, origin.dtype))]


def _moved(build: Builder, zero: Value | None, kind: DType) -> Value:
    """The zero point of codes of `kind` for that of codes of the other one."""
    moves = 128 if kind is UINT8 else -128
    if zero is None:
        return build.constant(np.array(moves, kind.numpy))
    if zero.constant is not None:
        return build.constant((zero.constant.array().astype(np.int32) + moves).astype(kind.numpy))
    return flipped(build, zero)


def _view(build: Builder, instruction: Instruction) -> Sequence[Value] | None:
    x = instruction.operands[0]
    origin = None if x is None else origin_of(x)
    if origin is None:
        return None
    return [flipped(build, build.add(instruction.op, origin, *instruction.operands[1:]))]


def _pool(build: Builder, instruction: Instruction, op: Pool) -> Sequence[Value] | None:
    """The greatest of codes is the code of the greatest."""
    x = instruction.operands[0]
    if op.kind != "max" or op.with_indices or x is None or not isinstance(x.instruction.op, Dequantize):
        return None
    found = codes_of(build, x)
    if found is None or found.axis is not None or found.scale is None or found.scale.constant is None:
        return None
    if not found.scale.constant.item() > 0:
        return None
    return [build.add(x.instruction.op, build.add(op, found.codes), *x.instruction.operands[1:])]


def _recurrent(build: Builder, instruction: Instruction, op: Recurrent) -> Sequence[Value] | None:
    """A layer whose weights stay in codes: all but small ones, which are as fast as floats."""
    operands = list(instruction.operands)
    if operands[0] is None or operands[0].dtype is not FLOAT32 or len(operands) > _R_SCALE:
        return None
    scales: list[Value | None] = [None, None]
    for index, scale in ((_R, _R_SCALE), (_W, _W_SCALE)):
        found = _in_rows(build, operands[index])
        if found is not None:
            operands[index], scales[scale - _R_SCALE] = found
    if scales == [None, None]:
        return None
    return build.add_all(op, *operands, *[None] * (_R_SCALE - len(operands)), *scales)


def _in_rows(build: Builder, weights: Value | None) -> tuple[Value, Value] | None:
    """Weights `[directions, rows, depth]` as int8 codes and the scales of their rows; None where they have no such."""
    if weights is None or weights.rank != 3:
        return None
    sizes = [size for size in weights.shape if isinstance(size, int)]
    if len(sizes) != 3 or math.prod(sizes) <= _RESIDENT:
        return None
    found = codes_of(build, weights)
    if found is None or found.array is None or found.scale is None:
        return None
    found = narrowed(build, found)
    literal = None if found.scale is None else found.scale.constant
    if found.zero is not None or literal is None or found.axis == 2:
        return None
    scale = literal.array().astype(np.float32)
    spread = np.broadcast_to(scale[:, None] if found.axis == 0 else scale, sizes[:2])
    return found.codes, build.constant(np.ascontiguousarray(spread))


def _dot(build: Builder, instruction: Instruction, *, all_signed: bool) -> Sequence[Value] | None:
    left, right = instruction.operands
    if left is None or right is None or left.rank < 2 or right.rank < 2:
        return None
    depth = right.shape[-2] if isinstance(right.shape[-2], int) else left.shape[-1]
    pair = _pair(build, instruction, left, right, depth, all_signed=all_signed)
    if pair is None:
        return None
    a, b = pair
    if a.axis not in (None, left.rank - 2) or b.axis not in (None, right.rank - 1):
        return None
    sums = build.add(Dot(_sums(a)), a.codes, b.codes)
    columns = rows = None
    if a.zero is not None:
        columns = _summed(build, b, (right.rank - 2,))
    if b.zero is not None:
        rows = _summed(build, a, (left.rank - 1,))
    parameters = (_spread(build, a, left.rank - 2, left.rank), _spread(build, b, right.rank - 1, right.rank))
    return [_corrected(build, sums, parameters, columns, rows, depth)]


def _conv(build: Builder, instruction: Instruction, op: Conv, *, all_signed: bool) -> Sequence[Value] | None:
    x, weight = instruction.operands[:2]
    bias = instruction.operands[2] if len(instruction.operands) > 2 else None
    if x is None or weight is None:
        return None
    depth = product(weight.shape[1:])
    pair = _pair(build, instruction, x, weight, depth, all_signed=all_signed)
    if pair is None:
        return None
    a, b = pair
    if a.axis is not None or b.axis not in (None, 0) or (b.zero is not None and op.group > 1):
        return None
    codes, plain = a.codes, replace(op, dtype=_sums(a))
    if a.zero is not None and (op.auto_pad != "explicit" or any(pad != 0 for pad in op.pads)):
        if op.auto_pad != "explicit":
            return None
        rank = x.rank - 2
        pads = (0, 0, *op.pads[:rank], 0, 0, *op.pads[rank:])
        fill = a.zero.constant.array().astype(codes.dtype.numpy) if a.zero.constant is not None else None
        value = build.convert(a.zero, codes.dtype) if fill is None else build.constant(fill)
        codes = build.add(Pad("constant", pads), codes, None, value)
        plain = replace(plain, pads=(0,) * (2 * rank))
    sums = build.add(plain, codes, b.codes)
    columns = rows = None
    if a.zero is not None:
        columns = _summed(build, b, tuple(range(1, weight.rank)), (weight.shape[0], *[1] * (weight.rank - 2)))
    if b.zero is not None:
        window = [size for size in weight.shape[1:] if isinstance(size, int)]
        if len(window) != weight.rank - 1:
            return None
        ones = build.constant(np.ones((1, *window), np.int8))
        rows = build.add(plain, codes, ones)
    parameters = (_spread(build, a, 0, 0), _spread(build, b, 1, x.rank))
    result = _corrected(build, sums, parameters, columns, rows, depth)
    if bias is not None:
        spread = build.add(Reshape((bias.shape[0], *[1] * (weight.rank - 2))), bias)
        result = build.pointwise("add", result, spread)
    return [result]


def _sums(found: Codes) -> DType:
    return FLOAT32 if found.codes.dtype.is_float else INT32


def _pair(
    build: Builder, instruction: Instruction, left: Value, right: Value, depth: Any, *, all_signed: bool
) -> tuple[Codes, Codes] | None:
    """Both operands in codes, where a product of them is one of the operands to the bit."""
    result = instruction.results[0].dtype
    if result is not INT32 and result is not FLOAT32:
        return None
    a, b = codes_of(build, left, floats=all_signed), codes_of(build, right, floats=all_signed)
    if a is not None and b is not None and a.codes.dtype in FLOATS and b.codes.dtype in FLOATS:
        return a, b
    if left.dtype is right.dtype is FLOAT32 and not (isinstance(depth, int) and depth <= _DEEPEST):
        return None
    if a is None or b is None or (a.scale is None) != (result is INT32) or (b.scale is None) != (result is INT32):
        return None
    if a.codes.dtype in FLOATS or b.codes.dtype in FLOATS:
        return None
    b = narrowed(build, b)
    if all_signed:
        a, b = signed(build, a), signed(build, b)
    if a.codes == left and b.codes == right:
        return None
    if a.zero is not None and b.zero is not None and not isinstance(depth, int):
        return None
    return a, b


def _spread(build: Builder, found: Codes, axis: int, rank: int) -> Codes:
    """The zero and the scale as they broadcast against the result."""
    zero, scale = (
        None if value is None else found.spread(build, value, axis, rank) for value in (found.zero, found.scale)
    )
    return replace(found, zero=zero, scale=scale)


def _summed(build: Builder, found: Codes, axes: tuple[int, ...], dims: Dims | None = None) -> Value:
    """Sums of codes over axes, which stay with one place, or as `dims`; of constants here and now."""
    if found.array is not None:
        total = found.array.sum(axis=axes, dtype=np.int32, keepdims=True)
        return build.constant(
            total if dims is None else total.reshape([size for size in dims if isinstance(size, int)])
        )
    sums = build.add(Reduce("sum", axes), build.convert(found.codes, INT32))
    return sums if dims is None else build.add(Reshape(dims), sums)


def _corrected(
    build: Builder, sums: Value, parameters: tuple[Codes, Codes], columns: Value | None, rows: Value | None, depth: Any
) -> Value:
    """The product of the operands from that of their codes."""
    a, b = parameters
    given = {"sums": sums, "za": a.zero, "zb": b.zero, "columns": columns, "rows": rows, "sa": a.scale, "sb": b.scale}
    present = {name: value for name, value in given.items() if value is not None}
    if len(present) == 1:
        return sums

    def formula(*values: Expr) -> Expr:
        x = dict(zip(present, values, strict=True))
        total = x["sums"]
        if "za" in x:
            moved = x["columns"] - x["zb"] * depth if "zb" in x else x["columns"]
            total = total - x["za"] * moved
        if "zb" in x:
            total = total - x["zb"] * x["rows"]
        return total.convert(FLOAT32) * (x["sa"] * x["sb"]) if "sa" in x else total

    return build.pointwise(formula, *present.values())
