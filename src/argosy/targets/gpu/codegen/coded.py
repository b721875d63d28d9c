"""Right operands of products that stay in codes of 2, 4 or 8 bits: how their bytes lie, and the kernel that packs them.

The inner axis is cut into *units*. A unit of a column is `stretch` bytes; the lowest bits of those bytes are its first
`stretch` codes, the next bits the next ones. So one load of bytes gives several tiles of codes, each of neighbours
along the inner axis that share a scale, and none is moved between lanes. Units of all columns lie beside each other:
`[units][columns][stretch]`. Codes lie without a sign; those with one, and their zero points, are raised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from argosy.ir import dim as dims
from argosy.ir.access import Access
from argosy.ir.dim import DimLike, ceildiv
from argosy.ir.dtype import UINT8
from argosy.ir.module import Instruction, Module, Parameter, Value
from argosy.ir.types import TensorType
from argosy.rewrite.codes import is_single
from argosy.targets.gpu.codegen.element import Elements
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.lowering.accesses import DeclinedError, axes_access
from argosy.targets.lowering.coded_weights import coded_matrix, shared_block

__all__ = ["CodedRight", "pack_codes"]

_WIDTHS: Final = (2, 4, 8)
_LEAST: Final = 16
_MOST: Final = 64
"""Codes of a stretch: what matrix instructions take at once, and what keeps enough tiles in flight."""
_BLOCK: Final = 1024
_POWER: Final = 0x4B000000
"""2^23 as a float32, in whose lowest bits a code is exactly that much more."""


@dataclass(frozen=True, slots=True)
class CodedRight:
    """A matrix `[depth, columns]` as `(codes - zero) * scale`, whose codes are `[columns, depth]` where `turned`.

    `block` numbers of the depth share a scale and a zero point; all of it where that is 0.
    """

    codes: Value
    scale: Value
    zero: Value | None
    turned: bool
    block: int
    depth: int
    columns: int

    @staticmethod
    def of(right: Value) -> CodedRight:
        """The codes of a right operand. Raises DeclinedError where it is no dequantisation of a parameter."""
        found, depth, columns = coded_matrix(right, short=True)
        codes, scale, zero, turned = found.codes, found.scale, found.zero, found.turned
        if codes.dtype.bits not in _WIDTHS or not isinstance(codes.instruction.op, Parameter):
            raise DeclinedError(f"{codes.dtype} is not packed")
        block = shared_block(found)
        coded = CodedRight(codes, scale, zero, turned, block, depth, columns)
        if block % coded.stretch:
            raise DeclinedError(f"a block of {block} has no even parts")
        return coded

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return self.codes.dtype.bits

    @property
    def planes(self) -> int:
        """Codes to a byte."""
        return 8 // self.bits

    @property
    def stretch(self) -> int:
        """Neighbouring codes that share a scale: bytes of a unit."""
        size = _MOST
        while size > _LEAST and (self.block % size or size * self.planes >= 2 * self.depth):
            size //= 2
        return size

    @property
    def unit(self) -> int:
        """Codes of a unit."""
        return self.stretch * self.planes

    @property
    def units(self) -> int:
        """Units of a column."""
        return -(-self.depth // self.unit)

    @property
    def raised(self) -> int:
        """What is added to a code with a sign so that it has none."""
        return 1 << (self.bits - 1) if self.codes.dtype.kind == "int" else 0

    @property
    def packed(self) -> TensorType:
        """The type of the buffer of bytes."""
        return TensorType(UINT8, (self.units, self.columns, self.stretch))

    def parameter(self, elements: Elements, value: Value, space: Access, k: DimLike, column: DimLike) -> str:
        """The scale or the zero point of the stretch that begins at place `k`, over the axes of `space`."""
        if is_single(value):
            return elements.of(value, axes_access(space.extents, value.shape, [0] * value.rank))
        block: DimLike = 0
        if value.rank > 1 and self.block:
            block = dims.floordiv(k, self.block)
            blocks = value.shape[int(self.turned)]
            if self.depth % self.unit and isinstance(blocks, int):
                block = dims.dim_min(block, blocks - 1)
        both = (column, block) if self.turned else (block, column)
        return elements.of(value, axes_access(space.extents, value.shape, both if value.rank > 1 else (column,)))

    def numbers(self, byte: str, plane: int, zero: str) -> str:
        """The codes at a place of their bytes (int32) less their zero point, as float32: `zero` is 2^23 more."""
        code = f"({byte} >> {plane * self.bits})" if plane else byte
        return f"(({code} & {(1 << self.bits) - 1}) | {_POWER}).to(tl.float32, bitcast=True) - {zero}"

    def zero_point(self, elements: Elements, space: Access, k: DimLike, column: DimLike) -> str:
        """The zero point of a stretch, as `numbers` wants it."""
        base = float(2**23 + self.raised)
        if self.zero is None:
            return repr(base)
        return elements.let(f"{self.parameter(elements, self.zero, space, k, column)}.to(tl.float32) + {base}")


def pack_codes(coded: CodedRight) -> Kernel:
    """The kernel that packs codes, one to a byte, as `CodedRight` says. Those beyond the last are 0."""
    kind = coded.codes.tensor
    parameter = Instruction(Parameter(kind), (), (kind,), (None,), ("codes",))
    result = Instruction(Parameter(coded.packed), (), (coded.packed,), (None,), ("packed",))
    writer = KernelWriter(Module("pack", (parameter,), (), (result.result(),), ("packed",)), (None,))
    text, size = writer.text, coded.units * coded.columns * coded.stretch
    text.line(f"i = {writer.program()} * {_BLOCK} + tl.arange(0, {_BLOCK})")
    text.line(f"inside = i < {size}")
    text.line(f"first = i // {coded.stretch * coded.columns} * {coded.unit} + i % {coded.stretch}")
    text.line(f"column = i // {coded.stretch} % {coded.columns}")
    text.line(f"byte = tl.zeros([{_BLOCK}], tl.int32)")
    for plane in range(coded.planes):
        text.line(f"k = first + {plane * coded.stretch}")
        at = f"column * {coded.depth} + k" if coded.turned else f"k * {coded.columns} + column"
        text.line(f"code = tl.load(p0 + {at}, mask=inside & (k < {coded.depth}), other=0).to(tl.int32)")
        text.line(f"byte = byte | (((code + {coded.raised}) & {(1 << coded.bits) - 1}) << {plane * coded.bits})")
    text.line("tl.store(p1 + i, byte.to(tl.uint8), mask=inside)")
    return writer.kernel(Launch((ceildiv(size, _BLOCK), 1, 1), 4)).labelled("pack_codes")
