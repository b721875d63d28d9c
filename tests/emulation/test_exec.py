"""Lanes that are off keep what they hold, with zeros in masks; halves of a dual instruction read before they write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.emulation.text import ENGINES, registers_after, some_lanes

Words = NDArray[np.uint32]


def reals(words: Words) -> NDArray[np.float32]:
    return words.view(np.float32)


def wide(low: Words, high: Words) -> NDArray[np.uint64]:
    return low | high.astype(np.uint64) << np.uint64(32)


def split(value: NDArray[np.uint64]) -> list[Words]:
    return [value.astype(np.uint32), (value >> np.uint64(32)).astype(np.uint32)]


def packed(first: Words, second: Words) -> Words:
    halves = first.view(np.float16) + second.view(np.float16)
    return halves.view(np.uint32)


RESULTS: list[tuple[str, Callable[[Words, Words, Words, Words], Sequence[Any]]]] = [
    ("v_add_u32_e32 v7, v3, v4", lambda a, b, _, __: [a + b]),
    ("v_lshlrev_b64 v[7:8], 5, v[3:4]", lambda a, b, _, __: split(wide(a, b) << np.uint64(5))),
    ("v_mad_u64_u32 v[7:8], s[8:9], v3, v4, v[5:6]",
     lambda a, b, c, d: split(a.astype(np.uint64) * b + wide(c, d))),
    ("v_mul_lo_u16_e32 v7, v3, v4", lambda a, b, _, __: [(a & 0xFFFF) * (b & 0xFFFF) & 0xFFFF]),
    ("v_pk_add_f16 v7, v3, v4", lambda a, b, _, __: [packed(a, b)]),
    ("v_pk_add_f32 v[7:8], v[3:4], v[5:6]",
     lambda a, b, c, d: [(reals(a) + reals(c)).view(np.uint32), (reals(b) + reals(d)).view(np.uint32)]),
    ("v_cvt_f64_u32_e32 v[7:8], v3", lambda a, *_: split(a.astype(np.float64).view(np.uint64))),
]  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_lanes_that_are_off_keep_their_registers(engine: Any) -> None:
    random = np.random.default_rng(3)
    values = random.standard_normal((6, 128)).astype(np.float16).view(np.uint32)  # no number is none in any type
    on, mask = some_lanes(64, 5)
    for line, meant in RESULTS:
        old = values[4:]
        found = registers_after([*mask, line], engine, dict(zip(range(3, 9), values, strict=True)), [7, 8])
        expected = [np.where(on, *each) for each in zip([*meant(*values[:4]), old[1]], old, strict=False)]
        np.testing.assert_array_equal(found, np.stack(expected), err_msg=line)


def bit(condition: Any) -> Any:
    return np.asarray(condition).astype(np.uint32)


MASKS: list[tuple[str, Callable[[Words, Words], Any]]] = [
    ("v_cmp_lt_u32_e32 vcc, v3, v4", lambda a, b: a < b),
    ("v_cmp_ge_i32_e64 s[8:9], v3, v4", lambda a, b: a.view(np.int32) >= b.view(np.int32)),
    ("v_cmp_ne_u16_e64 s[8:9], v3, v4", lambda a, b: a & 0xFFFF != b & 0xFFFF),
    ("v_cmp_t_u32_e64 s[8:9], v3, v4", lambda a, _: a == a),  # noqa: PLR0124 - in every lane
    ("v_add_co_u32_e64 v5, s[8:9], v3, v4", lambda a, b: a.astype(np.int64) + b > 0xFFFFFFFF),
    ("v_sub_co_u32_e32 v5, vcc, v3, v4", lambda a, b: a < b),
    ("v_subrev_co_u32_e32 v5, vcc, v3, v4", lambda a, b: b < a),
    ("v_addc_co_u32_e64 v5, s[8:9], v3, v4, s[12:13]",
     lambda a, b: a.astype(np.int64) + b + (np.arange(64) % 2 == 1) > 0xFFFFFFFF),
    ("v_subb_co_u32_e64 v5, s[8:9], v3, v4, s[12:13]",
     lambda a, b: a.astype(np.int64) - b - (np.arange(64) % 2 == 1) < 0),
    ("v_mad_u64_u32 v[6:7], s[8:9], v3, v4, v[3:4]",
     lambda a, b: np.array([int(x) * int(y) + (int(x) | int(y) << 32) >> 64 for x, y in zip(a, b, strict=True)])),
]  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_masks_are_zero_in_lanes_that_are_off(engine: Any) -> None:
    values = np.random.default_rng(4).integers(0, 1 << 32, (2, 64), np.uint32)
    values[1, ::5] = values[0, ::5]
    on, mask = some_lanes(64, 6)
    before = [f"s_mov_b32 {each}, -1" for each in ("s8", "s9", "vcc_lo", "vcc_hi")]
    before += ["s_mov_b32 s12, 0xaaaaaaaa", "s_mov_b32 s13, 0xaaaaaaaa"]
    for line, meant in MASKS:
        name = "vcc" if " vcc," in line else "s[8:9]"
        after = ["s_mov_b64 exec, -1", f"v_cndmask_b32_e64 v7, 0, 1, {name}"]
        found = registers_after([*before, *mask, line, *after], engine, {3: values[0], 4: values[1]}, [7])
        np.testing.assert_array_equal(found[0], bit(on & (np.asarray(meant(*values)) != 0)), err_msg=line)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("arch", "lines"),
    [
        ("gfx942", ["v_cmpx_lt_u32_e32 vcc, v3, v4", "s_mov_b64 s[8:9], vcc"]),
        ("gfx942", ["v_cmpx_lt_u32_e64 s[8:9], v3, v4"]),
        ("gfx1201", ["s_mov_b32 s8, 0", "v_cmpx_lt_u32_e32 v3, v4", "s_mov_b32 s8, exec_lo"]),
        ("gfx1201", ["s_mov_b32 s8, 0", "v_cmpx_lt_u32_e64 v3, v4", "s_mov_b32 s8, exec_lo"]),
    ],
)
def test_comparisons_that_set_the_mask_of_lanes(arch: str, lines: list[str], engine: Any) -> None:
    """Lanes that were off stay so; on gfx9 the result is in a mask too."""
    lanes = 64 if arch == "gfx942" else 32
    first, second, old = np.random.default_rng(7).integers(0, 1 << 32, (3, lanes), np.uint32)
    on, mask = some_lanes(lanes, 8)
    every, name = ("s_mov_b64 exec, -1", "s[8:9]") if lanes == 64 else ("s_mov_b32 exec_lo, -1", "s8")
    body = [*mask, *lines, "v_mov_b32_e32 v5, 9", every, f"v_cndmask_b32_e64 v6, 0, 1, {name}"]
    found = registers_after(body, engine, {3: first, 4: second, 5: old}, [5, 6], arch=arch)
    taken = on & (first < second)
    np.testing.assert_array_equal(found[0], np.where(taken, 9, old))
    np.testing.assert_array_equal(found[1], bit(taken))


DUAL: list[tuple[str, Callable[[Words, Words, Words], tuple[Any, Any, Any]]]] = [
    # Each shows v3, v4 and v5 after it. Halves that swap, and halves that read what the other one writes.
    ("v_dual_mov_b32 v3, v4 :: v_dual_mov_b32 v4, v3", lambda a, b, c: (b, a, c)),
    ("v_dual_add_f32 v4, v3, v5 :: v_dual_mul_f32 v5, v4, v3",
     lambda a, b, c: (a, reals(a) + reals(c), reals(b) * reals(a))),
    ("v_dual_sub_f32 v3, v4, v5 :: v_dual_add_nc_u32 v4, v3, v5", lambda a, b, c: (reals(b) - reals(c), a + c, c)),
    ("v_dual_subrev_f32 v3, v4, v5 :: v_dual_lshlrev_b32 v4, 3, v3", lambda a, b, c: (reals(c) - reals(b), a << 3, c)),
    ("v_dual_max_f32 v4, v3, v5 :: v_dual_and_b32 v5, v4, v3",
     lambda a, b, c: (a, np.fmax(reals(a), reals(c)), b & a)),
    ("v_dual_min_f32 v4, v3, v5 :: v_dual_max_f32 v5, v4, v3",
     lambda a, b, c: (a, np.fmin(reals(a), reals(c)), np.fmax(reals(b), reals(a)))),
    ("v_dual_cndmask_b32 v3, v4, v5 :: v_dual_mov_b32 v4, v3",
     lambda a, b, c: (np.where(np.arange(32) % 4 < 2, c, b), a, c)),
    ("v_dual_fmac_f32 v4, 1.0, v3 :: v_dual_fmac_f32 v3, 1.0, v4",
     lambda a, b, c: (reals(a) + reals(b), reals(a) + reals(b), c)),
    ("v_dual_fmaak_f32 v3, 1.0, v4, 0x40000000 :: v_dual_fmamk_f32 v4, v3, 0x40000000, v5",
     lambda a, b, c: (reals(b) + np.float32(2), reals(a.copy()) * np.float32(2) + reals(c), c)),
]  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_both_halves_read_before_either_writes(engine: Any) -> None:
    values = np.round(np.random.default_rng(9).standard_normal((3, 32)) * 64).astype(np.float32).view(np.uint32)
    on, mask = some_lanes(32, 11)
    for line, meant in DUAL:
        body = ["s_mov_b32 vcc_lo, 0x33333333", *mask, line]
        found = registers_after(body, engine, dict(zip((3, 4, 5), values, strict=True)), [3, 4, 5], arch="gfx1100")
        for got, want, old in zip(found, meant(*values), values, strict=True):
            np.testing.assert_array_equal(got, np.where(on, np.asarray(want).view(np.uint32), old), err_msg=line)
