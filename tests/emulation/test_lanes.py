"""What moves values between lanes and files of registers, a case or more for each, by AMD's ISA documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.emulation.decode import LANES
from tests.emulation.text import ENGINES, registers_after, some_lanes

Words = NDArray[np.uint32]


@dataclass(frozen=True)
class Lanes:
    """The registers v3 to v6 before, and the lanes that are on while an instruction moves."""

    v3: Words
    v4: Words
    v5: Words
    v6: Words
    on: NDArray[np.bool_]


@dataclass(frozen=True)
class Case:
    """Lines with some lanes on, and what v5 and v6 hold after them and after `after`, with all lanes on."""

    lines: Sequence[str]
    meant: Callable[[Lanes], tuple[Words, Words]]
    arch: str = "gfx942"
    lanes: int = 64
    after: Sequence[str] = ()


def in_v5(meant: Callable[[Lanes], Any]) -> Callable[[Lanes], tuple[Words, Words]]:
    """A result in v5, of the lanes that are on."""
    return lambda g: (np.where(g.on, meant(g), g.v5).astype(np.uint32), g.v6)


def everywhere(meant: Callable[[Lanes], Any]) -> Callable[[Lanes], tuple[Words, Words]]:
    """One value in all lanes of v5."""
    return lambda g: (np.full_like(g.v5, meant(g)), g.v6)


def one_lane(lane: int, value: int) -> Callable[[Lanes], tuple[Words, Words]]:
    return lambda g: (np.where(np.arange(len(g.v5)) == lane, np.uint32(value), g.v5), g.v6)


def below(g: Lanes, bottom: int) -> Words:
    """For each lane, those bits of v3 that belong to lanes below it, of 32 from a lane on."""
    return np.array([int(v) & ((1 << max(0, min(32, n - bottom))) - 1) for n, v in enumerate(g.v3)], np.uint32)


def permuted(choice: int, *, other_row: bool = False, inactive: bool = False, zero: bool = False) -> Any:
    """Each lane of a row reads the one that four bits of the choice number, of its row or of the other one of two."""

    def meant(g: Lanes) -> tuple[Words, Words]:
        found = g.v5.copy()
        for lane in np.flatnonzero(g.on):
            source = (lane & 0x30 ^ (16 if other_row else 0)) + (choice >> (4 * (lane & 15)) & 15)
            if g.on[source] or inactive:
                found[lane] = g.v3[source]
            elif zero:
                found[lane] = 0
        return found, g.v6

    return meant


def swapped(size: int, *, inactive: bool = False, zero: bool = False) -> Any:
    """Rows of v5 whose number has a bit are swapped with those of v6 that lack it."""

    def meant(g: Lanes) -> tuple[Words, Words]:
        first, second = g.v5.copy(), g.v6.copy()
        for lane in np.flatnonzero(g.on):
            target, source = (first, g.v6) if lane & size else (second, g.v5)
            if g.on[lane ^ size] or inactive:
                target[lane] = source[lane ^ size]
            elif zero:
                target[lane] = 0
        return first, second

    return meant


def backward(g: Lanes, offset: int) -> Words:
    places = (g.v3 + np.uint32(offset)) // 4 % len(g.v3)
    return np.where(g.on[places], g.v4[places], 0)


def forward(g: Lanes, offset: int) -> Words:
    found = np.zeros_like(g.v4)
    for lane in np.flatnonzero(g.on):  # of those that name the same, the highest counts
        found[int(g.v3[lane] + np.uint32(offset)) // 4 % len(found)] = g.v4[lane]
    return found


PERMUTE = 0x0123456789ABCDEF ^ 0x1100220033004400
SCALARS = [f"s_mov_b32 s8, {PERMUTE & 0xFFFFFFFF:#x}", f"s_mov_b32 s9, {PERMUTE >> 32:#x}"]
TO_V5 = ["v_mov_b32_e32 v5, s10"]
ROW: dict[str, Any] = {"arch": "gfx1201", "lanes": 32}
CASES: dict[str, list[Case]] = {
    "v_readfirstlane_b32": [
        Case(["v_readfirstlane_b32 s10, v3"], everywhere(lambda g: g.v3[g.on.argmax()]), after=TO_V5),
        Case(["s_mov_b64 exec, 0", "v_readfirstlane_b32 s10, v3"], everywhere(lambda g: g.v3[0]), after=TO_V5),
    ],
    "v_readlane_b32": [
        Case(["v_readlane_b32 s10, v3, 37"], everywhere(lambda g: g.v3[37]), after=TO_V5),
        Case(["s_movk_i32 s8, 0x69", "v_readlane_b32 s10, v3, s8"], everywhere(lambda g: g.v3[0x29]), after=TO_V5),
        Case(["s_movk_i32 s8, 0x69", "v_readlane_b32 s10, v3, s8"], everywhere(lambda g: g.v3[9]), **ROW, after=TO_V5),
    ],
    "v_writelane_b32": [
        Case(["s_mov_b64 exec, 0", "s_movk_i32 s8, 0x51", "v_writelane_b32 v5, s8, 21"], one_lane(21, 0x51)),
        Case(["s_movk_i32 s8, 0x51", "v_writelane_b32 v5, 7, s8"], one_lane(0x11, 7)),
    ],
    "v_mbcnt_lo_u32_b32": [
        Case(["v_mbcnt_lo_u32_b32 v5, v3, v4"], in_v5(lambda g: np.bitwise_count(below(g, 0)) + g.v4)),
        Case(["v_mbcnt_lo_u32_b32 v5, v3, v4"], in_v5(lambda g: np.bitwise_count(below(g, 0)) + g.v4), **ROW),
    ],
    "v_mbcnt_hi_u32_b32": [
        Case(["v_mbcnt_hi_u32_b32 v5, v3, v4"], in_v5(lambda g: np.bitwise_count(below(g, 32)) + g.v4)),
        Case(["v_mbcnt_hi_u32_b32 v5, v3, v4"], in_v5(lambda g: g.v4), **ROW),
    ],
    "v_permlane16_b32": [
        Case([*SCALARS, "v_permlane16_b32 v5, v3, s8, s9"], permuted(PERMUTE), **ROW),
        Case([*SCALARS, "v_permlane16_b32 v5, v3, s8, s9 op_sel:[1,0]"], permuted(PERMUTE, inactive=True), **ROW),
        Case([*SCALARS, "v_permlane16_b32 v5, v3, s8, s9 op_sel:[0,1]"], permuted(PERMUTE, zero=True), **ROW),
    ],
    "v_permlanex16_b32": [
        Case([*SCALARS, "v_permlanex16_b32 v5, v3, s8, s9"], permuted(PERMUTE, other_row=True), **ROW),
        Case(
            [*SCALARS, "v_permlanex16_b32 v5, v3, s8, s9 op_sel:[1,1]"],
            permuted(PERMUTE, other_row=True, inactive=True),
            **ROW,
        ),
    ],
    "v_permlane64_b32": [
        Case(["v_permlane64_b32 v5, v3"], in_v5(lambda g: np.roll(g.v3, 32)), arch="gfx1100"),
        Case(["v_permlane64_b32 v5, v3"], lambda g: (g.v5, g.v6), **ROW),
    ],
    "v_permlane32_swap_b32": [
        Case(["v_permlane32_swap_b32_e32 v5, v6"], swapped(32), arch="gfx950"),
        Case(["v_permlane32_swap_b32_e64 v5, v6 fi:1"], swapped(32, inactive=True), arch="gfx950"),
    ],
    "v_permlane16_swap_b32": [
        Case(["v_permlane16_swap_b32_e32 v5, v6"], swapped(16), arch="gfx950"),
        Case(["v_permlane16_swap_b32_e64 v5, v6 bound_ctrl:1"], swapped(16, zero=True), arch="gfx950"),
    ],
    "v_swap_b32": [
        Case(["v_swap_b32 v5, v6"], lambda g: (np.where(g.on, g.v6, g.v5), np.where(g.on, g.v5, g.v6))),
    ],
    "v_accvgpr_write_b32": [
        Case(["v_accvgpr_write_b32 a3, v3", "v_accvgpr_read_b32 v5, a3"], in_v5(lambda g: g.v3)),
        Case(["v_accvgpr_write_b32 a3, -3", "v_accvgpr_read_b32 v5, a3"], in_v5(lambda _: np.uint32(2**32 - 3))),
    ],
    "v_accvgpr_read_b32": [
        Case(
            ["s_mov_b64 s[8:9], exec", "s_mov_b64 exec, -1", "v_accvgpr_write_b32 a3, v3", "v_accvgpr_write_b32 a4, v4",
             "s_mov_b64 exec, s[8:9]", "v_accvgpr_write_b32 a4, v3"],
            lambda g: (np.where(g.on, g.v3, g.v4), g.v3),
            after=["v_accvgpr_read_b32 v5, a4", "v_accvgpr_read_b32 v6, a3"],
        ),
    ],
    "v_accvgpr_mov_b32": [
        Case(["v_accvgpr_write_b32 a3, v3", "v_accvgpr_mov_b32 a7, a3", "v_accvgpr_read_b32 v5, a7"],
             in_v5(lambda g: g.v3)),
    ],
    "ds_bpermute_b32": [
        Case(["ds_bpermute_b32 v5, v3, v4 offset:12"], in_v5(lambda g: backward(g, 12))),
        Case(["ds_bpermute_b32 v5, v3, v4"], in_v5(lambda g: backward(g, 0)), **ROW),
    ],
    "ds_permute_b32": [
        Case(["ds_permute_b32 v5, v3, v4 offset:8"], in_v5(lambda g: forward(g, 8))),
        Case(["ds_permute_b32 v5, v3, v4"], in_v5(lambda g: forward(g, 0)), **ROW),
    ],
}  # fmt: skip


def listed(text: str) -> list[int]:
    """Lanes as the document lists them: from 1 on, in hexadecimal digits."""
    return [int(each, 16) - 1 for each in text.split(",")]


SWIZZLES: dict[str, list[int]] = {
    "swizzle(SWAP,16)": [n ^ 16 for n in range(32)],
    "swizzle(REVERSE,8)": [n ^ 7 for n in range(32)],
    "swizzle(BROADCAST,8,3)": [n - n % 8 + 3 for n in range(32)],
    "swizzle(QUAD_PERM,3,2,2,0)": [n - n % 4 + (3, 2, 2, 0)[n % 4] for n in range(32)],
    'swizzle(BITMASK_PERM,"01pip")': [n & 5 | 8 | ~n & 2 for n in range(32)],
    "swizzle(ROTATE,0,1)": [(n + 1) % 32 for n in range(32)],
    "swizzle(ROTATE,1,3)": [(n - 3) % 32 for n in range(32)],
    "swizzle(FFT,0)": listed("1,11,9,19,5,15,d,1d,3,13,b,1b,7,17,f,1f,2,12,a,1a,6,16,e,1e,4,14,c,1c,8,18,10,20"),
    "swizzle(FFT,16)": listed("1,9,5,d,3,b,7,f,2,a,6,e,4,c,8,10,11,19,15,1d,13,1b,17,1f,12,1a,16,1e,14,1c,18,20"),
    "swizzle(FFT,31)": list(range(32)),
    "0xc021": listed("1,4,3,6,5,8,7,a,9,c,b,e,d,10,f,12,11,14,13,16,15,18,17,1a,19,1c,1b,1e,1d,20,1f,2"),
    "0xc421": listed("1f,2,1,4,3,6,5,8,7,a,9,c,b,e,d,10,f,12,11,14,13,16,15,18,17,1a,19,1c,1b,1e,1d,20"),
    "0x80b1": [n ^ 1 for n in range(32)],
    "0x0c78": [(n & 24 | 3) ^ 3 for n in range(32)],
}


def swizzled(order: list[int]) -> Callable[[Lanes], tuple[Words, Words]]:
    def meant(g: Lanes) -> Words:
        every = np.array([base + each for base in range(0, len(g.v3), 32) for each in order])
        return np.where(g.on[every], g.v3[every], 0)

    return in_v5(meant)


CASES["ds_swizzle_b32"] = [
    Case([f"ds_swizzle_b32 v5, v3 offset:{text}"], swizzled(order)) for text, order in SWIZZLES.items()
]


def test_every_move_is_tested() -> None:
    assert set(CASES) == LANES


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", sorted(CASES))
def test_moves(name: str, engine: Any) -> None:
    for number, case in enumerate(CASES[name]):
        v3, v4, v5, v6 = np.random.default_rng(number).integers(0, 1 << 32, (4, case.lanes), np.uint32)
        on, mask = some_lanes(case.lanes, 8 + number)
        all_on = "s_mov_b64 exec, -1" if case.lanes == 64 else "s_mov_b32 exec_lo, -1"
        body = [*mask, *case.lines, all_on, *case.after]
        found = registers_after(body, engine, {3: v3, 4: v4, 5: v5, 6: v6}, [3, 4, 5, 6], arch=case.arch)
        expected = case.meant(Lanes(v3, v4, v5, v6, on))
        for got, want in zip(found, (v3, v4, *expected), strict=True):
            np.testing.assert_array_equal(got, want, err_msg=case.lines[-1])
