"""Data-parallel moves against the tables of AMD's ISA documents: which lane each lane reads, and what is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.emulation.text import ENGINES, registers_after, some_lanes

Source = Callable[[int], int | None]
"""The lane that a lane reads; none where that lies outside."""

EVERYWHERE: dict[str, Source] = {
    "quad_perm:[3,1,0,2]": lambda n: (n & 0x3C) + (3, 1, 0, 2)[n & 3],
    "quad_perm:[1,1,3,3]": lambda n: n | 1,
    "row_shl:1": lambda n: n + 1 if n & 15 < 15 else None,
    "row_shl:7": lambda n: n + 7 if n & 15 < 9 else None,
    "row_shr:1": lambda n: n - 1 if n & 15 >= 1 else None,
    "row_shr:12": lambda n: n - 12 if n & 15 >= 12 else None,
    "row_ror:5": lambda n: n - 5 if n & 15 >= 5 else n + 11,
    "row_mirror": lambda n: (n & 0x30) + 15 - (n & 15),
    "row_half_mirror": lambda n: (n & 0x38) + 7 - (n & 7),
}
ONLY = {
    "gfx942": {
        "wave_shl:1": lambda n: n + 1 if n < 63 else None,
        "wave_rol:1": lambda n: n + 1 if n < 63 else 0,
        "wave_shr:1": lambda n: n - 1 if n > 0 else None,
        "wave_ror:1": lambda n: n - 1 if n > 0 else 63,
        "row_bcast:15": lambda n: (n & 0x30) - 1 if n > 15 else None,
        "row_bcast:31": lambda n: (n & 0x20) - 1 if n > 31 else None,
        "row_newbcast:6": lambda n: (n & 0x30) + 6,
    },
    "gfx1201": {
        "row_share:9": lambda n: (n & 0x30) + 9,
        "row_xmask:5": lambda n: (n & 0x30) + (n & 15 ^ 5),
    },
}
CASES = [(arch, control, source) for arch, own in ONLY.items() for control, source in (EVERYWHERE | own).items()]


def moved(
    source: Source,
    value: NDArray[Any],
    old: NDArray[Any],
    on: NDArray[np.bool_],
    *,
    rows: int = 15,
    banks: int = 15,
    bound: bool = False,
    inactive: bool = False,
) -> NDArray[Any]:
    """What a move leaves, lane by lane."""
    found = old.copy()
    for lane in np.flatnonzero(on):
        if not rows >> (lane // 16) & banks >> (lane % 16 // 4) & 1:
            continue
        other = source(int(lane))
        if other is not None and (on[other] or inactive):
            found[lane] = value[other]
        elif bound:
            found[lane] = 0
    return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("arch", "control", "source"), CASES, ids=lambda each: each if isinstance(each, str) else "")
def test_moves(arch: str, control: str, source: Source, engine: Any) -> None:
    lanes = 64 if arch == "gfx942" else 32
    random = np.random.default_rng(sum(map(ord, control)))
    value, other, *old = random.integers(0, 1 << 32, (7, lanes), np.uint32)
    on, mask = some_lanes(lanes, 4)
    every, later = "row_mask:0xf bank_mask:0xf", arch == "gfx1201"
    body = [
        *mask,
        f"v_mov_b32_dpp v10, v3 {control} {every}",
        f"v_mov_b32_dpp v11, v3 {control} {every} bound_ctrl:1",
        f"v_mov_b32_dpp v12, v3 {control} row_mask:0xa bank_mask:0x7",
        f"v_{'sub_nc' if later else 'sub'}_u32_dpp v13, v3, v4 {control} row_mask:0x5 bank_mask:0xe bound_ctrl:1",
        f"v_mov_b32_dpp v14, v3 {control} {every} {'fi:1' if later else ''}",
    ]
    given = dict(zip((3, 4, 10, 11, 12, 13, 14), (value, other, *old), strict=True))
    found = registers_after(body, engine, given, range(10, 15), arch=arch)
    np.testing.assert_array_equal(found[0], moved(source, value, old[0], on))
    np.testing.assert_array_equal(found[1], moved(source, value, old[1], on, bound=True))
    np.testing.assert_array_equal(found[2], moved(source, value, old[2], on, rows=0xA, banks=7))
    np.testing.assert_array_equal(found[4], moved(source, value, old[4], on, inactive=later))
    # The other source is the lane's own.
    taken, zero = np.zeros(lanes, np.uint32), np.zeros(lanes, np.uint32)
    written = moved(source, zero, zero + 1, on, rows=5, banks=0xE, bound=True) == 0
    taken = moved(source, value, zero, on, rows=5, banks=0xE, bound=True)
    np.testing.assert_array_equal(found[3], np.where(written, taken - other, old[3]))


@pytest.mark.parametrize("engine", ENGINES)
def test_signs_are_those_of_what_is_read(engine: Any) -> None:
    random = np.random.default_rng(2)
    value, other, old = random.standard_normal((3, 64)).astype(np.float32)
    body = ["v_add_f32_dpp v5, -v3, |v4| row_shr:1 row_mask:0xf bank_mask:0xf"]
    (found,) = registers_after(body, engine, {3: value, 4: other, 5: old}, [5])
    expected = np.where(np.arange(64) % 16 == 0, old, -np.roll(value, 1) + np.abs(other))
    np.testing.assert_array_equal(found.view(np.float32), expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_pairs_and_halves_of_registers_move(engine: Any) -> None:
    low, high, old_low, old_high = np.random.default_rng(4).integers(0, 1 << 32, (4, 64), np.uint32)
    given, lane = {4: low, 5: high, 6: old_low, 7: old_high}, np.arange(64)
    body = ["v_mov_b64_dpp v[6:7], v[4:5] row_newbcast:3 row_mask:0x6 bank_mask:0xf"]
    found = registers_after(body, engine, given, [6, 7])
    chosen = (lane // 16 == 1) | (lane // 16 == 2)
    for got, value, old in zip(found, (low, high), (old_low, old_high), strict=True):
        np.testing.assert_array_equal(got, np.where(chosen, value[lane - lane % 16 + 3], old))
    body = ["v_mov_b16_dpp v6.h, v4.l row_ror:1 row_mask:0xf bank_mask:0xf"]
    (got,) = registers_after(body, engine, {each: given[each][:32] for each in given}, [6], arch="gfx1201")
    turned = low[:32].reshape(2, 16)[:, (np.arange(16) - 1) % 16].reshape(32)
    np.testing.assert_array_equal(got, turned << 16 | old_low[:32] & 0xFFFF)
    body = ["v_add_nc_u16_e64_dpp v6, v4, v5 op_sel:[1,0,1] row_ror:1 row_mask:0xf bank_mask:0xf"]
    (got,) = registers_after(body, engine, {each: given[each][:32] for each in given}, [6], arch="gfx1100")
    np.testing.assert_array_equal(got, (turned >> 16) + high[:32] << 16 | old_low[:32] & 0xFFFF)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("arch", list(ONLY))
def test_comparisons_and_carries_of_what_moves(arch: str, engine: Any) -> None:
    """Masks have zeros in lanes that are off; what comes from outside of a row, or from a lane that is off, is zero."""
    lanes, later = (64, False) if arch == "gfx942" else (32, True)
    value, other, old = np.random.default_rng(8).integers(0, 1 << 32, (3, lanes), np.uint32)
    on, mask = some_lanes(lanes, 9)
    vcc, ones, carrying = ("vcc_lo", "s_mov_b32 vcc_lo, -1", "v_add_co_ci_u32") if later else (
        "vcc", "s_mov_b64 vcc, -1", "v_addc_co_u32")  # fmt: skip
    move = "row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1"
    body = [ones, *mask, f"{carrying}_dpp v5, {vcc}, v3, v4, {vcc} {move}", "v_mov_b32_e32 v7, 0"]
    body += [f"v_cndmask_b32_e64 v7, 0, 1, {vcc}"]
    if later:
        body += [f"v_cmp_lt_u32_dpp vcc_lo, v3, v4 {move}", "v_cndmask_b32_e64 v8, 0, 1, vcc_lo"]
    given = {3: value, 4: other, 5: old, 7: 0 * old, 8: 0 * old}
    found = registers_after(body, engine, given, [5, 7, 8], arch=arch)
    taken = moved(EVERYWHERE["row_shr:1"], value, value, on, bound=True).astype(np.int64)
    np.testing.assert_array_equal(found[0], np.where(on, taken + other + 1 & 0xFFFFFFFF, old))
    np.testing.assert_array_equal(found[1], on & (taken + other + 1 > 0xFFFFFFFF))
    np.testing.assert_array_equal(found[2], on & (taken < other) & later)


@pytest.mark.parametrize("engine", ENGINES)
def test_mixed_sources_move(engine: Any) -> None:
    values = np.random.default_rng(10).standard_normal((3, 64)).astype(np.float16).view(np.uint32)
    first, second, third = values
    line = "v_fma_mix_f32_e64_dpp v5, v3, v4, v6 op_sel:[1,0,0] op_sel_hi:[1,1,1] row_ror:1 row_mask:0xf bank_mask:0xf"
    (found,) = registers_after([line], engine, {3: first, 4: second, 6: third}, [5], arch="gfx1100")
    turned = first.reshape(2, 16)[:, (np.arange(16) - 1) % 16].reshape(32)
    a, b, c = (each.astype(np.uint16).view(np.float16).astype(np.float64) for each in (turned >> 16, second, third))
    np.testing.assert_array_equal(found.view(np.float32), (a * b + c).astype(np.float32))


@pytest.mark.parametrize("engine", ENGINES)
def test_moves_within_eight_lanes(engine: Any) -> None:
    order = [7, 0, 3, 3, 1, 2, 6, 5]
    value, first, second = np.random.default_rng(3).integers(0, 1 << 32, (3, 32), np.uint32)
    expected = value.reshape(4, 8)[:, order].reshape(32)
    body = [
        f"v_mov_b32_dpp v5, v3 dpp8:{str(order).replace(' ', '')}",
        "s_mov_b32 exec_lo, 0xf0f0a5",
        f"v_mov_b32_dpp v6, v3 dpp8:{str(order).replace(' ', '')} fi:1",
    ]
    found = registers_after(body, engine, {3: value, 5: first, 6: second}, [5, 6], arch="gfx1201")
    np.testing.assert_array_equal(found[0], expected)
    np.testing.assert_array_equal(found[1], np.where(0xF0F0A5 >> np.arange(32) & 1, expected, second))
