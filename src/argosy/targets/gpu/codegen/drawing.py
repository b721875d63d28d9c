"""Random numbers as Triton: Philox of the element and the draw, then uniform or normal numbers.

The bits are those of every target: floats are computed operation by operation as `ops/random.py` and
`ops/box_muller.py` have it, in float64 and without fused additions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from argosy.ir.dtype import FLOAT64, INT64
from argosy.ir.module import Module
from argosy.ir.philox import MULTIPLIERS, ROUNDS, WEYL
from argosy.ops.box_muller import COSINE, LOG_2, LOGARITHM, ROOT_HALF, SINE, STEP
from argosy.ops.numpy_scalar import convert
from argosy.ops.random import Random
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.op_kernel import OpKernel
from argosy.targets.lowering.accesses import op_of

__all__ = ["random_kernel"]

_WORD: Final = 0xFFFFFFFF


def random_kernel(module: Module) -> Kernel:
    """The kernel of a `random`; its temporary is the number of the draw."""
    result = module.results[0]
    kernel = OpKernel(module, temporaries=[INT64])
    op = op_of(kernel.instruction, Random)
    kernel.items(product(result.shape))
    _philox(kernel, op.seed & _WORD, op.node & _WORD)
    first = scalar.constant(op.first, FLOAT64)
    if op.distribution == "uniform":
        kernel.text.line("bits = (w0 << 21) ^ (w1 >> 11)")
        width = scalar.constant(op.second - op.first, FLOAT64)
        drawn = f"{first} + (bits.to(tl.float64) * {scalar.constant(2.0**-53, FLOAT64)}) * {width}"
    else:
        drawn = f"{first} + {scalar.constant(op.second, FLOAT64)} * {_normal(kernel)}"
    value = kernel.text.let(scalar.apply("convert", [kernel.text.let(drawn)], [FLOAT64], result.dtype))
    if op.distribution == "uniform" and result.dtype is not FLOAT64 and op.second > op.first:
        # rounding must not reach the end of the half-open interval
        end, start = (convert(np.asarray(number), result.dtype) for number in (op.second, op.first))
        value = f"tl.minimum({value}, {scalar.constant(np.nextafter(end, start), result.dtype)})"
    kernel.put("i", value)
    return kernel.finished()


def _philox(kernel: OpKernel, low: int, high: int) -> None:
    """Four words of 32 bits in uint64, `w0` to `w3`, for the counter (element, draw) and a key."""
    text = kernel.text
    text.line(f"draw = tl.load({kernel.temporary(0)}).to(tl.uint64)")
    text.line("place = i.to(tl.uint64)")
    text.line(f"w0, w1 = place & {_WORD}, place >> 32")
    text.line(f"w2, w3 = (w0 & 0) + (draw & {_WORD}), (w0 & 0) + (draw >> 32)")
    for _ in range(ROUNDS):
        text.line(f"left, right = w0 * {MULTIPLIERS[0]}, w2 * {MULTIPLIERS[1]}")
        text.line(
            f"w0, w1, w2, w3 = (right >> 32) ^ w1 ^ {low}, right & {_WORD}, (left >> 32) ^ w3 ^ {high}, left & {_WORD}"
        )
        low, high = (low + WEYL[0]) & _WORD, (high + WEYL[1]) & _WORD


def _normal(kernel: OpKernel) -> str:
    """A normal number from the first two words, by the method of Box and Muller."""
    text = kernel.text
    number = {name: scalar.constant(value, FLOAT64) for name, value in (("one", 1.0), ("two", 2.0))}
    root_half, log_2, step = (scalar.constant(value, FLOAT64) for value in (ROOT_HALF, LOG_2, STEP))
    # the logarithm of (w0 + 1) / 2^32
    text.line("bits = (w0 + 1).to(tl.float64).to(tl.int64, bitcast=True)")
    text.line("exponent = (bits >> 52) - 1022 - 32")
    text.line(f"mantissa = ((bits & {(1 << 52) - 1}) | {0x3FE << 52}).to(tl.float64, bitcast=True)")
    text.line(f"low = mantissa < {root_half}")
    text.line("mantissa = tl.where(low, mantissa + mantissa, mantissa)")
    text.line("exponent = tl.where(low, exponent - 1, exponent)")
    text.line(f"s = (mantissa - {number['one']}) / (mantissa + {number['one']})")
    logarithm = text.let(f"exponent.to(tl.float64) * {log_2} + s * {_series(kernel, LOGARITHM, 's * s')}")
    # the cosine of 2 pi w1 / 2^32: the octant is told from the bits
    quarter = 1 << 30
    text.line(f"quarter, rest = w1 >> 30, w1 & {quarter - 1}")
    text.line(f"far = rest > {quarter // 2}")
    text.line(f"angle = tl.where(far, {quarter} - rest, rest).to(tl.float64) * {step}")
    square = text.let("angle * angle")
    sine, cosine = text.let(f"angle * {_series(kernel, SINE, square)}"), _series(kernel, COSINE, square)
    text.line(f"turned = tl.where(far == ((quarter & 1) != 0), {cosine}, {sine})")
    text.line("turned = tl.where((quarter == 1) | (quarter == 2), -turned, turned)")
    return text.let(f"libdevice.sqrt(-{number['two']} * {logarithm}) * turned")


def _series(kernel: OpKernel, coefficients: Sequence[float], x: str) -> str:
    """The polynomial of `x`, from the highest power down."""
    place = kernel.text.let(x)
    total = scalar.constant(coefficients[-1], FLOAT64)
    for coefficient in coefficients[-2::-1]:
        total = kernel.text.let(f"{total} * {place} + {scalar.constant(coefficient, FLOAT64)}")
    return total
