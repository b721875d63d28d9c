"""Right operands of products that stay in codes of 2, 4 or 8 bits: panels of codes and scales, and how they are packed.

A panel is records that follow each other in memory, read from the first byte to the last. A record is `unit` numbers
of the depth, which share a scale in every column: the scales of the columns, their zero points where there are any
but one, and words of 32 bits `[unit / codes][columns]`, each with the neighbouring codes of one column, the first in
the low bits. Codes lie without a sign: of those with one the highest bit is turned over, and of their zero points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from argosy.ir.access import Access
from argosy.ir.dim import DimLike
from argosy.ir.dtype import UINT8
from argosy.ir.module import Value
from argosy.rewrite.codes import is_single
from argosy.targets.cpu.arch import CpuArch
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.copying import share
from argosy.targets.cpu.codegen.kernel import Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.part import Part
from argosy.targets.cpu.codegen.product_loops import counter
from argosy.targets.cpu.codegen.tile import BLOCK, Tile
from argosy.targets.cpu.codegen.vector_elements import KINDS
from argosy.targets.lowering.accesses import DeclinedError, axes_access
from argosy.targets.lowering.coded_weights import coded_matrix, shared_block

__all__ = ["QuantizedPanels", "pack_codes"]

_WORD: Final = 32
"""Bits of a word of codes."""
_WIDTHS: Final = (2, 4, 8)
_LONGEST: Final = 1024
"""Numbers of a record, at most."""
_SHARED: Final = 512
"""Numbers of a record where one scale serves all of the depth."""


@dataclass(frozen=True, slots=True)
class QuantizedPanels:
    """A matrix `[depth, columns]` as `(codes - zero) * scale`, whose codes are `[columns, depth]` where `turned`.

    `block` numbers of the depth share a scale and a zero point, all of it where that is 0. A vector of 16 columns is
    `width` of the level's `registers`.
    """

    codes: Value
    scale: Value
    zero: Value | None
    turned: bool
    block: int
    depth: int
    columns: int
    tile: Tile
    registers: int
    width: int

    @staticmethod
    def of(right: Value, tile: Tile, arch: CpuArch) -> QuantizedPanels:
        """The panels of a right operand. Raises DeclinedError where it is no dequantisation that they can hold."""
        found, depth, columns = coded_matrix(right)
        codes, scale, zero, turned = found.codes, found.scale, found.zero, found.turned
        if (
            codes.dtype.bits not in _WIDTHS
            or not codes.dtype.is_integer
            or scale.dtype.kind != "float"
            or scale.dtype not in KINDS
        ):
            raise DeclinedError(f"there are no panels of {codes.dtype} with scales of {scale.dtype}")
        block = shared_block(found)
        width = max(1, BLOCK * 32 // arch.vector_bits)
        panels = QuantizedPanels(codes, scale, zero, turned, block, depth, columns, tile, arch.vector_registers, width)
        if not panels.unit:
            raise DeclinedError(f"a block of {block} has no even parts")
        return panels

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return self.codes.dtype.bits

    @property
    def unit(self) -> int:
        """Numbers of a record: those of a block, or an even part of a long one; 0 where there is none."""
        if not self.block or self.block >= self.depth:
            return min(_SHARED, -(-self.depth // BLOCK) * BLOCK)
        fitting = (self.block // parts for parts in range(1, self.block // BLOCK + 2) if self.block % parts == 0)
        return next((size for size in fitting if size <= _LONGEST), 0)

    @property
    def few(self) -> int:
        """Rows that are multiplied with the codes as they come; for more, codes become a panel of floats first."""
        return max(1, self.registers // (2 * self.tile.vectors * self.width))

    @property
    def per_word(self) -> int:
        """Codes to a word."""
        return _WORD // self.bits

    @property
    def middle(self) -> int:
        """What is added to a code with a sign so that it has none."""
        return 1 << (self.bits - 1) if self.codes.dtype.kind == "int" else 0

    @property
    def one_zero(self) -> int | None:
        """The zero point of all codes as they lie; None where records have zero points."""
        if self.zero is None:
            return self.middle
        literal = self.zero.constant
        return int(literal.item()) + self.middle if literal is not None and literal.size == 1 else None

    @property
    def zeros_at(self) -> int:
        """Bytes of a record before its zero points."""
        return self.tile.columns * self.scale.dtype.bits // 8

    @property
    def words_at(self) -> int:
        """Bytes of a record before its words."""
        return self.zeros_at + (self.tile.columns if self.one_zero is None else 0)

    @property
    def words(self) -> int:
        """Words of a column of a record."""
        return -(-self.unit // self.per_word)

    @property
    def record(self) -> int:
        """Bytes of a record."""
        return self.words_at + self.words * self.tile.columns * 4

    @property
    def records(self) -> int:
        """Records of a panel."""
        return -(-self.depth // self.unit)

    @property
    def panels(self) -> int:
        """Panels beside each other."""
        return -(-self.columns // self.tile.columns)

    def parameter_access(self, parameter: Value, extents: Sequence[DimLike], k: DimLike, column: DimLike) -> Access:
        """Where the scale or the zero point of a code lies."""
        if is_single(parameter):
            return axes_access(extents, parameter.shape, [0] * parameter.rank)
        block = k // self.block if self.block else 0
        both = (column, block) if self.turned else (block, column)
        return axes_access(extents, parameter.shape, both if parameter.rank == 2 else (column,))


def pack_codes(part: Part, panels: QuantizedPanels) -> Kernel:
    """The kernel that writes the panels, from the part of a module that computes codes, scales and zero points.

    Columns beyond the last are the last one again; codes beyond the last are 0.
    """
    writer = KernelWriter(part.module, [UINT8])
    text, tile, bits = writer.text, panels.tile, panels.bits
    extents = (panels.depth, panels.columns)
    k, column = counter("k", panels.depth), counter("column", panels.columns)

    def element(value: Value, access: Access) -> str:
        return writer.elements.of(value, access)

    with share(writer, "record", panels.panels * panels.records):
        text.line(f"const int64 first = record % {panels.records} * {panels.unit};")
        text.line(f"uint8 *restrict to = y0 + record * {panels.record};")
        with text.loop("lane", "0", str(tile.columns)):
            begin = f"record / {panels.records} * {tile.columns} + lane"
            text.line(f"const int64 column = min_int64({begin}, {panels.columns - 1});")
            with text.block(""), writer.elements.scope():
                text.line("const int64 k = first;")
                kind = panels.scale.dtype
                scale = element(panels.scale, panels.parameter_access(panels.scale, extents, k, column))
                text.line(f"{scalar.store(kind, f'(({scalar.storage_type(kind)} *)to)', 'lane', scale)};")
                if panels.one_zero is None and panels.zero is not None:
                    zero = element(panels.zero, panels.parameter_access(panels.zero, extents, k, column))
                    text.line(f"to[{panels.zeros_at} + lane] = (uint8)({zero} + {panels.middle});")
            with text.loop("word", "0", str(panels.words)):
                text.line("uint32 codes = 0;")
                with text.loop("part", "0", str(panels.per_word)), writer.elements.scope():
                    text.line(f"const int64 place = word * {panels.per_word} + part, k = first + place;")
                    text.line(f"if (place >= {panels.unit} || k >= {panels.depth}) break;")
                    order = (column, k) if panels.turned else (k, column)
                    code = element(panels.codes, axes_access(extents, panels.codes.shape, order))
                    text.line(f"codes |= (uint32)(uint8)({code} + {panels.middle}) << ({bits} * part);")
                place = f"{panels.words_at} + (word * {tile.columns} + lane) * 4"
                text.line(f"__builtin_memcpy(to + {place}, &codes, sizeof codes);")
    total = panels.panels * panels.records
    return writer.kernel(chunk_count(panels.depth * panels.columns, total))
