"""Elements below a byte on the border: several to a byte outside, one to a byte between kernels."""

from __future__ import annotations

from typing import Final

from argosy.ir.dtype import UINT8
from argosy.ir.module import Instruction, Module, Parameter
from argosy.ir.types import TensorType
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen.kernel import Kernel, chunk_count
from argosy.targets.cpu.codegen.op_kernel import OpKernel

__all__ = ["pack_kernel", "unpack_kernel"]

_GROUPS: Final = {2: (4, 1), 4: (2, 1), 6: (4, 3)}
"""By width in bits: how many codes fill how many bytes."""


def _frame(kind: TensorType) -> OpKernel:
    """A kernel over bytes, whose operand has the dims of `kind`."""
    parameter = Instruction(Parameter(kind), (), (kind.with_dtype(UINT8),), (None,), ("x",))
    return OpKernel(Module("packing", (parameter,), (parameter,), (), ()), [UINT8])


def unpack_kernel(kind: TensorType) -> Kernel:
    """The codes of a tensor one to a byte."""
    kernel = _frame(kind)
    total = product(kind.dims or ())
    with kernel.share("i", kernel.text.dim(total)):
        kernel.text.line(f"y0[i] = unpack_{kind.dtype.bits}(x0, i);")
    return kernel.kernel(chunk_count(total * 4, total)).labelled("unpack")


def pack_kernel(kind: TensorType) -> Kernel:
    """The codes of a tensor as ONNX packs them, the first in the low bits; what is left of the last byte is zero."""
    kernel = _frame(kind)
    bits = kind.dtype.bits
    codes, width = _GROUPS[bits]
    total = product(kind.dims or ())
    count = kernel.text.let("int64", kernel.text.dim(total))
    size = kernel.text.let("int64", f"({count} * {bits} + 7) / 8")
    with kernel.share("group", f"({count} + {codes - 1}) / {codes}"):
        kernel.code(
            f"""
uint32 word = 0;
for (int64 k = 0; k < {codes} && group * {codes} + k < {count}; ++k)
  word |= (uint32)(x0[group * {codes} + k] & {(1 << bits) - 1}) << ({bits} * k);
for (int64 k = 0; k < {width} && group * {width} + k < {size}; ++k)
  y0[group * {width} + k] = (uint8)(word >> (8 * k));"""
        )
    return kernel.kernel(chunk_count(total * 4, total)).labelled("pack")
