"""Operations on scalar registers, one value for each wave. `scc` is the bit that conditions test."""

from __future__ import annotations

from collections.abc import Callable
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
from argosy.emulation.semantics.table import OPERATIONS, Meaning, operation, rename


def _scalar(names: str, results: str, sources: str, *, keeps: bool = False) -> Callable[[Meaning], Meaning]:
    return operation(names, results, sources, unit="scalar", keeps=keeps)


def _tested(function: Callable[..., Any]) -> Callable[..., Any]:
    """The result, and whether it is other than zero."""

    def meaning(*sources: Any) -> Any:
        found = function(*sources)
        return found, found != 0

    return meaning


# ------------------------------------------------------------------------------------------------------ moves
for _size in (32, 64):
    _b = f"b{_size}"
    _u = f"u{_size}"
    _scalar(f"s_mov_b{_size}", _b, _b)(lambda a: a)
    _scalar(f"s_cmov_b{_size}", _b, f"{_b} scc {_b}", keeps=True)(lambda a, scc, old: select(scc, a, old))
    _scalar(f"s_cselect_b{_size}", _b, f"{_b} {_b} scc")(lambda yes, no, scc: select(scc, yes, no))
    _scalar(f"s_not_b{_size}", f"{_u} scc", _u)(_tested(lambda a: ~a))
    _scalar(f"s_and_b{_size}", f"{_u} scc", f"{_u} {_u}")(_tested(lambda a, b: a & b))
    _scalar(f"s_or_b{_size}", f"{_u} scc", f"{_u} {_u}")(_tested(lambda a, b: a | b))
    _scalar(f"s_xor_b{_size}", f"{_u} scc", f"{_u} {_u}")(_tested(lambda a, b: a ^ b))
    _scalar(f"s_nand_b{_size}", f"{_u} scc", f"{_u} {_u}")(_tested(lambda a, b: ~(a & b)))
    _scalar(f"s_nor_b{_size}", f"{_u} scc", f"{_u} {_u}")(_tested(lambda a, b: ~(a | b)))
    _scalar(f"s_xnor_b{_size}", f"{_u} scc", f"{_u} {_u}")(_tested(lambda a, b: ~(a ^ b)))
    _scalar(f"s_andn2_b{_size} s_and_not1_b{_size}", f"{_u} scc", f"{_u} {_u}")(_tested(lambda a, b: a & ~b))
    _scalar(f"s_orn2_b{_size} s_or_not1_b{_size}", f"{_u} scc", f"{_u} {_u}")(_tested(lambda a, b: a | ~b))
    _scalar(f"s_lshl_b{_size}", f"{_u} scc", f"{_u} u32")(
        _tested(lambda a, by, u=_u, most=_size - 1: a << convert(by & most, u))
    )
    _scalar(f"s_lshr_b{_size}", f"{_u} scc", f"{_u} u32")(
        _tested(lambda a, by, u=_u, most=_size - 1: a >> convert(by & most, u))
    )
    _scalar(f"s_ashr_i{_size}", f"i{_size} scc", f"i{_size} u32")(
        _tested(lambda a, by, i=f"i{_size}", most=_size - 1: a >> convert(by & most, i))
    )
    _scalar(f"s_brev_b{_size}", _u, _u)(reverse)
    _scalar(f"s_bcnt1_i32_b{_size}", "u32 scc", _u)(_tested(count_ones))
    _scalar(f"s_bcnt0_i32_b{_size}", "u32 scc", _u)(_tested(lambda a: count_ones(~a)))
    _scalar(f"s_ff1_i32_b{_size} s_ctz_i32_b{_size}", "u32", _u)(count_trailing)
    _scalar(f"s_ff0_i32_b{_size}", "u32", _u)(lambda a: count_trailing(~a))
    _scalar(f"s_flbit_i32_b{_size} s_clz_i32_u{_size}", "u32", _u)(count_leading)
    _scalar(f"s_bitset0_b{_size}", _u, f"u32 {_u}", keeps=True)(
        lambda place, old, u=_u, most=_size - 1: old & ~(convert(place * 0 + 1, u) << convert(place & most, u))
    )
    _scalar(f"s_bitset1_b{_size}", _u, f"u32 {_u}", keeps=True)(
        lambda place, old, u=_u, most=_size - 1: old | (convert(place * 0 + 1, u) << convert(place & most, u))
    )
    _scalar(f"s_bitcmp0_b{_size}", "scc", f"{_u} u32")(
        lambda a, place, u=_u, most=_size - 1: ((a >> convert(place & most, u)) & 1) == 0
    )
    _scalar(f"s_bitcmp1_b{_size}", "scc", f"{_u} u32")(
        lambda a, place, u=_u, most=_size - 1: ((a >> convert(place & most, u)) & 1) == 1
    )
    _scalar(f"s_bfm_b{_size}", _u, "u32 u32")(
        lambda size, place, u=_u, most=_size - 1: (
            ((convert(size * 0 + 1, u) << convert(size & most, u)) - 1) << convert(place & most, u)
        )
    )
_scalar("s_flbit_i32 s_cls_i32", "u32", "i32")(lambda a: count_leading(bits(a ^ (a >> 31), "u32")))
_scalar("s_sext_i32_i8", "i32", "i32")(lambda a: (a << 24) >> 24)
_scalar("s_sext_i32_i16", "i32", "i32")(lambda a: (a << 16) >> 16)
_scalar("s_abs_i32", "i32 scc", "i32")(_tested(abs))
_scalar("s_absdiff_i32", "i32 scc", "i32 i32")(_tested(lambda a, b: abs(a - b)))
_scalar("s_movk_i32", "i32", "k16")(lambda a: a)

# ------------------------------------------------------------------------------------------------------ sums


def _signed_sum(a: Any, b: Any) -> Any:
    total = a + b
    return total, ((a < 0) == (b < 0)) & ((total < 0) != (a < 0))


def _signed_difference(a: Any, b: Any) -> Any:
    found = a - b
    return found, ((a < 0) != (b < 0)) & ((found < 0) != (a < 0))


# Carries are what vectors have for each lane.
_scalar("s_add_u32 s_add_co_u32", "u32 scc", "u32 u32")(OPERATIONS["v_add_co_u32"].meaning)
_scalar("s_sub_u32 s_sub_co_u32", "u32 scc", "u32 u32")(OPERATIONS["v_sub_co_u32"].meaning)
_scalar("s_addc_u32 s_add_co_ci_u32", "u32 scc", "u32 u32 scc")(OPERATIONS["v_addc_co_u32"].meaning)
_scalar("s_subb_u32 s_sub_co_ci_u32", "u32 scc", "u32 u32 scc")(OPERATIONS["v_subb_co_u32"].meaning)
_scalar("s_add_i32 s_add_co_i32", "i32 scc", "i32 i32")(_signed_sum)
_scalar("s_sub_i32 s_sub_co_i32", "i32 scc", "i32 i32")(_signed_difference)
_scalar("s_addk_i32 s_addk_co_i32", "i32 scc", "k16 i32", keeps=True)(_signed_sum)
_scalar("s_add_nc_u64 s_add_u64", "u64", "u64 u64")(lambda a, b: a + b)
_scalar("s_sub_nc_u64 s_sub_u64", "u64", "u64 u64")(lambda a, b: a - b)


for _by in (1, 2, 3, 4):

    @_scalar(f"s_lshl{_by}_add_u32", "u32 scc", "u32 u32")
    def _(a: Any, b: Any, by: int = _by) -> Any:
        wide = (convert(a, "u64") << by) + convert(b, "u64")
        return convert(wide, "u32"), wide > 0xFFFFFFFF


# ------------------------------------------------------------------------------------------------------ products
_scalar("s_mul_i32", "i32", "i32 i32")(lambda a, b: a * b)
_scalar("s_mulk_i32", "i32", "k16 i32", keeps=True)(lambda a, b: a * b)
_scalar("s_mul_u64", "u64", "u64 u64")(lambda a, b: a * b)
_scalar("s_mul_hi_u32", "u32", "u32 u32")(OPERATIONS["v_mul_hi_u32"].meaning)
_scalar("s_mul_hi_i32", "i32", "i32 i32")(OPERATIONS["v_mul_hi_i32"].meaning)

# ------------------------------------------------------------------------------------------------------ orders
for _kind in ("u32", "i32"):
    _scalar(f"s_min_{_kind}", f"{_kind} scc", f"{_kind} {_kind}")(lambda a, b: (least(a, b), a < b))
    # Of equal numbers it is clear, as hardware was seen to do; the documents set it.
    _scalar(f"s_max_{_kind}", f"{_kind} scc", f"{_kind} {_kind}")(lambda a, b: (greatest(a, b), a > b))
for _kind in ("u32", "i32", "u64"):
    _two = f"{_kind} {_kind}"
    _scalar(f"s_cmp_eq_{_kind}", "scc", _two)(lambda a, b: a == b)
    _scalar(f"s_cmp_lg_{_kind}", "scc", _two)(lambda a, b: a != b)
for _kind in ("u32", "i32"):
    _two = f"{_kind} {_kind}"
    _scalar(f"s_cmp_gt_{_kind}", "scc", _two)(lambda a, b: a > b)
    _scalar(f"s_cmp_ge_{_kind}", "scc", _two)(lambda a, b: a >= b)
    _scalar(f"s_cmp_lt_{_kind}", "scc", _two)(lambda a, b: a < b)
    _scalar(f"s_cmp_le_{_kind}", "scc", _two)(lambda a, b: a <= b)

# ------------------------------------------------------------------------------------------------------ bit fields


@_scalar("s_bfe_u32", "u32 scc", "u32 u32")
def _(a: Any, field: Any) -> Any:
    """Bits 4:0 of `field` are the place, bits 22:16 how many."""
    size = least((field >> 16) & 0x7F, field * 0 + 32)
    wide = (convert(a, "u64") >> convert(field & 31, "u64")) & (
        (convert(field * 0 + 1, "u64") << convert(size, "u64")) - 1
    )
    found = convert(wide, "u32")
    return found, found != 0


@_scalar("s_bfe_i32", "i32 scc", "i32 u32")
def _(a: Any, field: Any) -> Any:
    place, size = field & 31, (field >> 16) & 0x7F
    moved = a >> convert(place, "i32")
    shift = convert(32 - size, "i32") & 31
    found = select(size == 0, moved * 0, select(size + place >= 32, moved, (moved << shift) >> shift))
    return found, found != 0


@_scalar("s_bfe_u64", "u64 scc", "u64 u32")
def _(a: Any, field: Any) -> Any:
    place, size = field & 63, least((field >> 16) & 0x7F, field * 0 + 64)
    every = select(size == 64, ~(a & 0), (((a & 0) + 1) << convert(size & 63, "u64")) - 1)
    found = (a >> convert(place, "u64")) & every
    return found, found != 0


@_scalar("s_bfe_i64", "i64 scc", "i64 u32")
def _(a: Any, field: Any) -> Any:
    place, size = field & 63, (field >> 16) & 0x7F
    moved = a >> convert(place, "i64")
    shift = convert((64 - size) & 63, "i64")
    found = select(size == 0, moved * 0, select(size + place >= 64, moved, (moved << shift) >> shift))
    return found, found != 0


_scalar("s_pack_ll_b32_b16", "u32", "u32 u32")(lambda a, b: (a & 0xFFFF) | (b << 16))
_scalar("s_pack_lh_b32_b16", "u32", "u32 u32")(lambda a, b: (a & 0xFFFF) | (b & 0xFFFF0000))
_scalar("s_pack_hh_b32_b16", "u32", "u32 u32")(lambda a, b: (a >> 16) | (b & 0xFFFF0000))
_scalar("s_pack_hl_b32_b16", "u32", "u32 u32")(lambda a, b: (a >> 16) | (b << 16))

# ------------------------------------------------------------------------------------------------------ masks of lanes
for _size in (32, 64):
    _u = f"u{_size}"
    for _names, _taken in (
        ("s_and_saveexec", lambda a, old: a & old),
        ("s_or_saveexec", lambda a, old: a | old),
        ("s_xor_saveexec", lambda a, old: a ^ old),
        ("s_andn2_saveexec s_and_not1_saveexec", lambda a, old: a & ~old),
        ("s_andn1_saveexec s_and_not0_saveexec", lambda a, old: ~a & old),
        ("s_orn2_saveexec s_or_not1_saveexec", lambda a, old: a | ~old),
    ):
        _scalar(" ".join(f"{name}_b{_size}" for name in _names.split()), f"{_u} exec{_size} scc", f"{_u} exec{_size}")(
            lambda a, old, taken=_taken: (old, taken(a, old), taken(a, old) != 0)
        )
    _scalar(f"s_andn2_wrexec_b{_size} s_and_not1_wrexec_b{_size}", f"{_u} exec{_size} scc", f"{_u} exec{_size}")(
        lambda a, old: (a & ~old, a & ~old, (a & ~old) != 0)
    )

# ------------------------------------------------------------------------------------------------------ short constants
for _name, _order in (
    ("eq", lambda a, b: a == b),
    ("lg", lambda a, b: a != b),
    ("gt", lambda a, b: a > b),
    ("ge", lambda a, b: a >= b),
    ("lt", lambda a, b: a < b),
    ("le", lambda a, b: a <= b),
):
    _scalar(f"s_cmpk_{_name}_i32", "scc", "i32 k16")(_order)
    _scalar(f"s_cmpk_{_name}_u32", "scc", "u32 ku16")(_order)

# ------------------------------------------------------------------------------------------------------ floats
# RDNA3.5 and later compute some floats in scalar registers; what vectors do is done there too. Those of 16 bits lie in
# the low half of a register, and results clear the high one.
for _name in (
    "add",
    "sub",
    "mul",
    "min",
    "max",
    "minimum",
    "maximum",
    "fmac",
    "fmaak",
    "trunc",
    "floor",
    "ceil",
    "rndne",
):
    for _kind in ("f32", "f16"):
        _vector = OPERATIONS[f"v_{_name}_{_kind}"]
        _scalar(
            f"s_{_name}_{_kind} s_{_name}_num_{_kind}" if _name in ("min", "max") else f"s_{_name}_{_kind}",
            _kind,
            " ".join(_vector.sources),
            keeps=_vector.keeps,
        )(_vector.meaning)
rename("s_fmamk_f32", "s_fmaak_f32")
rename("s_fmamk_f16", "s_fmaak_f16")
for _from, _to in (
    ("f32", "i32"), ("f32", "u32"), ("i32", "f32"), ("u32", "f32"), ("f32", "f16"), ("f16", "f32"),
):  # fmt: skip
    _scalar(f"s_cvt_{_to}_{_from}", _to, _from)(OPERATIONS[f"v_cvt_{_to}_{_from}"].meaning)
for _name in ("exp", "log", "rcp", "rsq", "sqrt"):
    for _kind in ("f32", "f16"):
        _scalar(f"v_s_{_name}_{_kind}", _kind, _kind)(OPERATIONS[f"v_{_name}_{_kind}"].meaning)
for _name in ("lt", "eq", "le", "gt", "lg", "ge", "o", "u", "nge", "nlg", "ngt", "nle", "neq", "nlt"):
    for _kind in ("f32", "f16"):
        _scalar(f"s_cmp_{_name}_{_kind}", "scc", f"{_kind} {_kind}")(OPERATIONS[f"v_cmp_{_name}_{_kind}"].meaning)
