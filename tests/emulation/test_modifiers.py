"""What is written beside operands: halves, signs, factors and clamping, against numpy's arithmetic on the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.emulation.assembly import read_assembly
from argosy.emulation.decode import decode
from argosy.emulation.refusal import NotEmulated
from tests.emulation.text import ENGINES, kernel_text, registers_after

Words = NDArray[np.uint32]


def low(words: Words) -> NDArray[np.uint16]:
    return words.astype(np.uint16)


def high(words: Words) -> NDArray[np.uint16]:
    return (words >> 16).astype(np.uint16)


def in_low(value: Any, old: Any = 0) -> Words:
    """16 bits in the low half, with the other one of what was there."""
    made: Words = np.ascontiguousarray(value).view(np.uint16) | (np.asarray(old, np.uint32) & np.uint32(0xFFFF0000))
    return made


def in_high(value: Any, old: Words) -> Words:
    made: Words = (np.ascontiguousarray(value).view(np.uint16).astype(np.uint32) << np.uint32(16)) | low(old)
    return made


def half(bits: NDArray[np.uint16]) -> NDArray[np.float16]:
    return bits.view(np.float16)


def bits(value: Any) -> Words:
    return np.ascontiguousarray(value, np.float32).view(np.uint32)


EIGHTS = np.array([1, 2], ml_dtypes.float8_e4m3fnuz).view(np.uint16)
HALVES: dict[str, list[tuple[str, Callable[[Words, Words, Words, Words], Words]]]] = {
    # Some instructions of gfx9 keep the other half of their result's register, others clear it.
    "gfx942": [
        ("v_mad_u16 v5, v3, v4, v6 op_sel:[1,0,1,0]", lambda a, b, d, c: in_low(high(a) * low(b) + high(c), d)),
        ("v_mad_u16 v5, v3, v4, v6 op_sel:[0,1,0,1]", lambda a, b, d, c: in_high(low(a) * high(b) + low(c), d)),
        ("v_mad_i32_i16 v5, v3, v4, v6 op_sel:[1,1,0,0]",
         lambda a, b, _, c: high(a).view(np.int16).astype(np.int32).view(np.uint32)
         * high(b).view(np.int16).astype(np.int32).view(np.uint32) + c),
        ("v_min3_u16 v5, v3, 7, v6 op_sel:[1,0,0,1]",
         lambda a, _, d, c: in_high(np.minimum(np.minimum(high(a), 7), low(c)), d)),
        ("v_pack_b32_f16 v5, v3, v4 op_sel:[1,0,0]", lambda a, b, _, __: in_high(low(b), high(a).astype(np.uint32))),
        ("v_add_u16_e32 v5, v3, v4", lambda a, b, _, __: in_low(low(a) + low(b))),
        ("v_cvt_pk_fp8_f32 v5, 1.0, 2.0", lambda _, __, d, ___: in_low(EIGHTS, d)),
        ("v_cvt_pk_fp8_f32 v5, 1.0, 2.0 op_sel:[0,0,1]", lambda _, __, d, ___: in_high(EIGHTS, d)),
        ("v_add_i16 v5, v3, v4", lambda a, b, d, _: in_low(low(a) + low(b), d)),
        ("v_sub_i16 v5, v3, v4 op_sel:[1,0,1]", lambda a, b, d, _: in_high(high(a) - low(b), d)),
        ("v_mad_u16 v5, v3, 7, 0x12345678 op_sel:[0,0,1,0]", lambda a, _, d, __: in_low(low(a) * 7 + 0x1234, d)),
    ],
    "gfx1100": [
        ("v_add_nc_u16 v5, v3, v4 op_sel:[1,0,1]", lambda a, b, d, _: in_high(high(a) + low(b), d)),
        ("v_mad_i16 v5, v3, v4, v6 op_sel:[0,1,1,0]", lambda a, b, d, c: in_low(low(a) * high(b) + high(c), d)),
        ("v_max_u16 v5, v3, v4 op_sel:[0,0,1]", lambda a, b, d, _: in_high(np.maximum(low(a), low(b)), d)),
        ("v_lshlrev_b16 v5, 3, v4 op_sel:[0,1,0]", lambda _, b, d, __: in_low(high(b) << 3, d)),
    ],
    # Halves are operands of their own.
    "gfx1201": [
        ("v_mov_b16_e32 v5.h, v3.l", lambda a, _, d, __: in_high(low(a), d)),
        ("v_mov_b16_e32 v5.l, v3.h", lambda a, _, d, __: in_low(high(a), d)),
        ("v_not_b16_e32 v5.l, v3.h", lambda a, _, d, __: in_low(~high(a), d)),
        ("v_add_nc_u16 v5.h, v3.h, v4.l", lambda a, b, d, _: in_high(high(a) + low(b), d)),
        ("v_sub_nc_u16 v5.l, v3.l, v4.h", lambda a, b, d, _: in_low(low(a) - high(b), d)),
        ("v_mul_lo_u16 v5.l, v3.h, v4.h", lambda a, b, d, _: in_low(high(a) * high(b), d)),
        ("v_and_b16 v5.h, v3.h, v4.h", lambda a, b, d, _: in_high(high(a) & high(b), d)),
        ("v_ashrrev_i16 v5.h, 5, v3.h", lambda a, _, d, __: in_high(high(a).view(np.int16) >> 5, d)),
        ("v_mad_u16 v5.l, v3.h, v4.l, v6.h", lambda a, b, d, c: in_low(high(a) * low(b) + high(c), d)),
        ("v_mad_u32_u16 v5, v3.h, v4.l, v6", lambda a, b, _, c: high(a).astype(np.uint32) * low(b) + c),
        ("v_med3_i16 v5.h, v3.l, v4.h, v6.l",
         lambda a, b, d, c: in_high(np.sort([each.view(np.int16) for each in (low(a), high(b), low(c))], 0)[1], d)),
        ("v_pack_b32_f16 v5, v3.h, v4.l", lambda a, b, _, __: in_high(low(b), high(a).astype(np.uint32))),
        ("v_add_f16_e32 v5.h, v3.l, v4.h", lambda a, b, d, _: in_high(half(low(a)) + half(high(b)), d)),
        ("v_mul_f16_e64 v5.l, -v3.h, |v4.l|", lambda a, b, d, _: in_low(-half(high(a)) * np.abs(half(low(b))), d)),
        ("v_max_num_f16_e64 v5.l, v3.h, 2.0", lambda a, _, d, __: in_low(np.fmax(half(high(a)), np.float16(2)), d)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("arch", list(HALVES))
def test_halves(arch: str, engine: Any) -> None:
    random, lanes = np.random.default_rng(3), 64 if arch == "gfx942" else 32
    numbers = random.integers(0, 1 << 32, (4, lanes), np.uint32)
    finite = random.standard_normal((4, 2 * lanes)).astype(np.float16).view(np.uint32)
    for line, meant in HALVES[arch]:
        a, b, old, c = values = finite if "_f16" in line and "pack" not in line else numbers
        (found,) = registers_after([line], engine, dict(zip((3, 4, 5, 6), values, strict=True)), [5], arch=arch)
        np.testing.assert_array_equal(found, meant(a, b, old, c), err_msg=line)


def pair(low_half: Any, high_half: Any) -> Words:
    return in_high(high_half, in_low(low_half))


CONSTANTS: list[tuple[str, Callable[[Words], Words]]] = [
    # An integer has 32 bits, of which the high half is the sign; for both halves it is picked from the low one.
    ("v_pk_add_u16 v5, v3, 7", lambda a: pair(low(a) + 7, high(a))),
    ("v_pk_add_u16 v5, v3, 7 op_sel_hi:[1,0]", lambda a: pair(low(a) + 7, high(a) + 7)),
    ("v_pk_sub_i16 v5, v3, -3", lambda a: pair(low(a) + 3, high(a) + 1)),
    ("v_pk_lshlrev_b16 v5, 4, v3 op_sel_hi:[0,1]", lambda a: pair(low(a) << 4, high(a) << 4)),
    ("v_pk_lshrrev_b16 v5, v3, 0x12348765", lambda a: pair(0x8765 >> (low(a) & 15), 0x1234 >> (high(a) & 15))),
    ("v_pk_max_u16 v5, v3, s8 op_sel:[1,0] op_sel_hi:[0,1]",
     lambda a: pair(np.maximum(high(a), 0x5678), np.maximum(low(a), 0x1234))),
    # A float is in the low half, in half precision; for integers it is one of 32 bits.
    ("v_pk_mul_f16 v5, v3, 2.0", lambda a: pair(half(low(a)) * np.float16(2), half(high(a)) * np.float16(0))),
    ("v_pk_mul_f16 v5, v3, 2.0 op_sel_hi:[1,0]", lambda a: pair(half(low(a)) * 2, half(high(a)) * 2)),
    ("v_pk_add_u16 v5, v3, 1.0", lambda a: pair(low(a), high(a) + 0x3F80)),
    ("v_pk_mul_f16 v5, v3, v3 neg_lo:[1,0] neg_hi:[0,0]",
     lambda a: pair(-half(low(a)) * half(low(a)), half(high(a)) * half(high(a)))),
]  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_constants_and_halves_of_packed_operations(engine: Any) -> None:
    random = np.random.default_rng(7)
    numbers = random.integers(0, 1 << 32, 64, np.uint32)
    finite = random.standard_normal(128).astype(np.float16).view(np.uint32)
    for line, meant in CONSTANTS:
        values = finite if "_f16" in line else numbers
        (found,) = registers_after(["s_mov_b32 s8, 0x12345678", line], engine, {3: values}, [5])
        np.testing.assert_array_equal(found, meant(values), err_msg=line)


def held(value: Any) -> Any:
    """Between 0 and 1; what is no number, and a zero of any sign, is 0."""
    return np.where(value > 0, np.minimum(value, 1), 0).astype(value.dtype)


SIGNS: list[tuple[str, Callable[..., Any]]] = [
    ("v_add_f32_e64 v5, -v3, |v4|", lambda a, b, _: -a + np.abs(b)),
    ("v_mul_f32_e64 v5, -|v3|, v4", lambda a, b, _: -np.abs(a) * b),
    ("v_sub_f32_e64 v5, |v3|, -v4", lambda a, b, _: np.abs(a) - -b),
    ("v_max_f32_e64 v5, -v3, -v4", lambda a, b, _: np.fmax(-a, -b)),
    ("v_mov_b32_e32 v5, v3", lambda a, _, __: a),
    ("v_add_f32_e64 v5, -s8, v3", lambda a, _, __: np.float32(-1.5) + a),
    ("v_mul_f32_e64 v5, |s9|, v3", lambda a, _, __: np.float32(2.5) * a),
    ("v_med3_f32 v5, -v3, |v4|, v6", lambda a, b, c: np.sort([-a, np.abs(b), c], 0)[1]),
    ("v_cndmask_b32_e64 v5, -v3, |v4|, s[10:11]", lambda a, b, _: np.where(np.arange(64) < 32, np.abs(b), -a)),
    ("v_floor_f32_e64 v5, -v3", lambda a, _, __: np.floor(-a)),
    ("v_add_f32_e64 v5, v3, v4 clamp", lambda a, b, _: held(a + b)),
    ("v_mul_f32_e64 v5, v3, 0 clamp", lambda a, _, __: held(a * np.float32(0))),
    ("v_add_f32_e64 v5, v3, s12 clamp", lambda a, _, __: np.zeros_like(a)),
    ("v_add_f32_e64 v5, v3, v4 mul:2", lambda a, b, _: (a + b) * 2),
    ("v_add_f32_e64 v5, v3, v4 mul:4", lambda a, b, _: (a + b) * 4),
    ("v_mul_f32_e64 v5, v3, v4 div:2", lambda a, b, _: (a * b) / 2),
    ("v_add_f32_e64 v5, v3, -v4 clamp mul:2", lambda a, b, _: held((a - b) * 2)),
]  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_signs_clamping_and_factors(engine: Any) -> None:
    values = np.random.default_rng(4).standard_normal((3, 64)).astype(np.float32)
    values[:2, :4] = [[0.0, -0.0, 0.5, -0.5], [-0.0, -0.0, 0.5, 0.5]]
    contents = {
        8: 0x3FC00000,
        9: 0xC0200000,
        10: 0xFFFFFFFF,
        11: 0,
        12: 0x7FC00000,
    }  # 1.5, -2.5, half a mask, no number
    scalars = [f"s_mov_b32 s{number}, {content:#x}" for number, content in contents.items()]
    for line, meant in SIGNS:
        (found,) = registers_after([*scalars, line], engine, dict(zip((3, 4, 6), values, strict=True)), [5])
        np.testing.assert_array_equal(found, bits(meant(*values)), err_msg=line)


@pytest.mark.parametrize("engine", ENGINES)
def test_signs_of_doubles_and_clamping_of_halves(engine: Any) -> None:
    random = np.random.default_rng(5)
    first, second = random.standard_normal((2, 64))
    words = [each.view(np.uint32).reshape(64, 2)[:, place] for each in (first, second) for place in (0, 1)]
    small = random.standard_normal((2, 128)).astype(np.float16).view(np.uint32)
    body = ["v_add_f64 v[10:11], -v[4:5], |v[6:7]|", "v_add_f16_e64 v12, v8, -v9 clamp"]
    found = registers_after(body, engine, dict(zip(range(4, 10), (*words, *small), strict=True)), [10, 11, 12])
    np.testing.assert_array_equal(found[:2].T.reshape(-1).view(np.float64), -first + np.abs(second))
    expected = held(half(low(small[0])) - half(low(small[1])))
    np.testing.assert_array_equal(found[2], in_low(expected))


CLAMPED = {
    f"v_{what}{new}_{kind}": (arch, what, kind)
    for arch, new in (("gfx942", ""), ("gfx1201", "_nc"))
    for what in ("add", "sub")
    for kind in ("u32", "i32", "u16", "i16")
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", list(CLAMPED))
def test_integers_are_held_within_their_type(name: str, engine: Any) -> None:
    arch, what, kind = CLAMPED[name]
    limits, lanes = np.iinfo({"u": "uint", "i": "int"}[kind[0]] + kind[1:]), 64 if arch == "gfx942" else 32
    values = np.random.default_rng(6).integers(0, 1 << 32, (3, lanes), np.uint32)
    suffix = "_e64" if (kind in ("u32", "u16") and arch == "gfx942") or kind == "u32" else ""
    halves = ("v5.l", "v3.l", "v4.l") if arch == "gfx1201" and kind.endswith("16") else ("v5", "v3", "v4")
    line = f"{name}{suffix} {', '.join(halves)} clamp"
    (found,) = registers_after([line], engine, dict(zip((3, 4, 5), values, strict=True)), [5], arch=arch)
    first, second = (
        each.astype(f"u{limits.dtype.itemsize}").view(limits.dtype).astype(np.int64) for each in values[:2]
    )
    exact = first + second if what == "add" else first - second
    expected = np.clip(exact, limits.min, limits.max).astype(limits.dtype)
    kept = np.uint32(0) if name in ("v_add_u16", "v_sub_u16") else values[2]
    whole = expected.view(np.uint32) if limits.dtype.itemsize == 4 else in_low(expected, kept)
    np.testing.assert_array_equal(found, whole)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "line",
    ["v_mad_u32_u24 v5, v3, v4, v3 clamp", "v_pk_mad_u16 v5, v3, v4, v3 clamp", "v_add_co_u32 v5, vcc, v3, v4 clamp"],
)
def test_other_clamping_is_refused(line: str, engine: Any) -> None:
    with pytest.raises(NotEmulated, match="clamp"):
        registers_after([line], engine, {3: np.zeros(64, np.uint32), 4: np.zeros(64, np.uint32)}, [5])


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("v_add3_u32 v5, v3, v4, v3 op_sel:[1,0,0,0]", "op_sel of v_add3_u32"),
        ("v_mad_u32_u16 v5, v3, v4, v3 op_sel:[1,0,0,1]", "op_sel of v_mad_u32_u16"),
        ("v_dot2_f32_f16 v5, v3, v4, v3 neg_lo:[1,0,0]", "neg_lo of v_dot2_f32_f16"),
        ("v_dot4_i32_i8 v5, v3, v4, v3 op_sel_hi:[0,0,0]", "op_sel_hi of v_dot4_i32_i8"),
        ("v_dot4_i32_iu8 v5, v3, v4, v3 neg_lo:[1,1,0] neg_hi:[1,0,0]", "neg_hi of v_dot4_i32_iu8"),
        ("v_pk_add_u16_e64_dpp v5, v3, v4 row_ror:1 row_mask:0xf bank_mask:0xf", "a move of a source of v_pk_add_u16"),
    ],
)
def test_halves_that_are_not_there_are_refused(line: str, told: str) -> None:
    with pytest.raises(NotEmulated, match=told):
        decode(read_assembly(kernel_text([line], "gfx1100")))
