"""Integer operations of each lane against Python's integers, by the definitions of AMD's ISA documents."""

from __future__ import annotations

import pytest

from tests.emulation.integers import W32, W64, Meant, field, first_one, judge, leading, sign_bits, signed


def low24(value: int) -> int:
    return value & 0xFFFFFF


def s24(value: int) -> int:
    return signed(value, 24)


def permuted(high: int, low: int, choice: int) -> int:
    """Bytes of two words by number; 8 to 11 are the signs of every second byte, 12 is zero, and what follows ones."""
    found = (high << 32 | low).to_bytes(8, "little")
    signs = [255 * (each >> 7) for each in found[1::2]]
    every = [*found, *signs, 0, *[255] * 243]
    return int.from_bytes(bytes(every[which] for which in choice.to_bytes(4, "little")), "little")


def looked_up(a: int, b: int, c: int, table: int, bits: int) -> int:
    """Each bit of the result is the one of the table that those of the sources number."""
    places = [4 * (a >> n & 1) + 2 * (b >> n & 1) + (c >> n & 1) for n in range(bits)]
    return sum((table >> place & 1) << n for n, place in enumerate(places))


EXPECTED: dict[str, Meant] = {
    "v_add_u32": lambda a, b: a + b,
    "v_sub_u32": lambda a, b: a - b,
    "v_subrev_u32": lambda a, b: b - a,
    "v_add_u16": lambda a, b: a + b,
    "v_sub_u16": lambda a, b: a - b,
    "v_add_i16": lambda a, b: a + b,
    "v_sub_i16": lambda a, b: a - b,
    "v_subrev_u16": lambda a, b: b - a,
    "v_add_nc_u64": lambda a, b: a + b,
    "v_sub_nc_u64": lambda a, b: a - b,
    "v_add3_u32": lambda a, b, c: a + b + c,
    "v_xad_u32": lambda a, b, c: (a ^ b) + c,
    "v_lshl_add_u32": lambda a, b, c: (a << (b & 31)) + c,
    "v_add_lshl_u32": lambda a, b, c: (a + b) << (c & 31),
    "v_lshl_or_b32": lambda a, b, c: (a << (b & 31)) | c,
    # Of a count, which lies in three bits, what is beyond 4 counts as 0.
    "v_lshl_add_u64": lambda a, n, c: (a << (n & 7 if n & 7 <= 4 else 0)) + c,
    "v_sad_u32": lambda a, b, c: abs(a - b) + c,
    "v_prng_b32": lambda a: a << 1 ^ (197 if a >> 31 else 0),
    "v_add_co_u32": lambda a, b: (a + b, a + b > W32),
    "v_sub_co_u32": lambda a, b: (a - b, b > a),
    "v_subrev_co_u32": lambda a, b: (b - a, a > b),
    "v_addc_co_u32": lambda a, b, c: (a + b + c, a + b + c > W32),
    "v_subb_co_u32": lambda a, b, c: (a - b - c, b + c > a),
    "v_subbrev_co_u32": lambda a, b, c: (b - a - c, a + c > b),
    "v_mul_lo_u32": lambda a, b: a * b,
    "v_mul_lo_u16": lambda a, b: a * b,
    "v_mul_u64": lambda a, b: a * b,
    "v_mul_hi_u32": lambda a, b: a * b >> 32,
    "v_mul_hi_i32": lambda a, b: a * b >> 32,
    "v_mul_u32_u24": lambda a, b: low24(a) * low24(b),
    "v_mul_i32_i24": lambda a, b: s24(a) * s24(b),
    "v_mul_hi_u32_u24": lambda a, b: low24(a) * low24(b) >> 32,
    "v_mul_hi_i32_i24": lambda a, b: s24(a) * s24(b) >> 32,
    "v_mad_u32_u24": lambda a, b, c: low24(a) * low24(b) + c,
    "v_mad_i32_i24": lambda a, b, c: s24(a) * s24(b) + c,
    "v_mad_u32": lambda a, b, c: a * b + c,
    "v_xnor_b32": lambda a, b: ~(a ^ b),
    "v_and_or_b32": lambda a, b, c: (a & b) | c,
    "v_or3_b32": lambda a, b, c: a | b | c,
    "v_xor3_b32": lambda a, b, c: a ^ b ^ c,
    "v_lshlrev_b32": lambda by, a: a << (by & 31),
    "v_lshrrev_b32": lambda by, a: a >> (by & 31),
    "v_ashrrev_i32": lambda by, a: signed(a, 32) >> (by & 31),
    "v_lshlrev_b16": lambda by, a: a << (by & 15),
    "v_lshrrev_b16": lambda by, a: a >> (by & 15),
    "v_ashrrev_i16": lambda by, a: a >> (by & 15),
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
    "v_ffbh_i32": lambda a: sign_bits(a, 32),
    "v_perm_b32": permuted,
    "v_alignbit_b32": lambda a, b, by: (a << 32 | b) >> (by & 31),
    "v_alignbyte_b32": lambda a, b, by: (a << 32 | b) >> (8 * (by & 3)),
    "v_mad_u64_u32": lambda a, b, c: (a * b + c, a * b + c > W64),
    "v_mad_i64_i32": lambda a, b, c: (a * b + c, a * b + c < 0),  # bit 64 of a sum of 65 bits
}
for _kind in ("u16", "i16", "u32", "i32"):
    _bits = int(_kind[1:])
    _most = (1 << (_bits - (_kind[0] == "i"))) - 1
    _least = -_most - 1 if _kind[0] == "i" else 0
    EXPECTED |= {
        f"v_add_{_kind}@clamp": lambda a, b, low=_least, high=_most: max(low, min(high, a + b)),
        f"v_sub_{_kind}@clamp": lambda a, b, low=_least, high=_most: max(low, min(high, a - b)),
        f"v_min3_{_kind}": lambda *all_: min(all_),
        f"v_max3_{_kind}": lambda *all_: max(all_),
        f"v_med3_{_kind}": lambda *all_: sorted(all_)[1],
    }
    if _bits == 16:
        EXPECTED |= {f"v_mad_{_kind}": lambda a, b, c: a * b + c, f"v_mad_legacy_{_kind}": lambda a, b, c: a * b + c}
    else:
        EXPECTED |= {
            f"v_mad_{_kind}_{_kind[0]}16": lambda a, b, c: a * b + c,
            f"v_mad_nc_{_kind[0]}64_{_kind}": lambda a, b, c: a * b + c,
            f"v_maxmin_{_kind}": lambda a, b, c: min(max(a, b), c),
            f"v_minmax_{_kind}": lambda a, b, c: max(min(a, b), c),
        }
for _bits in (16, 32, 64):
    EXPECTED[f"v_mov_b{_bits}"] = lambda a: a
for _bits in (16, 32):
    EXPECTED |= {
        f"v_not_b{_bits}": lambda a: ~a,
        f"v_and_b{_bits}": lambda a, b: a & b,
        f"v_or_b{_bits}": lambda a, b: a | b,
        f"v_xor_b{_bits}": lambda a, b: a ^ b,
        f"v_cndmask_b{_bits}": lambda no, yes, mask: yes if mask else no,
        f"v_bitop3_b{_bits}": lambda a, b, c, table, bits=_bits: looked_up(a, b, c, table, bits),
    }
for _kind in ("u16", "i16", "u32", "i32", "u64", "i64"):
    EXPECTED |= {
        f"v_min_{_kind}": min,
        f"v_max_{_kind}": max,
        f"v_cmp_f_{_kind}": lambda a, b: False,  # noqa: ARG005 - whatever they are
        f"v_cmp_lt_{_kind}": lambda a, b: a < b,
        f"v_cmp_eq_{_kind}": lambda a, b: a == b,
        f"v_cmp_le_{_kind}": lambda a, b: a <= b,
        f"v_cmp_gt_{_kind}": lambda a, b: a > b,
        f"v_cmp_ne_{_kind}": lambda a, b: a != b,
        f"v_cmp_ge_{_kind}": lambda a, b: a >= b,
        f"v_cmp_t_{_kind}": lambda a, b: True,  # noqa: ARG005
    }


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_integers(name: str) -> None:
    judge(name, EXPECTED[name])
