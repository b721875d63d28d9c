"""The registers of a batch of workgroups, and reading and writing them as instructions say."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from argosy.emulation.modifiers import constant_bits, packed_constant
from argosy.emulation.operands import EXEC, NULL, SCALARS, Operand
from argosy.emulation.refusal import NotEmulated
from argosy.emulation.semantics.arithmetic import TYPES
from argosy.emulation.semantics.table import width

__all__ = ["Waves"]

_POISON: Final = 0xCDCDCDCD


class Waves:
    """Registers of `groups * waves` waves of `lanes` lanes. `vectors[r, wave, lane]`, `scalars[r, wave]`."""

    def __init__(
        self, groups: int, waves: int, lanes: int, vectors: int, accumulators: int, lds: int, private: int
    ) -> None:
        total = groups * waves
        self.groups, self.per_group, self.lanes, self.total = groups, waves, lanes, total
        self.vectors = np.full((vectors, total, lanes), _POISON, np.uint32)
        self.accumulators = np.full((accumulators, total, lanes), _POISON, np.uint32)
        self.scalars = np.full((SCALARS, total), _POISON, np.uint32)
        self.scalars[NULL:] = 0
        self.scc = np.zeros(total, np.bool_)
        self.places = np.zeros(total, np.int64)
        self.lds = np.full((groups, lds), _POISON & 0xFF, np.uint8)
        self.private = np.full((total, lanes, private), _POISON & 0xFF, np.uint8)
        self.group_of = np.repeat(np.arange(groups), waves)
        self._lane = np.arange(lanes, dtype=np.uint64)

    # ------------------------------------------------------------------------------------------------- masks
    def mask_of(self, number: int, chosen: Any) -> NDArray[np.bool_]:
        """A mask in scalar registers as booleans of shape (waves, lanes)."""
        low = self.scalars[number, chosen].astype(np.uint64)
        if self.lanes > 32:
            low |= self.scalars[number + 1, chosen].astype(np.uint64) << np.uint64(32)
        return ((low[:, None] >> self._lane) & np.uint64(1)).astype(np.bool_)

    def exec_of(self, chosen: Any) -> NDArray[np.bool_]:
        """The lanes that are on."""
        return self.mask_of(EXEC, chosen)

    def write_mask(self, number: int, chosen: Any, mask: NDArray[np.bool_]) -> None:
        """Write booleans into scalar registers."""
        packed = np.packbits(mask, axis=1, bitorder="little")
        words = np.zeros((len(packed), 8), np.uint8)
        words[:, : packed.shape[1]] = packed
        pair = words.view(np.uint32)
        self.scalars[number, chosen] = pair[:, 0]
        if self.lanes > 32:
            self.scalars[number + 1, chosen] = pair[:, 1]

    # ------------------------------------------------------------------------------------------------- reading
    def word(self, operand: Operand, place: int, chosen: Any) -> NDArray[np.uint32]:
        """32 bits of an operand: shape (waves, lanes), or (waves, 1) of what all lanes share."""
        number = operand.number + place
        match operand.kind:
            case "v":
                return self.vectors[number][chosen]
            case "a":
                return self.accumulators[number][chosen]
            case "s":
                return self.scalars[number][chosen][:, None]
            case "scc":
                return self.scc[chosen][:, None].astype(np.uint32)
            case _:
                raise NotEmulated(f"the operand {operand.text!r} here")

    def read(self, operand: Operand, kind: str, chosen: Any, count: int) -> Any:
        """The values of an operand of one of the types of the table, shape (count, lanes) or (count, 1)."""
        if kind == "mask":
            return self.mask_of(operand.number, chosen)
        if operand.kind == "constant":
            if width(kind) == 16:
                bits = packed_constant(operand, kind) >> (16 if operand.half == "h" else 0) & 0xFFFF
            else:
                bits = constant_bits(operand, kind)
            value = np.full((count, 1), bits, TYPES[_unsigned(kind)]).view(TYPES[kind])
        elif width(kind) == 64:
            low, high = self.word(operand, 0, chosen), self.word(operand, 1, chosen) if operand.count > 1 else None
            wide = low.astype(np.uint64)
            if high is not None:
                wide |= high.astype(np.uint64) << np.uint64(32)
            value = wide.view(TYPES[kind])
        elif width(kind) == 16:
            raw = self.word(operand, 0, chosen)
            value = ((raw >> 16) if operand.half == "h" else raw).astype(np.uint16).view(TYPES[kind])
        else:
            value = np.ascontiguousarray(self.word(operand, 0, chosen)).view(TYPES[kind])
        return self.changed(operand, kind, value)

    def changed(self, operand: Operand, kind: str, value: Any) -> Any:
        """With the sign that the operand asks for."""
        if operand.sign_extended:
            raise NotEmulated(f"the operand {operand.text!r} here")
        if not (operand.absolute or operand.negative):
            return value
        raw = value.view(TYPES[_unsigned(kind)])
        sign = TYPES[_unsigned(kind)].type(1 << (width(kind) - 1))
        if operand.absolute:
            raw = raw & ~sign
        if operand.negative:
            raw = raw ^ sign
        return raw.view(TYPES[kind])

    # ------------------------------------------------------------------------------------------------- writing
    def write_word(self, operand: Operand, place: int, chosen: Any, value: Any, mask: Any) -> None:
        """32 bits of a result, in the lanes that are on; scalars take what all lanes share."""
        number = operand.number + place
        if operand.kind == "s":
            if number < NULL:
                self.scalars[number, chosen] = value[:, 0]
            return
        file = self.vectors if operand.kind == "v" else self.accumulators
        if operand.kind not in "va":
            raise NotEmulated(f"a result in {operand.text!r}")
        if mask is None:
            file[number, chosen] = value
        else:
            file[number, chosen] = np.where(mask, value, file[number][chosen])

    def write(self, operand: Operand, kind: str, chosen: Any, value: Any, mask: Any, *, clears: bool = False) -> None:
        """A result of one of the types of the table."""
        size = width(kind)
        raw = np.ascontiguousarray(value).view(TYPES[_unsigned(kind)])
        if size == 64:
            self.write_word(operand, 0, chosen, raw.astype(np.uint32), mask)
            self.write_word(operand, 1, chosen, (raw >> np.uint64(32)).astype(np.uint32), mask)
        elif size == 16:
            self.write_half(operand, chosen, raw.astype(np.uint32), mask, high=operand.half == "h", clears=clears)
        else:
            self.write_word(operand, 0, chosen, raw, mask)

    def write_half(
        self, operand: Operand, chosen: Any, raw: Any, mask: Any, *, high: bool, clears: bool = False
    ) -> None:
        """16 bits of a register; the others stay, or are cleared."""
        if clears:
            self.write_word(operand, 0, chosen, raw, mask)
            return
        old = self.word(operand, 0, chosen)
        merged = (old & np.uint32(0xFFFF)) | (raw << np.uint32(16)) if high else (old & np.uint32(0xFFFF0000)) | raw
        self.write_word(operand, 0, chosen, merged, mask)


def _unsigned(kind: str) -> str:
    """The unsigned type that is as wide."""
    return f"u{width(kind)}"
