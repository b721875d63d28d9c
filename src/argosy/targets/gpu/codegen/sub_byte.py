"""Kernels between elements of several to a byte, as the outside sees them, and of one to a byte, as kernels do."""

from __future__ import annotations

from typing import Final

from argosy.ir.dim import ceildiv
from argosy.ir.dtype import UINT8
from argosy.ir.module import Instruction, Module, Parameter
from argosy.ir.types import TensorType
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch

__all__ = ["pack_kernel", "unpack_kernel"]

_BLOCK: Final = 256


def _writer(kind: TensorType) -> KernelWriter:
    own = kind.with_dtype(UINT8)
    parameter = Instruction(Parameter(own), (), (own,), (None,), ("x",))
    return KernelWriter(Module("codes", (parameter,), (), (parameter.result(),), ("y",)), (None,))


def unpack_kernel(kind: TensorType) -> Kernel:
    """Gives each element of a tensor a byte. Codes are a stream of bits, the lowest of each byte first."""
    writer = _writer(kind)
    text, bits, count = writer.text, kind.dtype.bits, product(kind.shape)
    text.line(f"i = {writer.program()} * {_BLOCK} + tl.arange(0, {_BLOCK})")
    text.line(f"inside = i < {text.dim(count)}")
    text.line(f"first = i * {bits} // 8")
    text.line(f"shift = i * {bits} % 8")
    text.line("code = tl.load(p0 + first, mask=inside, other=0).to(tl.int32) >> shift")
    if 8 % bits:
        text.line(f"more = inside & (shift > {8 - bits})")
        text.line("code = code | (tl.load(p0 + first + 1, mask=more, other=0).to(tl.int32) << (8 - shift))")
    text.line(f"tl.store(p1 + i, (code & {(1 << bits) - 1}).to(tl.uint8), mask=inside)")
    return writer.kernel(Launch((ceildiv(count, _BLOCK), 1, 1), 2)).labelled("unpack")


def pack_kernel(kind: TensorType) -> Kernel:
    """Puts the elements of a tensor together, several to a byte."""
    writer = _writer(kind)
    text, bits, count = writer.text, kind.dtype.bits, product(kind.shape)
    total = ceildiv(count * bits, 8)
    text.line(f"i = {writer.program()} * {_BLOCK} + tl.arange(0, {_BLOCK})")
    text.line(f"inside = i < {text.dim(total)}")
    text.line(f"code = tl.zeros([{_BLOCK}], tl.int32)")
    # Of the codes that have bits in a byte, the first begins at or before it.
    text.line(f"first = i * 8 // {bits}")
    for place in range(-(-8 // bits) + bool(8 % bits)):
        text.line(f"own = inside & (first + {place} < {text.dim(count)})")
        text.line(f"low = (first + {place}) * {bits} - i * 8")
        text.line(f"part = tl.load(p0 + first + {place}, mask=own, other=0).to(tl.int32) & {(1 << bits) - 1}")
        text.line("code = code | tl.where(low >= 0, part << tl.maximum(low, 0), part >> tl.maximum(-low, 0))")
    text.line("tl.store(p1 + i, (code & 255).to(tl.uint8), mask=inside)")
    return writer.kernel(Launch((ceildiv(total, _BLOCK), 1, 1), 2)).labelled("pack")
