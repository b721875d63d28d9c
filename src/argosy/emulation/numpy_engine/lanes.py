"""What moves values between lanes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from argosy.emulation.decode import Instruction
from argosy.emulation.moves import move_sources, swizzle_sources
from argosy.emulation.numpy_engine.waves import Waves
from argosy.emulation.refusal import NotEmulated

__all__ = ["moved_lanes", "run_lanes"]


def moved_lanes(value: Any, modifiers: Mapping[str, str], mask: Any, lanes: int) -> tuple[Any, Any]:
    """The value as each lane gets it from another (DPP), and the lanes that are written."""
    source, allowed = move_sources(modifiers, lanes)
    fetched = np.broadcast_to(value, mask.shape)[:, source]
    inside = (source >= 0)[None, :] & (mask[:, source] | (modifiers.get("fi", "0") == "1"))
    written = np.broadcast_to(allowed[None, :], mask.shape)
    if modifiers.get("bound_ctrl", "") in ("0", "1"):
        fetched = np.where(inside, fetched, fetched.dtype.type(0))
    else:
        written = written & inside
    return fetched, written


def run_lanes(waves: Waves, instruction: Instruction, chosen: Any, count: int) -> None:
    """An instruction of `decode.LANES`."""
    name, result, sources = instruction.name, instruction.results[0], instruction.sources
    mask = waves.exec_of(chosen)
    lane = np.arange(waves.lanes)
    match name:
        case "v_readfirstlane_b32":
            first = np.where(mask.any(1), mask.argmax(1), 0)
            value = np.broadcast_to(waves.word(sources[0], 0, chosen), mask.shape)
            waves.write_word(result, 0, chosen, value[np.arange(count), first][:, None], None)
        case "v_readlane_b32":
            which = (waves.read(sources[1], "u32", chosen, count)[:, 0] % np.uint32(waves.lanes)).astype(np.int64)
            value = waves.word(sources[0], 0, chosen)
            waves.write_word(result, 0, chosen, value[np.arange(count), which][:, None], None)
        case "v_writelane_b32":
            which = (waves.read(sources[1], "u32", chosen, count) % np.uint32(waves.lanes)).astype(np.int64)
            value = waves.read(sources[0], "u32", chosen, count)
            waves.write_word(result, 0, chosen, np.broadcast_to(value, mask.shape), lane[None, :] == which)
        case "v_mbcnt_lo_u32_b32" | "v_mbcnt_hi_u32_b32":
            bottom = 0 if "_lo_" in name else 32
            below = [(1 << max(min(each - bottom, 32), 0)) - 1 for each in range(waves.lanes)]
            bits = waves.read(sources[0], "u32", chosen, count) & np.asarray(below, np.uint32)[None, :]
            total = np.bitwise_count(bits).astype(np.uint32) + waves.read(sources[1], "u32", chosen, count)
            waves.write_word(result, 0, chosen, total, mask)
        case "v_permlane16_b32" | "v_permlanex16_b32":
            _permlane16(waves, instruction, chosen, count, mask, crossed="x16" in name)
        case "v_permlane64_b32":
            value = waves.word(sources[0], 0, chosen)
            waves.write_word(result, 0, chosen, value[:, lane ^ 32], mask)
        case "v_permlane32_swap_b32" | "v_permlane16_swap_b32":
            size = 32 if "lane32" in name else 16
            first, second = waves.word(result, 0, chosen), waves.word(sources[0], 0, chosen)
            upper = (lane & size) != 0
            on = mask[:, lane ^ size] | (instruction.modifiers.get("fi", "0") == "1")
            zeroes = instruction.modifiers.get("bound_ctrl", "") in ("0", "1")
            first_made, second_made = (np.where(on, each[:, lane ^ size], np.uint32(0)) for each in (second, first))
            waves.write_word(result, 0, chosen, first_made, mask & upper & (on | zeroes))
            waves.write_word(sources[0], 0, chosen, second_made, mask & ~upper & (on | zeroes))
        case "v_swap_b32":
            first, second = waves.word(result, 0, chosen).copy(), waves.word(sources[0], 0, chosen).copy()
            waves.write_word(result, 0, chosen, second, mask)
            waves.write_word(sources[0], 0, chosen, first, mask)
        case "v_accvgpr_read_b32" | "v_accvgpr_write_b32" | "v_accvgpr_mov_b32":
            value = waves.read(sources[0], "u32", chosen, count)
            waves.write_word(result, 0, chosen, np.broadcast_to(value, mask.shape), mask)
        case "ds_bpermute_b32" | "ds_permute_b32":
            offset = int(instruction.modifiers.get("offset", "0"), 0)
            addresses = (waves.word(sources[0], 0, chosen) + np.uint32(offset)) >> np.uint32(2)
            other = (addresses % np.uint32(waves.lanes)).astype(np.int64)
            value = np.where(mask, waves.word(sources[1], 0, chosen), np.uint32(0))
            if name == "ds_bpermute_b32":
                moved = np.take_along_axis(value, other, 1)
            else:
                moved = np.zeros_like(value)
                which, lanes = np.nonzero(mask)  # in order of lanes: of two that name one, the higher one counts
                moved[which, other[which, lanes]] = value[which, lanes]
            waves.write_word(result, 0, chosen, moved, mask)
        case "ds_swizzle_b32":
            source = swizzle_sources(instruction.modifiers.get("offset", "0"), waves.lanes)
            value = np.where(mask, waves.word(sources[0], 0, chosen), np.uint32(0))
            waves.write_word(result, 0, chosen, value[:, source], mask)
        case _:
            raise NotEmulated(f"the instruction {name}")


def _permlane16(waves: Waves, instruction: Instruction, chosen: Any, count: int, mask: Any, *, crossed: bool) -> None:
    """Each lane of a row picks a lane of its row, or of the other one of a pair, by 4 bits of two scalars."""
    lane = np.arange(waves.lanes)
    low, high = (waves.read(each, "u32", chosen, count) for each in instruction.sources[1:3])
    place = lane % 16
    word = np.where(place[None, :] < 8, low, high)
    picked = ((word >> (4 * (place % 8)).astype(np.uint32)) & np.uint32(15)).astype(np.int64)
    row = (lane - place) ^ (16 if crossed else 0)
    source = row[None, :] + picked
    value = np.broadcast_to(waves.word(instruction.sources[0], 0, chosen), mask.shape)
    fetched = np.take_along_axis(value, source, 1)
    switches = [int(each) for each in instruction.modifiers.get("op_sel", "[0,0]").strip("[]").split(",")]
    inside = np.take_along_axis(mask, source, 1) | bool(switches[0])
    if switches[1]:
        fetched, written = np.where(inside, fetched, np.uint32(0)), mask
    else:
        written = mask & inside
    waves.write_word(instruction.results[0], 0, chosen, fetched, written)
