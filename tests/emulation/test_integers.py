"""Integer operations of the table against Python's integers, by the definitions of AMD's ISA documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from argosy.emulation.semantics import load_semantics
from argosy.emulation.semantics.arithmetic import TYPES
from argosy.emulation.semantics.table import OPERATIONS, width

load_semantics()

_EDGES = (0, 1, 2, 3, 7, 15, 16, 31, 32, 33, 63, 64, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000,
          0xFFFFFFFF, 0x12345678, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)  # fmt: skip
_W16, _W32, _W64 = (1 << 16) - 1, (1 << 32) - 1, (1 << 64) - 1


def signed(value: int, bits: int) -> int:
    """The low bits of a value, with their sign."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def low24(value: int) -> int:
    return value & 0xFFFFFF


def s24(value: int) -> int:
    return signed(value, 24)


def held(low: int, high: int) -> Callable[[int], int]:
    return lambda value: max(low, min(high, value))


def first_one(value: int, bits: int) -> int:
    return next((place for place in range(bits) if value >> place & 1), _W32)


def leading(value: int, bits: int) -> int:
    return bits - value.bit_length() if value else _W32


def field(value: int, place: int, size: int) -> int:
    return (value >> place) & ((1 << size) - 1)


EXPECTED: dict[str, Callable[..., Any]] = {
    "v_not_b32": lambda a: ~a,
    "v_add_u32": lambda a, b: a + b,
    "v_sub_u32": lambda a, b: a - b,
    "v_subrev_u32": lambda a, b: b - a,
    "v_add_u16": lambda a, b: a + b,
    "v_sub_u16": lambda a, b: a - b,
    "v_add3_u32": lambda a, b, c: a + b + c,
    "v_xad_u32": lambda a, b, c: (a ^ b) + c,
    "v_lshl_add_u32": lambda a, b, c: (a << (b & 31)) + c,
    "v_add_lshl_u32": lambda a, b, c: (a + b) << (c & 31),
    "v_lshl_or_b32": lambda a, b, c: (a << (b & 31)) | c,
    "v_add_u32@clamp": lambda a, b: held(0, _W32)(a + b),
    "v_sub_u32@clamp": lambda a, b: held(0, _W32)(a - b),
    "v_add_i32@clamp": lambda a, b: held(-(1 << 31), (1 << 31) - 1)(a + b),
    "v_sub_i32@clamp": lambda a, b: held(-(1 << 31), (1 << 31) - 1)(a - b),
    "v_add_u16@clamp": lambda a, b: held(0, _W16)(a + b),
    "v_sub_i16@clamp": lambda a, b: held(-(1 << 15), (1 << 15) - 1)(a - b),
    "v_add_co_u32": lambda a, b: (a + b, a + b > _W32),
    "v_sub_co_u32": lambda a, b: (a - b, b > a),
    "v_subrev_co_u32": lambda a, b: (b - a, a > b),
    "v_addc_co_u32": lambda a, b, c: (a + b + c, a + b + c > _W32),
    "v_subb_co_u32": lambda a, b, c: (a - b - c, b + c > a),
    "v_mul_lo_u32": lambda a, b: a * b,
    "v_mul_hi_u32": lambda a, b: a * b >> 32,
    "v_mul_hi_i32": lambda a, b: a * b >> 32,
    "v_mul_u32_u24": lambda a, b: low24(a) * low24(b),
    "v_mul_i32_i24": lambda a, b: s24(a) * s24(b),
    "v_mul_hi_u32_u24": lambda a, b: low24(a) * low24(b) >> 32,
    "v_mul_hi_i32_i24": lambda a, b: s24(a) * s24(b) >> 32,
    "v_mad_u32_u24": lambda a, b, c: low24(a) * low24(b) + c,
    "v_mad_i32_i24": lambda a, b, c: s24(a) * s24(b) + c,
    "v_and_b32": lambda a, b: a & b,
    "v_or_b32": lambda a, b: a | b,
    "v_xor_b32": lambda a, b: a ^ b,
    "v_xnor_b32": lambda a, b: ~(a ^ b),
    "v_and_or_b32": lambda a, b, c: (a & b) | c,
    "v_or3_b32": lambda a, b, c: a | b | c,
    "v_xor3_b32": lambda a, b, c: a ^ b ^ c,
    "v_lshlrev_b32": lambda by, a: a << (by & 31),
    "v_lshrrev_b32": lambda by, a: a >> (by & 31),
    "v_ashrrev_i32": lambda by, a: signed(a, 32) >> (by & 31),
    "v_lshlrev_b16": lambda by, a: a << (by & 15),
    "v_lshrrev_b16": lambda by, a: a >> (by & 15),
    "v_lshlrev_b64": lambda by, a: a << (by & 63),
    "v_lshrrev_b64": lambda by, a: a >> (by & 63),
    "v_ashrrev_i64": lambda by, a: signed(a, 64) >> (by & 63),
    "v_bfi_b32": lambda a, b, c: (a & b) | (~a & c),
    "v_bfm_b32": lambda size, place: ((1 << (size & 31)) - 1) << (place & 31),
    "v_bfe_u32": lambda a, place, size: field(a, place & 31, size & 31),
    "v_bfe_i32": lambda a, p, s: signed(field(signed(a, 32), p & 31, s & 31), s & 31) if s & 31 else 0,
    "v_bfrev_b32": lambda a: int(f"{a:032b}"[::-1], 2),
    "v_bcnt_u32_b32": lambda a, b: a.bit_count() + b,
    "v_ffbl_b32": lambda a: first_one(a, 32),
    "v_ffbh_u32": lambda a: leading(a, 32),
    "v_alignbit_b32": lambda a, b, by: (a << 32 | b) >> (by & 31),
    "v_alignbyte_b32": lambda a, b, by: (a << 32 | b) >> (8 * (by & 3)),
    "v_mad_u64_u32": lambda a, b, c: (a * b + c, a * b + c > _W64),
    "v_min3_u32": lambda *all_: min(all_),
    "v_max3_i32": lambda *all_: max(all_),
    "v_med3_i32": lambda *all_: sorted(all_)[1],
    "v_med3_u32": lambda *all_: sorted(all_)[1],
    "s_add_u32": lambda a, b: (a + b, a + b > _W32),
    "s_sub_u32": lambda a, b: (a - b, b > a),
    "s_addc_u32": lambda a, b, c: (a + b + c, a + b + c > _W32),
    "s_subb_u32": lambda a, b, c: (a - b - c, b + c > a),
    "s_add_i32": lambda a, b: (a + b, a + b != signed(a + b, 32)),
    "s_sub_i32": lambda a, b: (a - b, a - b != signed(a - b, 32)),
    "s_mul_i32": lambda a, b: a * b,
    "s_mul_hi_u32": lambda a, b: a * b >> 32,
    "s_abs_i32": lambda a: (abs(a), a != 0),
    "s_sext_i32_i8": lambda a: signed(a, 8),
    "s_sext_i32_i16": lambda a: signed(a, 16),
    "s_bfe_u32": lambda a, f: (field(a, f & 31, f >> 16 & 127), field(a, f & 31, f >> 16 & 127) != 0),
    "s_bfe_u64": lambda a, f: (field(a, f & 63, f >> 16 & 127), field(a, f & 63, f >> 16 & 127) != 0),
    "s_pack_ll_b32_b16": lambda a, b: a & _W16 | b << 16,
    "s_pack_lh_b32_b16": lambda a, b: a & _W16 | b & 0xFFFF0000,
    "s_pack_hh_b32_b16": lambda a, b: a >> 16 | b & 0xFFFF0000,
}
for _size, _every in ((32, _W32), (64, _W64)):
    EXPECTED |= {
        f"s_not_b{_size}": lambda a, e=_every: (~a, a != e),
        f"s_and_b{_size}": lambda a, b: (a & b, a & b != 0),
        f"s_or_b{_size}": lambda a, b: (a | b, a | b != 0),
        f"s_xor_b{_size}": lambda a, b: (a ^ b, a != b),
        f"s_nand_b{_size}": lambda a, b, e=_every: (~(a & b), a & b != e),
        f"s_nor_b{_size}": lambda a, b, e=_every: (~(a | b), a | b != e),
        f"s_xnor_b{_size}": lambda a, b, e=_every: (~(a ^ b), a ^ b != e),
        f"s_andn2_b{_size}": lambda a, b: (a & ~b, a & ~b != 0),
        f"s_lshl_b{_size}": lambda a, n, s=_size, e=_every: (a << n % s, (a << n % s) & e != 0),
        f"s_lshr_b{_size}": lambda a, n, s=_size: (a >> n % s, a >> n % s != 0),
        f"s_ashr_i{_size}": lambda a, n, s=_size: (a >> n % s, a >> n % s != 0),
        f"s_bcnt1_i32_b{_size}": lambda a: (a.bit_count(), a != 0),
        f"s_bcnt0_i32_b{_size}": lambda a, s=_size: (s - a.bit_count(), s != a.bit_count()),
        f"s_ff1_i32_b{_size}": lambda a, s=_size: first_one(a, s),
        f"s_flbit_i32_b{_size}": lambda a, s=_size: leading(a, s),
        f"s_bitcmp1_b{_size}": lambda a, n, s=_size: bool(a >> n % s & 1),
        f"s_bitset1_b{_size}": lambda n, old, s=_size: old | 1 << n % s,
        f"s_bitset0_b{_size}": lambda n, old, s=_size: old & ~(1 << n % s),
        f"s_bfm_b{_size}": lambda n, p, s=_size: ((1 << n % s) - 1) << p % s,
    }
for _kind in ("u16", "i16", "u32", "i32", "u64", "i64"):
    EXPECTED |= {f"v_min_{_kind}": min, f"v_max_{_kind}": max}
    for _name, _order in (
        ("lt", lambda a, b: a < b), ("le", lambda a, b: a <= b), ("gt", lambda a, b: a > b),
        ("ge", lambda a, b: a >= b), ("eq", lambda a, b: a == b), ("ne", lambda a, b: a != b),
    ):  # fmt: skip
        EXPECTED[f"v_cmp_{_name}_{_kind}"] = _order
        if _kind.endswith("32"):
            EXPECTED[f"s_cmp_{'lg' if _name == 'ne' else _name}_{_kind}"] = _order


def given(kind: str, random: np.random.Generator, count: int) -> list[int]:
    """Edges and arbitrary numbers of a type."""
    if kind in ("mask", "scc"):
        return [int(each) for each in random.integers(0, 2, count)]
    bits = width(kind)
    wide = [int(each) for each in random.integers(0, 1 << 63, count)]
    chosen = [_EDGES[int(each)] for each in random.integers(0, len(_EDGES), count)]
    raw = [a if place % 3 else b for place, (a, b) in enumerate(zip(chosen, wide, strict=True))]
    return [signed(each, bits) if kind[0] == "i" else each & ((1 << bits) - 1) for each in raw]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_integers(name: str) -> None:
    operation, random = OPERATIONS[name], np.random.default_rng(sum(map(ord, name)))
    sources = [given(kind, random, 400) for kind in operation.sources]
    arrays = [np.array(each, TYPES[kind]) for each, kind in zip(sources, operation.sources, strict=True)]
    with np.errstate(all="ignore"):
        found = operation.meaning(*arrays)
    results = found if isinstance(found, tuple) else (found,)
    for place, values in enumerate(zip(*sources, strict=True)):
        expected = EXPECTED[name](*values)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for kind, result, value in zip(operation.results, results, expected, strict=True):
            bits = 1 if kind in ("mask", "scc") else width(kind)
            got = int(np.broadcast_to(result, 400)[place]) & ((1 << bits) - 1)
            assert got == int(value) & ((1 << bits) - 1), (values, kind)
