"""Matrix instructions: gather what lanes hold, multiply, scatter."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy.emulation.decode import Instruction
from argosy.emulation.matrix import MatrixShape
from argosy.emulation.numpy_engine.waves import Waves
from argosy.emulation.operands import Operand
from argosy.emulation.refusal import NotEmulated
from argosy.emulation.semantics.conversions import from_bfloat, from_short, to_bfloat

__all__ = ["run_matrix"]


def run_matrix(waves: Waves, instruction: Instruction, shape: MatrixShape, chosen: Any, count: int) -> None:
    """D = A B + C, summed in double precision and rounded once: the order in hardware is not public."""
    a, b, c = instruction.sources[:3]
    signs = instruction.modifiers.get("neg_lo", "[0,0,0]").strip("[]").split(",")
    if any(name in instruction.modifiers for name in ("cbsz", "abid", "blgp", "op_sel", "neg_hi")) or (
        shape.a != "iu8" and "1" in signs
    ):
        raise NotEmulated(f"the modifiers of {instruction.statement.text}")
    left = _factor(waves, a, shape.a, shape, shape.places_a, shape.m, chosen, count, signed=signs[0] == "1")
    right = _factor(waves, b, shape.b, shape, shape.places_b, shape.n, chosen, count, signed=signs[1] == "1")
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
    waves: Waves,
    operand: Operand,
    kind: str,
    shape: MatrixShape,
    places: Any,
    rows: int,
    chosen: Any,
    count: int,
    *,
    signed: bool,
) -> Any:
    """A factor as an array of float64, shape (waves, rows, k)."""
    elements = places.shape[1]
    words = [waves.word(operand, place, chosen) for place in range(elements * shape.bits // 32)]
    raw = np.ascontiguousarray(np.stack(words, -1))  # waves, lanes, words
    match kind:
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
        case "e4m3" | "e5m2" | "e4m3fnuz" | "e5m2fnuz":
            values = from_short(raw.view(np.uint8).astype(np.uint32), kind).astype(np.float64)
        case _:
            raise NotEmulated(f"factors of {kind}")
    made = np.zeros((count, rows, shape.k))
    made[:, places[..., 0], places[..., 1]] = values[..., :elements]
    return made


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
