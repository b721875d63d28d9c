"""Matrix instructions: gather what lanes hold, multiply, scatter."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy.emulation.decode import Instruction
from argosy.emulation.matrix import SCALE_BLOCK, Factor, MatrixShape
from argosy.emulation.modifiers import picks
from argosy.emulation.numpy_engine.waves import Waves
from argosy.emulation.operands import Operand
from argosy.emulation.refusal import NotEmulated
from argosy.emulation.semantics.conversions import from_bfloat, from_short, to_bfloat

__all__ = ["run_matrix"]


def run_matrix(waves: Waves, instruction: Instruction, shape: MatrixShape, chosen: Any, count: int) -> None:
    """D = A B + C, summed in double precision and rounded once: the order in hardware is not public."""
    a, b, c = instruction.sources[:3]
    modifiers = instruction.modifiers
    signs = [picks(modifiers, "neg_lo", place, 0) for place in range(2)]
    left = _factor(waves, a, shape.a, shape.m, shape.k, chosen, count, signed=bool(signs[0]))
    right = _factor(waves, b, shape.b, shape.n, shape.k, chosen, count, signed=bool(signs[1]))
    if shape.scaled:
        bytes_ = [
            picks(modifiers, "op_sel", place, 0) + 2 * picks(modifiers, "op_sel_hi", place, 1) for place in (0, 1)
        ]
        left = left * _scales(waves, instruction.sources[3], bytes_[0], shape.m, shape.k, chosen, count)
        right = right * _scales(waves, instruction.sources[4], bytes_[1], shape.n, shape.k, chosen, count)
    product = left @ right.transpose(0, 2, 1)
    added = _added(waves, c, shape, chosen, count)
    total = product + added
    if shape.out == "i32":
        if "clamp" in instruction.modifiers:
            total = np.clip(total, -(2**31), 2**31 - 1)
        result = total.astype(np.int64).astype(np.uint32)
    elif shape.out == "f32":
        result = np.ascontiguousarray(total.astype(np.float32)).view(np.uint32)
    elif shape.out == "f64":
        result = np.ascontiguousarray(total)
    elif shape.out == "f16":
        result = np.ascontiguousarray(total.astype(np.float16)).view(np.uint16).astype(np.uint32)
    else:
        result = to_bfloat(np.ascontiguousarray(total.astype(np.float32))).astype(np.uint32)
    _scatter(waves, instruction.results[0], shape, result, chosen)


def _factor(
    waves: Waves, operand: Operand, factor: Factor, rows: int, k: int, chosen: Any, count: int, *, signed: bool
) -> Any:
    """A factor as an array of float64, shape (waves, rows, k)."""
    elements = factor.places.shape[1]
    words = [waves.word(operand, place, chosen) for place in range(elements * factor.bits // 32)]
    raw = np.ascontiguousarray(np.stack(words, -1))  # waves, lanes, words
    match factor.kind:
        case "f16":
            values = raw.view(np.float16).astype(np.float64)
        case "f32":
            values = raw.view(np.float32).astype(np.float64)
        case "f64":
            values = raw.view(np.float64)
        case "bf16":
            values = from_bfloat(raw.view(np.uint16).astype(np.uint32)).astype(np.float64)
        case "i8":
            values = raw.view(np.int8).astype(np.float64)
        case "iu8":
            values = raw.view(np.int8 if signed else np.uint8).astype(np.float64)
        case "e4m3" | "e5m2" | "e4m3fnuz" | "e5m2fnuz" | "e2m3" | "e3m2" | "e2m1":
            values = from_short(_fields(raw, factor.bits, elements), factor.kind).astype(np.float64)
        case _:
            raise NotEmulated(f"factors of {factor.kind}")
    made = np.zeros((count, rows, k))
    made[:, factor.places[..., 0], factor.places[..., 1]] = values[..., :elements]
    return made


def _fields(raw: Any, bits: int, elements: int) -> Any:
    """Fields of that many bits, one after the other from the lowest bit on; uint32, shape (waves, lanes, elements)."""
    each = np.unpackbits(raw.view(np.uint8), axis=-1, bitorder="little")[..., : elements * bits]
    weights = np.uint32(1) << np.arange(bits, dtype=np.uint32)
    return (each.reshape(*each.shape[:-1], elements, bits) * weights).sum(-1, dtype=np.uint32)


def _scales(waves: Waves, operand: Operand, byte: int, rows: int, k: int, chosen: Any, count: int) -> Any:
    """The scale of each element, shape (waves, rows, k): byte of lane `row + rows * block` is its exponent plus 127."""
    raw = ((waves.word(operand, 0, chosen) >> np.uint32(8 * byte)) & np.uint32(0xFF)).astype(np.int32)
    scale = np.where(raw == 0xFF, np.nan, np.ldexp(1.0, raw - 127))
    return scale.reshape(count, k // SCALE_BLOCK, rows).transpose(0, 2, 1).repeat(SCALE_BLOCK, axis=2)


def _added(waves: Waves, operand: Operand, shape: MatrixShape, chosen: Any, count: int) -> Any:
    if operand.kind == "constant":
        return float(operand.value)
    registers = shape.places_d.shape[1]
    if shape.out == "f64":
        raw = np.stack([waves.word(operand, place, chosen) for place in range(2 * registers)], -1)
        values = np.ascontiguousarray(raw).view(np.float64)
    else:
        raw = np.ascontiguousarray(np.stack([waves.word(operand, place, chosen) for place in range(registers)], -1))
        match shape.out:
            case "f32":
                values = raw.view(np.float32).astype(np.float64)
            case "i32":
                values = raw.view(np.int32).astype(np.float64)
            case "f16":
                values = raw.astype(np.uint16).view(np.float16).astype(np.float64)
            case _:
                values = from_bfloat(raw & np.uint32(0xFFFF)).astype(np.float64)
    made = np.zeros((count, shape.m, shape.n))
    made[:, shape.places_d[..., 0], shape.places_d[..., 1]] = values
    return made


def _scatter(waves: Waves, operand: Operand, shape: MatrixShape, result: Any, chosen: Any) -> None:
    held = result[:, shape.places_d[..., 0], shape.places_d[..., 1]]
    words = np.ascontiguousarray(held).view(np.uint32).reshape(*held.shape[:2], -1) if shape.out == "f64" else held
    for place in range(words.shape[-1]):
        if shape.halves:
            waves.write_half(_operand_at(operand, place), chosen, words[..., place], None, high=False)
        else:
            waves.write_word(operand, place, chosen, words[..., place], None)


def _operand_at(operand: Operand, place: int) -> Operand:
    """One register of a wider operand."""
    return Operand(operand.kind, operand.text, operand.number + place)
