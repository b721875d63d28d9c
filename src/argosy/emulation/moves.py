"""Data-parallel moves (DPP): the lane that each lane reads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from argosy.emulation.refusal import NotEmulated

__all__ = ["move_sources"]

_ROW = 16


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
