"""Modifiers of instructions, read."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from argosy.emulation.operands import Operand
from argosy.emulation.refusal import NotEmulated
from argosy.emulation.semantics.table import width

__all__ = ["Selection", "constant_bits", "packed_constant", "picks", "selection"]


@dataclass(frozen=True, slots=True)
class Selection:
    """A part of a register."""

    shift: int
    bits: int


_SELECTIONS: Final = {
    "DWORD": Selection(0, 32),
    **{f"WORD_{place}": Selection(16 * place, 16) for place in range(2)},
    **{f"BYTE_{place}": Selection(8 * place, 8) for place in range(4)},
}


def selection(text: str) -> Selection:
    """The part that an SDWA selection names. Raises NotEmulated."""
    if text not in _SELECTIONS:
        raise NotEmulated(f"the selection {text}")
    return _SELECTIONS[text]


def picks(modifiers: Mapping[str, str], name: str, place: int, default: int) -> int:
    """The bit for an operand of a modifier such as `op_sel:[0,1]`."""
    if name not in modifiers:
        return default
    values = modifiers[name].strip("[]").split(",")
    return int(values[place]) if place < len(values) else 0


def constant_bits(operand: Operand, kind: str) -> int:
    """The bits of a constant where a type is read: floats by the type, integers as they are, with their sign."""
    size = width(kind)
    value = operand.value
    if isinstance(value, float):
        form = {16: "<e", 32: "<f", 64: "<d"}[size]
        return int.from_bytes(struct.pack(form, value), "little")
    if size == 64 and value <= 0xFFFFFFFF:  # what is longer is written in full
        if kind == "f64" and not -16 <= value <= 64:
            return (value & 0xFFFFFFFF) << 32
        if kind[0] == "i" and value > 0x7FFFFFFF:
            value -= 1 << 32
    return value & ((1 << size) - 1)


def packed_constant(operand: Operand, kind: str) -> int:
    """The 32 bits of a constant from which a source of 16 bits, packed or not, takes its halves.

    Integers are of 32 bits, with their sign; floats are in the low half alone, or float32 where integers are computed
    (LLVM, `getInlineEncodingV216` and `getInlineEncodingV2BF16`).
    """
    if isinstance(operand.value, float) and kind == "pbf16":
        return constant_bits(operand, "f32") >> 16
    if isinstance(operand.value, float):
        return constant_bits(operand, "f32" if kind.endswith(("u16", "i16")) else "f16")
    return operand.value & 0xFFFFFFFF
