"""Integer and bit operations of each lane."""

from __future__ import annotations

from typing import Any

from argosy.emulation.semantics.arithmetic import (
    bits,
    convert,
    count_leading,
    count_ones,
    count_trailing,
    greatest,
    least,
    reverse,
    select,
)
from argosy.emulation.semantics.table import operation

_32 = "u32 u32"


def _high(kind: str) -> Any:
    wide = f"{kind[0]}64"
    return lambda a, b: convert((convert(a, wide) * convert(b, wide)) >> 32, kind)


def _low24(a: Any) -> Any:
    return a & 0xFFFFFF


def _signed24(a: Any) -> Any:
    return (a << 8) >> 8


# ------------------------------------------------------------------------------------------------------ moves
operation("v_mov_b32", "b32", "b32")(lambda a: a)
operation("v_mov_b16", "b16", "b16")(lambda a: a)
operation("v_mov_b64", "b64", "b64")(lambda a: a)
operation("v_cndmask_b32", "b32", "b32 b32 mask")(lambda no, yes, mask: select(mask, yes, no))
operation("v_cndmask_b16", "b16", "b16 b16 mask")(lambda no, yes, mask: select(mask, yes, no))
operation("v_not_b32", "u32", "u32")(lambda a: ~a)
operation("v_not_b16", "u16", "u16")(lambda a: ~a)

# ------------------------------------------------------------------------------------------------------ sums
operation("v_add_u32 v_add_nc_u32 v_add_i32 v_add_nc_i32", "u32", _32)(lambda a, b: a + b)
operation("v_sub_u32 v_sub_nc_u32 v_sub_i32 v_sub_nc_i32", "u32", _32)(lambda a, b: a - b)
operation("v_subrev_u32 v_subrev_nc_u32", "u32", _32)(lambda a, b: b - a)
operation("v_add_u16 v_add_nc_u16", "u16", "u16 u16")(lambda a, b: a + b)
operation("v_sub_u16 v_sub_nc_u16", "u16", "u16 u16")(lambda a, b: a - b)
operation("v_add_i16 v_add_nc_i16", "i16", "i16 i16", clears=False)(lambda a, b: a + b)
operation("v_sub_i16 v_sub_nc_i16", "i16", "i16 i16", clears=False)(lambda a, b: a - b)
operation("v_subrev_u16", "u16", "u16 u16")(lambda a, b: b - a)
operation("v_add_nc_u64 v_add_u64", "u64", "u64 u64")(lambda a, b: a + b)
operation("v_sub_nc_u64 v_sub_u64", "u64", "u64 u64")(lambda a, b: a - b)
operation("v_add3_u32", "u32", "u32 u32 u32")(lambda a, b, c: a + b + c)
operation("v_xad_u32", "u32", "u32 u32 u32")(lambda a, b, c: (a ^ b) + c)
operation("v_lshl_add_u32", "u32", "u32 u32 u32")(lambda a, b, c: (a << (b & 31)) + c)
operation("v_add_lshl_u32", "u32", "u32 u32 u32")(lambda a, b, c: (a + b) << (c & 31))
# The count lies in three bits; hardware takes those beyond 4 as 0.
operation("v_lshl_add_u64", "u64", "u64 u32 u64")(
    lambda a, b, c: (a << convert(select((b & 7) > 4, b & 0, b & 7), "u64")) + c
)
operation("v_prng_b32", "u32", "u32")(lambda a: (a << 1) ^ (0 - (a >> 31) & 197))
operation("v_sad_u32", "u32", "u32 u32 u32")(lambda a, b, c: select(a > b, a - b, b - a) + c)


# With `clamp`, what is beyond the type is its least or greatest number.
def _saturated(found: Any, over: Any, under: Any, least_one: int, greatest_one: int) -> Any:
    return select(over, (found & 0) | greatest_one, select(under, (found & 0) | least_one, found))


for _size in (16, 32):
    _u, _i, _top = f"u{_size}", f"i{_size}", (1 << (_size - 1)) - 1
    operation(f"v_add_{_u}@clamp v_add_nc_{_u}@clamp", _u, f"{_u} {_u}")(
        lambda a, b, most=2 * _top + 1: _saturated(a + b, a + b < a, (a & 0) != 0, 0, most)
    )
    operation(f"v_sub_{_u}@clamp v_sub_nc_{_u}@clamp", _u, f"{_u} {_u}")(
        lambda a, b, most=2 * _top + 1: _saturated(a - b, (a & 0) != 0, a < b, 0, most)
    )
    operation(f"v_add_{_i}@clamp v_add_nc_{_i}@clamp", _i, f"{_i} {_i}", clears=False)(
        lambda a, b, top=_top: _saturated(
            a + b, (a >= 0) & (b >= 0) & (a + b < 0), (a < 0) & (b < 0) & (a + b >= 0), -top - 1, top
        )
    )
    operation(f"v_sub_{_i}@clamp v_sub_nc_{_i}@clamp", _i, f"{_i} {_i}", clears=False)(
        lambda a, b, top=_top: _saturated(
            a - b, (a >= 0) & (b < 0) & (a - b < 0), (a < 0) & (b >= 0) & (a - b >= 0), -top - 1, top
        )
    )


def _sum(a: Any, b: Any) -> Any:
    found = a + b
    return found, found < a


def _difference(a: Any, b: Any) -> Any:
    return a - b, a < b


def _sum_carried(a: Any, b: Any, carry: Any) -> Any:
    wide = convert(a, "u64") + convert(b, "u64") + convert(carry, "u64")
    return convert(wide, "u32"), wide > 0xFFFFFFFF


def _difference_carried(a: Any, b: Any, carry: Any) -> Any:
    taken = convert(b, "u64") + convert(carry, "u64")
    return convert(convert(a, "u64") - taken, "u32"), convert(a, "u64") < taken


operation("v_add_co_u32", "u32 mask", _32)(_sum)
operation("v_sub_co_u32", "u32 mask", _32)(_difference)
operation("v_subrev_co_u32", "u32 mask", _32)(lambda a, b: _difference(b, a))
operation("v_addc_co_u32 v_add_co_ci_u32", "u32 mask", "u32 u32 mask")(_sum_carried)
operation("v_subb_co_u32 v_sub_co_ci_u32", "u32 mask", "u32 u32 mask")(_difference_carried)
operation("v_subbrev_co_u32 v_subrev_co_ci_u32", "u32 mask", "u32 u32 mask")(
    lambda a, b, carry: _difference_carried(b, a, carry)
)

# ------------------------------------------------------------------------------------------------------ products
operation("v_mul_lo_u32", "u32", _32)(lambda a, b: a * b)
operation("v_mul_lo_u16", "u16", "u16 u16")(lambda a, b: a * b)
operation("v_mul_hi_u32", "u32", _32)(_high("u32"))
operation("v_mul_hi_i32", "i32", "i32 i32")(_high("i32"))
operation("v_mul_u32_u24", "u32", _32)(lambda a, b: _low24(a) * _low24(b))
operation("v_mul_i32_i24", "i32", "i32 i32")(lambda a, b: _signed24(a) * _signed24(b))
operation("v_mul_hi_u32_u24", "u32", _32)(lambda a, b: _high("u32")(_low24(a), _low24(b)))
operation("v_mul_hi_i32_i24", "i32", "i32 i32")(lambda a, b: _high("i32")(_signed24(a), _signed24(b)))
operation("v_mad_u32_u24", "u32", "u32 u32 u32")(lambda a, b, c: _low24(a) * _low24(b) + c)
operation("v_mad_i32_i24", "i32", "i32 i32 i32")(lambda a, b, c: _signed24(a) * _signed24(b) + c)
operation("v_mad_u32_u16", "u32", "u16 u16 u32")(lambda a, b, c: convert(a, "u32") * convert(b, "u32") + c)
operation("v_mad_i32_i16", "i32", "i16 i16 i32")(lambda a, b, c: convert(a, "i32") * convert(b, "i32") + c)
operation("v_mad_u16", "u16", "u16 u16 u16", clears=False)(lambda a, b, c: a * b + c)
operation("v_mad_i16", "i16", "i16 i16 i16", clears=False)(lambda a, b, c: a * b + c)
# These clear the upper half of the result's register, which those of the new names keep.
operation("v_mad_legacy_u16", "u16", "u16 u16 u16")(lambda a, b, c: a * b + c)
operation("v_mad_legacy_i16", "i16", "i16 i16 i16")(lambda a, b, c: a * b + c)
operation("v_mul_u64", "u64", "u64 u64")(lambda a, b: a * b)


@operation("v_mad_u64_u32 v_mad_co_u64_u32", "u64 mask", "u32 u32 u64")
def _(a: Any, b: Any, c: Any) -> Any:
    product = convert(a, "u64") * convert(b, "u64")
    return product + c, product + c < product


@operation("v_mad_i64_i32 v_mad_co_i64_i32", "i64 mask", "i32 i32 i64")
def _(a: Any, b: Any, c: Any) -> Any:
    product = convert(a, "i64") * convert(b, "i64")
    total = product + c
    # The mask has bit 64 of the sum: the sign that it has in 65 bits.
    return total, ((product < 0) & (c < 0)) | (((product < 0) | (c < 0)) & (total < 0))


operation("v_mad_nc_u64_u32", "u64", "u32 u32 u64")(lambda a, b, c: convert(a, "u64") * convert(b, "u64") + c)
operation("v_mad_nc_i64_i32", "i64", "i32 i32 i64")(lambda a, b, c: convert(a, "i64") * convert(b, "i64") + c)

# ------------------------------------------------------------------------------------------------------ orders
for _kind in ("u16", "i16", "u32", "i32", "u64", "i64"):
    operation(f"v_min_{_kind}", _kind, f"{_kind} {_kind}")(least)
    operation(f"v_max_{_kind}", _kind, f"{_kind} {_kind}")(greatest)
for _kind in ("u16", "i16", "u32", "i32"):
    _three = f"{_kind} {_kind} {_kind}"
    operation(f"v_min3_{_kind}", _kind, _three, clears=False)(lambda a, b, c: least(least(a, b), c))
    operation(f"v_max3_{_kind}", _kind, _three, clears=False)(lambda a, b, c: greatest(greatest(a, b), c))
    operation(f"v_med3_{_kind}", _kind, _three, clears=False)(
        lambda a, b, c: greatest(least(a, b), least(greatest(a, b), c))
    )
for _kind in ("u32", "i32"):
    _three = f"{_kind} {_kind} {_kind}"
    operation(f"v_maxmin_{_kind}", _kind, _three)(lambda a, b, c: least(greatest(a, b), c))
    operation(f"v_minmax_{_kind}", _kind, _three)(lambda a, b, c: greatest(least(a, b), c))

# ------------------------------------------------------------------------------------------------------ bits
operation("v_and_b32", "u32", _32)(lambda a, b: a & b)
operation("v_or_b32", "u32", _32)(lambda a, b: a | b)
operation("v_xor_b32", "u32", _32)(lambda a, b: a ^ b)
operation("v_xnor_b32", "u32", _32)(lambda a, b: ~(a ^ b))
operation("v_and_b16", "u16", "u16 u16")(lambda a, b: a & b)
operation("v_or_b16", "u16", "u16 u16")(lambda a, b: a | b)
operation("v_xor_b16", "u16", "u16 u16")(lambda a, b: a ^ b)
operation("v_and_or_b32", "u32", "u32 u32 u32")(lambda a, b, c: (a & b) | c)
operation("v_or3_b32", "u32", "u32 u32 u32")(lambda a, b, c: a | b | c)
operation("v_xor3_b32", "u32", "u32 u32 u32")(lambda a, b, c: a ^ b ^ c)
operation("v_lshl_or_b32", "u32", "u32 u32 u32")(lambda a, b, c: (a << (b & 31)) | c)
operation("v_lshlrev_b32", "u32", _32)(lambda by, a: a << (by & 31))
operation("v_lshrrev_b32", "u32", _32)(lambda by, a: a >> (by & 31))
operation("v_ashrrev_i32", "i32", "u32 i32")(lambda by, a: a >> convert(by & 31, "i32"))
operation("v_lshlrev_b16", "u16", "u16 u16")(lambda by, a: a << (by & 15))
operation("v_lshrrev_b16", "u16", "u16 u16")(lambda by, a: a >> (by & 15))
operation("v_ashrrev_i16", "i16", "u16 i16")(lambda by, a: a >> convert(by & 15, "i16"))
operation("v_lshlrev_b64", "u64", "u32 u64")(lambda by, a: a << convert(by & 63, "u64"))
operation("v_lshrrev_b64", "u64", "u32 u64")(lambda by, a: a >> convert(by & 63, "u64"))
operation("v_ashrrev_i64", "i64", "u32 i64")(lambda by, a: a >> convert(by & 63, "i64"))
operation("v_bfi_b32", "u32", "u32 u32 u32")(lambda mask, a, b: (mask & a) | (~mask & b))
operation("v_bfm_b32", "u32", _32)(lambda size, place: ((1 << convert(size & 31, "u32")) - 1) << (place & 31))
operation("v_bfrev_b32", "u32", "u32")(reverse)
operation("v_bcnt_u32_b32", "u32", _32)(lambda a, b: count_ones(a) + b)
operation("v_ffbl_b32 v_ctz_i32_b32", "u32", "u32")(count_trailing)
operation("v_ffbh_u32 v_clz_i32_u32", "u32", "u32")(count_leading)
operation("v_ffbh_i32 v_cls_i32", "u32", "i32")(lambda a: count_leading(bits(a ^ (a >> 31), "u32")))
operation("v_alignbit_b32", "u32", "u32 u32 u32")(
    lambda high, low, by: convert(
        ((convert(high, "u64") << 32) | convert(low, "u64")) >> convert(by & 31, "u64"), "u32"
    )
)
operation("v_alignbyte_b32", "u32", "u32 u32 u32")(
    lambda high, low, by: convert(
        ((convert(high, "u64") << 32) | convert(low, "u64")) >> convert((by & 3) * 8, "u64"), "u32"
    )
)


@operation("v_bfe_u32", "u32", "u32 u32 u32")
def _(a: Any, place: Any, size: Any) -> Any:
    return (a >> (place & 31)) & ((1 << (size & 31)) - 1)


@operation("v_bfe_i32", "i32", "i32 u32 u32")
def _(a: Any, place: Any, size: Any) -> Any:
    """The bits from `place` on, as many as `size` says or there are, with the highest of them as the sign."""
    size, place = size & 31, place & 31
    moved = a >> convert(place, "i32")
    shift = convert(32 - size, "i32") & 31
    return select(size == 0, 0, select(size + place >= 32, moved, (moved << shift) >> shift))


def _truth(a: Any, b: Any, c: Any, table: Any) -> Any:
    """Any function of three bits: bit 4a + 2b + c of the table."""
    found = a & 0
    for place in range(8):
        chosen = 0 - ((table >> place) & 1)
        term = (a if place & 4 else ~a) & (b if place & 2 else ~b) & (c if place & 1 else ~c)
        found = found | (term & chosen)
    return found


operation("v_bitop3_b32", "u32", "u32 u32 u32 u32")(_truth)
operation("v_bitop3_b16", "u16", "u16 u16 u16 u16", clears=False)(_truth)
operation("v_mad_u32", "u32", "u32 u32 u32")(lambda a, b, c: a * b + c)


@operation("v_perm_b32", "u32", "u32 u32 u32")
def _(high: Any, low: Any, choice: Any) -> Any:
    """Each byte of `choice` picks one of eight bytes, a sign spread over a byte, zero or ones."""
    both = (convert(high, "u64") << 32) | convert(low, "u64")
    found = choice & 0
    for byte in range(4):
        which = (choice >> (8 * byte)) & 0xFF
        plain = convert((both >> convert((which & 7) * 8, "u64")) & 0xFF, "u32")
        # 8 to 11 spread the signs of bytes 1, 3, 5 and 7
        spread = convert((both >> convert((which & 3) * 16 + 15, "u64")) & 1, "u32") * 0xFF
        picked = select(which < 8, plain, select(which < 12, spread, select(which == 12, which & 0, which | 0xFF)))
        found = found | ((picked & 0xFF) << (8 * byte))
    return found


operation("v_pack_b32_f16", "u32", "b16 b16")(lambda a, b: convert(a, "u32") | (convert(b, "u32") << 16))
