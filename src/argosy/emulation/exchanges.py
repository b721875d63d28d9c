"""Loads that transpose: lanes read rows of a matrix, and each receives elements of a column.

Sources: "MFMA Transpose Load from LDS" of the CDNA4 document says which rows of a factor one instruction loads, and
Triton's documentation of `ds_read_tr` that a lane receives the column of its number; for gfx1250, what was observed on
hardware (8 lanes together for 16 bits, two by four lanes for 8 bits).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Exchange", "exchange_sources"]


@dataclass(frozen=True, slots=True)
class Exchange:
    """How lanes exchange elements of `bits` bits.

    `columns`: 16 lanes hold rows of 16 elements, one lane after the other, and lane i receives column i. `squares`: 8
    lanes hold a row each. `halves`: as `squares`, where the 8 lanes are two groups of 4, 8 lanes apart.
    """

    rule: Literal["columns", "squares", "halves"]
    bits: int


def exchange_sources(exchange: Exchange, size: int, lanes: int) -> NDArray[np.int64]:
    """Whose element each lane receives of `size` bits: (lane, element), shape (lanes, size / bits, 2)."""
    count = size // exchange.bits
    lane, element = np.arange(lanes)[:, None], np.arange(count)[None, :]
    match exchange.rule:
        case "columns":
            place = 16 * element + lane % 16
            source, taken = lane - lane % 16 + place // count, place % count
        case "squares":
            source, taken = lane - lane % 8 + element, lane % 8
        case "halves":
            source, taken = lane - lane % 16 + 4 * (lane // 8 % 2) + 8 * (element // 4) + element % 4, lane % 8
    return np.stack(np.broadcast_arrays(source, taken), -1)
