"""Parts of registers as sources and results (SDWA), by "Sub-Dword Addressing" of AMD's ISA documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.emulation.text import ENGINES, registers_after, some_lanes

Words = NDArray[np.uint32]

PARTS = {
    "DWORD": (0, 32),
    **{f"WORD_{place}": (16 * place, 16) for place in (0, 1)},
    **{f"BYTE_{place}": (8 * place, 8) for place in (0, 1, 2, 3)},
}
"""Lowest bit and size of each."""


def part(words: Words, name: str, *, signed: bool = False) -> Words:
    """A part, widened to 32 bits by zeros or by its sign."""
    low, size = PARTS[name]
    found = (words.astype(np.int64) >> low) & ((1 << size) - 1)
    return (np.where(signed & (found >> (size - 1) == 1), found - (1 << size), found) & 0xFFFFFFFF).astype(np.uint32)


def placed(result: Words, old: Words, name: str, unused: str) -> Words:
    """A result's lower bits put into a part, and what becomes of the rest of the register."""
    low, size = PARTS[name]
    mask = ((1 << size) - 1) << low
    moved = result.astype(np.int64) << low & mask
    rest = {
        "PAD": 0 * moved,
        "PRESERVE": old.astype(np.int64) & ~mask,
        "SEXT": -(moved >> (low + size - 1)) << (low + size),
    }
    return ((moved | rest[unused]) & 0xFFFFFFFF).astype(np.uint32)


def halves(words: Words) -> NDArray[np.float16]:
    return words.astype(np.uint16).view(np.float16)


TWO: dict[str, Callable[[Words, Words], Any]] = {
    "v_add_u32": lambda a, b: a + b,
    "v_lshrrev_b32": lambda by, a: a >> (by & 31),
    "v_mul_u32_u24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "v_max_i32": lambda a, b: np.maximum(a.view(np.int32), b.view(np.int32)).view(np.uint32),
    "v_xor_b32": lambda a, b: a ^ b,
    "v_sub_u16": lambda a, b: (a - b) & 0xFFFF,
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", list(TWO))
def test_parts_of_integers(name: str, engine: Any) -> None:
    """All parts of a result, with what becomes of the rest, each with other parts of the sources."""
    first, second, *old = np.random.default_rng(6).integers(0, 1 << 32, (9, 64), np.uint32)
    on, mask = some_lanes(64, 7)
    names, kinds = list(PARTS), ("PAD", "PRESERVE", "SEXT")
    for number, unused in enumerate(kinds):
        lines, expected = list(mask), []
        for place, target in enumerate(names):
            one, other = names[(place + number + 1) % 7], names[(3 * place + 2 * number) % 7]
            signs = (place + number) % 2 == 0, place % 3 == 0
            operands = [f"sext({each})" if sign else each for each, sign in zip(("v3", "v4"), signs, strict=True)]
            lines.append(
                f"{name}_sdwa v{10 + place}, {', '.join(operands)} dst_sel:{target} dst_unused:UNUSED_{unused} "
                f"src0_sel:{one} src1_sel:{other}"
            )
            made = TWO[name](part(first, one, signed=signs[0]), part(second, other, signed=signs[1]))
            expected.append(np.where(on, placed(made, old[place], target, unused), old[place]))
        given = {3: first, 4: second, **{10 + place: each for place, each in enumerate(old)}}
        found = registers_after(lines, engine, given, range(10, 17))
        np.testing.assert_array_equal(found, np.stack(expected))


@pytest.mark.parametrize("engine", ENGINES)
def test_parts_of_floats_have_signs(engine: Any) -> None:
    random = np.random.default_rng(8)
    values = random.standard_normal((2, 128)).astype(np.float16)
    first, second = values.view(np.uint32)
    old = random.integers(0, 1 << 32, 64, np.uint32)
    line = "v_mul_f16_sdwa v5, -v3, |v4| dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:WORD_0"
    (found,) = registers_after([line], engine, {3: first, 4: second, 5: old}, [5])
    product = -halves(first >> 16) * np.abs(halves(second & 0xFFFF))
    np.testing.assert_array_equal(found, product.view(np.uint16).astype(np.uint32) << 16 | old & 0xFFFF)


@pytest.mark.parametrize("engine", ENGINES)
def test_parts_are_compared(engine: Any) -> None:
    first, second = np.random.default_rng(9).integers(0, 1 << 32, (2, 64), np.uint32)
    on, mask = some_lanes(64, 10)
    body = [
        *mask,
        "v_cmp_lt_u32_sdwa s[8:9], v3, v4 src0_sel:BYTE_2 src1_sel:BYTE_3",
        "v_cmp_gt_i32_sdwa vcc, sext(v3), v4 src0_sel:WORD_1 src1_sel:BYTE_0",
        "s_mov_b64 exec, -1",
        "v_cndmask_b32_e64 v5, 0, 1, s[8:9]",
        "v_cndmask_b32_e64 v6, 0, 1, vcc",
    ]
    found = registers_after(body, engine, {3: first, 4: second}, [5, 6])
    np.testing.assert_array_equal(found[0], on & (part(first, "BYTE_2") < part(second, "BYTE_3")))
    signed = part(first, "WORD_1", signed=True).view(np.int32)
    np.testing.assert_array_equal(found[1], on & (signed > part(second, "BYTE_0").view(np.int32)))
