"""Vector and scalar operations of the table, with the modifiers of their operands and results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from argosy.emulation.decode import Instruction
from argosy.emulation.modifiers import constant_bits, packed_constant, picks, selection
from argosy.emulation.numpy_engine.lanes import moved_lanes
from argosy.emulation.numpy_engine.waves import Waves
from argosy.emulation.operands import EXEC, NULL, Operand
from argosy.emulation.refusal import NotEmulated
from argosy.emulation.semantics.arithmetic import TYPES
from argosy.emulation.semantics.table import Operation, width

__all__ = ["run_scalar", "run_vector"]

_HALVES: Final = {"pf16": "f16", "pbf16": "u16", "pu16": "u16", "pi16": "i16"}


def run_scalar(waves: Waves, instruction: Instruction, operation: Operation, chosen: Any, count: int) -> None:
    """An operation on scalars."""
    operands = iter(instruction.sources)
    values = []
    for kind in operation.sources:
        if kind == "scc":
            values.append(waves.scc[chosen][:, None])
        elif kind in ("exec32", "exec64"):
            values.append(waves.read(Operand("s", "exec", EXEC, 2), f"u{kind[4:]}", chosen, count))
        elif kind in ("k16", "ku16"):
            raw = int(next(operands).value) & 0xFFFF
            signed = raw - 0x10000 if raw > 0x7FFF and kind == "k16" else raw
            values.append(np.full((count, 1), signed, np.int32 if kind == "k16" else np.uint32))
        else:
            values.append(waves.read(next(operands), kind, chosen, count))
    found = operation.meaning(*values)
    results = iter(instruction.results)
    for kind, value in zip(operation.results, found if len(operation.results) > 1 else (found,), strict=True):
        if kind == "scc":
            waves.scc[chosen] = value[:, 0]
        elif kind in ("exec32", "exec64"):
            waves.write(
                Operand("s", "exec", EXEC, 2), f"u{kind[4:]}", chosen, value.astype(TYPES[f"u{kind[4:]}"]), None
            )
        else:
            whole = np.broadcast_to(value, (count, 1)).astype(TYPES[kind])
            waves.write(next(results), kind, chosen, whole, None, clears=True)


def run_vector(
    waves: Waves, instruction: Instruction, operation: Operation, chosen: Any, count: int, *, old: bool
) -> list[Any]:
    """An operation on lanes: what is to be written, as calls. `old` says that 16-bit results clear other halves."""
    mask = waves.exec_of(chosen)
    written = mask
    sources, modifiers = instruction.sources, instruction.modifiers
    if operation.sources and operation.sources[0] in (*_HALVES, "pf32", "pb32"):
        return [_packed(waves, instruction, operation, chosen, count, mask)]
    values = []
    for number, (operand, kind) in enumerate(zip(sources, operation.sources, strict=True)):
        if kind in ("mix", "mixb"):
            value = _mixed(waves, instruction, number, operand, kind, chosen, count)
        elif "sdwa" in modifiers and number < 2 and kind != "mask":
            value = _selected(waves, operand, kind, modifiers.get(f"src{number}_sel", "DWORD"), chosen, count)
        else:
            value = waves.read(_picked(operand, kind, modifiers, number), kind, chosen, count)
        if "dpp" in modifiers and number == 0:
            value, lanes = moved_lanes(value, modifiers, mask, waves.lanes)
            written = written & lanes
        values.append(value)
    found = operation.meaning(*values)
    found = list(found) if isinstance(found, tuple) else [found]
    kinds, shown = operation.results, instruction.results
    if kinds == ("pair",):
        kinds, shown = ("f32", "f32"), (shown[0], _next(shown[0]))
    shape = (count, waves.lanes)
    found[0] = _finished(found[0], instruction)
    calls: list[Any] = []
    if instruction.writes_exec:
        calls.append(partial(waves.write_mask, EXEC, chosen, np.broadcast_to(found[0], shape) & written))
    for result, kind, value in zip(shown, kinds, found, strict=False):
        full = np.broadcast_to(value, shape)
        if kind == "mask":
            if result.number < NULL:
                # To a mask, lanes that a move leaves alone are off.
                calls.append(partial(waves.write_mask, result.number, chosen, full & written))
        elif kind in ("high", "high16"):
            raw = np.ascontiguousarray(full).view(np.uint16).astype(np.uint32)
            calls.append(partial(waves.write_half, result, chosen, raw, written, high=True))
        elif modifiers.get("dst_sel", "DWORD") != "DWORD":
            raw = np.ascontiguousarray(full.astype(TYPES[kind])).view(f"u{width(kind) // 8}").astype(np.uint32)
            placed = _placed(raw, waves.word(result, 0, chosen), modifiers)
            calls.append(partial(waves.write_word, result, 0, chosen, placed, written))
        else:
            target = result
            if width(kind) == 16 and picks(modifiers, "op_sel", len(sources), 0):
                target = Operand(result.kind, result.text, result.number, 1, "h")
            clears = old and operation.clears and not target.half
            calls.append(partial(waves.write, target, kind, chosen, full.astype(TYPES[kind]), written, clears=clears))
    return calls


def _placed(raw: Any, old: Any, modifiers: Mapping[str, str]) -> Any:
    """A result put into a part of a register (SDWA): the rest is cleared, kept, or filled with the sign above."""
    part = selection(modifiers["dst_sel"])
    mask = np.uint32(((1 << part.bits) - 1) << part.shift)
    moved = (raw << np.uint32(part.shift)) & mask
    match modifiers.get("dst_unused", "UNUSED_PAD"):
        case "UNUSED_PAD":
            return moved
        case "UNUSED_PRESERVE":
            return (old & ~mask) | moved
        case "UNUSED_SEXT":
            left = 32 - part.shift - part.bits
            return ((moved << np.uint32(left)).view(np.int32) >> left).view(np.uint32)
        case other:
            raise NotEmulated(f"dst_unused:{other}")


def _next(operand: Operand) -> Operand:
    return Operand(operand.kind, operand.text, operand.number + 1)


def _picked(operand: Operand, kind: str, modifiers: Mapping[str, str], number: int) -> Operand:
    """A source, of 16 bits the half that `op_sel` says."""
    return _high_half(operand) if width(kind) == 16 and picks(modifiers, "op_sel", number, 0) else operand


def _high_half(operand: Operand) -> Operand:
    return Operand(
        operand.kind, operand.text, operand.number, 1, "h", operand.value, operand.negative, operand.absolute
    )


def _finished(value: Any, instruction: Instruction) -> Any:
    """A result with what is asked for behind the operation: clamping, and a factor."""
    modifiers = instruction.modifiers
    if "mul" in modifiers:
        value = value * value.dtype.type(int(modifiers["mul"]))
    if "div" in modifiers:
        value = value / value.dtype.type(int(modifiers["div"]))
    if "clamp" in modifiers:
        value = np.where(value > 0, np.minimum(value, 1), 0).astype(value.dtype)  # no number, and -0, are 0
    return value


def _selected(waves: Waves, operand: Operand, kind: str, text: str, chosen: Any, count: int) -> Any:
    """A part of a register, widened (SDWA)."""
    part = selection(text)
    plain = Operand(operand.kind, operand.text, operand.number, 1, "", operand.value)
    raw = waves.read(plain, "u32", chosen, count) >> np.uint32(part.shift)
    if operand.sign_extended:
        raw = (raw.view(np.int32) << (32 - part.bits) >> (32 - part.bits)).view(np.uint32)
    elif part.bits < 32:
        raw = raw & np.uint32((1 << part.bits) - 1)
    value = raw.astype(np.uint16).view(TYPES[kind]) if width(kind) == 16 else raw.view(TYPES[kind])
    if kind[0] == "f":
        if operand.absolute:
            value = np.abs(value)
        if operand.negative:
            value = -value
    return value


def _mixed(
    waves: Waves, instruction: Instruction, number: int, operand: Operand, kind: str, chosen: Any, count: int
) -> Any:
    """A source of a mixed operation, in float32: neg_lo negates it and neg_hi takes its magnitude."""
    modifiers = instruction.modifiers
    if not picks(modifiers, "op_sel_hi", number, 0):
        return waves.read(operand, "f32", chosen, count)
    high = picks(modifiers, "op_sel", number, 0)
    if kind == "mix":
        return waves.read(_high_half(operand) if high else operand, "f16", chosen, count).astype(np.float32)
    word = waves.read(replace(operand, negative=False, absolute=False), "u32", chosen, count)
    value = ((word >> np.uint32(16) if high else word) << np.uint32(16)).view(np.float32)
    return waves.changed(operand, "f32", value)


def _packed(waves: Waves, instruction: Instruction, operation: Operation, chosen: Any, count: int, mask: Any) -> Any:
    """Two halves: `op_sel` picks each source's half for the low result, `op_sel_hi` for the high one."""
    kind = operation.results[0]
    modifiers = instruction.modifiers
    halves = []
    for which, (name, default) in enumerate((("op_sel", 0), ("op_sel_hi", 1))):
        values = []
        for number, (operand, source) in enumerate(zip(instruction.sources, operation.sources, strict=True)):
            high = picks(modifiers, name, number, default)
            value = _half(waves, operand, source, high=high, chosen=chosen, count=count)
            if picks(modifiers, ("neg_lo", "neg_hi")[which], number, 0):
                value = -value if value.dtype.kind == "f" else value ^ value.dtype.type(0x8000)
            values.append(value)
        halves.append(values)
    if kind == "pb32":
        # v_pk_mov_b32 takes the low result of the first source and the high one of the second.
        results = [halves[0][0], _half_of_second(waves, instruction, chosen, count)]
    else:
        results = [operation.meaning(*values) for values in halves]
    results = [_finished(each, instruction) for each in results]
    shape = (count, waves.lanes)
    low, high_value = (np.ascontiguousarray(np.broadcast_to(each, shape)) for each in results)
    result = instruction.results[0]
    if kind in _HALVES:
        word = low.view(np.uint16).astype(np.uint32) | (high_value.view(np.uint16).astype(np.uint32) << np.uint32(16))
        return lambda: waves.write_word(result, 0, chosen, word, mask)

    def both() -> None:
        waves.write_word(result, 0, chosen, low.view(np.uint32), mask)
        waves.write_word(result, 1, chosen, high_value.view(np.uint32), mask)

    return both


def _half_of_second(waves: Waves, instruction: Instruction, chosen: Any, count: int) -> Any:
    high = picks(instruction.modifiers, "op_sel", 1, 0)
    return _half(waves, instruction.sources[1], "pb32", high=high, chosen=chosen, count=count)


def _half(waves: Waves, operand: Operand, kind: str, *, high: int, chosen: Any, count: int) -> Any:
    if kind in _HALVES:
        if operand.kind == "constant":
            bits = packed_constant(operand, kind) >> (16 if high else 0) & 0xFFFF
            return np.full((count, 1), bits, np.uint16).view(TYPES[_HALVES[kind]])
        raw = waves.word(operand, 0, chosen)
        return ((raw >> np.uint32(16)) if high else raw).astype(np.uint16).view(TYPES[_HALVES[kind]])
    element = "f32" if kind == "pf32" else "u32"
    if operand.kind == "constant":
        return np.full((count, 1), constant_bits(operand, element), np.uint32).view(TYPES[element])
    word = waves.word(operand, 1 if high and operand.count > 1 else 0, chosen)
    return np.ascontiguousarray(word).view(TYPES[element])
