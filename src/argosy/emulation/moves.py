"""Moves between lanes that the text fixes, data-parallel moves (DPP) and swizzles: the lane that each lane reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.emulation.refusal import NotEmulated

__all__ = ["move_sources", "swizzle_sources"]

_ROW: Final = 16
_SWIZZLE: Final = re.compile(r"^swizzle\((\w+) *, *(.*)\)$")
_QUADS, _ROTATE, _FOURIER = 0x8000, 0xC000, 0xE000


def move_sources(modifiers: Mapping[str, str], lanes: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The lane that each lane reads, -1 for none, and the lanes that the masks of rows and banks let write."""
    lane = np.arange(lanes)
    source, valid = _sources(modifiers, lane)
    rows, banks = int(modifiers.get("row_mask", "0xf"), 0), int(modifiers.get("bank_mask", "0xf"), 0)
    written = ((rows >> (lane // _ROW)) & 1) & ((banks >> (lane % _ROW // 4)) & 1)
    return np.where(valid, source, -1), written.astype(np.bool_)


def _sources(modifiers: Mapping[str, str], lane: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    row, place, lanes = lane - lane % _ROW, lane % _ROW, len(lane)
    every = np.ones(lanes, np.bool_)
    for name, text in modifiers.items():
        match name:
            case "quad_perm":
                return (lane & ~3) + _order(text)[lane & 3], every
            case "dpp8":
                return (lane & ~7) + _order(text)[lane & 7], every
            case "row_shl":
                return lane + int(text), place + int(text) < _ROW
            case "row_shr":
                return lane - int(text), place >= int(text)
            case "row_ror":
                return row + (place - int(text)) % _ROW, every
            case "row_mirror":
                return row + _ROW - 1 - place, every
            case "row_half_mirror":
                return lane - lane % 8 + 7 - lane % 8, every
            case "row_bcast" if text == "15":
                return row - 1, lane >= _ROW
            case "row_bcast":
                return np.full(lanes, 31), lane >= 32
            case "row_newbcast" | "row_share":
                return row + int(text), every
            case "row_xmask":
                return row + (place ^ int(text)), every
            case "wave_shr":
                return lane - 1, lane >= 1
            case "wave_shl":
                return lane + 1, lane < lanes - 1
            case "wave_ror":
                return (lane - 1) % lanes, every
            case "wave_rol":
                return (lane + 1) % lanes, every
            case _:
                continue
    raise NotEmulated(f"a data-parallel move by {' '.join(modifiers)}")


def _order(text: str) -> NDArray[np.int64]:
    return np.asarray([int(each) for each in text.strip("[]").split(",")])


def swizzle_sources(text: str, lanes: int) -> NDArray[np.int64]:
    """The lane that each lane reads in `ds_swizzle_b32` with this offset, a number or as LLVM names it."""
    pattern, lane = _pattern(text), np.arange(lanes)
    if _QUADS <= pattern < _ROTATE:
        return (lane & ~3) + (pattern >> (2 * (lane & 3)) & 3)
    last, middle, place = pattern & 31, pattern >> 5 & 31, lane & 31
    if pattern >= _FOURIER:
        reverse = sum((place >> bit & 1) << (4 - bit) for bit in range(5))
        found = (reverse >> last.bit_count()) | (place & last)
    elif pattern >= _ROTATE:
        found = (place & last) | ((place + (-middle if pattern >> 10 & 1 else middle)) & ~last & 31)
    else:
        found = ((place & last) | middle) ^ (pattern >> 10 & 31)
    return (lane & ~31) + found


def _pattern(text: str) -> int:
    """The 16 bits of a swizzle. Raises NotEmulated."""
    named = _SWIZZLE.match(text)
    if named is None:
        return int(text, 0)
    parts = [each.strip(' "') for each in named[2].split(",")]
    match named[1], *parts:
        case "QUAD_PERM", *order:
            return _QUADS | sum(int(each) << (2 * place) for place, each in enumerate(order))
        case "BITMASK_PERM", mask:  # of each bit of a lane's number, from the highest: 0, 1, kept (p) or inverted (i)
            kept, added, turned = (int("".join("01"[each in of] for each in mask), 2) for of in ("pi", "1", "i"))
            return kept | added << 5 | turned << 10
        case "BROADCAST", size, lane:
            return 32 - int(size) | int(lane) << 5
        case "SWAP", size:
            return 31 | int(size) << 10
        case "REVERSE", size:
            return 31 | (int(size) - 1) << 10
        case "ROTATE", right, by:
            return _ROTATE | int(right) << 10 | int(by) << 5
        case "FFT", mask:
            return _FOURIER | int(mask)
        case _:
            raise NotEmulated(f"offset:{text}")
