"""Operations on two halves of a register at once, and on sources of mixed types.

A packed meaning is that of one half; the decoder picks the halves by `op_sel` and `op_sel_hi`, and negates them by
`neg_lo` and `neg_hi`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy.emulation.semantics.arithmetic import bits, convert, fused, greatest, is_nan, least, select
from argosy.emulation.semantics.conversions import from_bfloat, to_bfloat
from argosy.emulation.semantics.floats import maximum, minimum
from argosy.emulation.semantics.table import OPERATIONS, operation

_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "min": least,
    "max": greatest,
}

for _name, _meaning in _TWO.items():
    operation(f"v_pk_{_name}_f16", "pf16", "pf16 pf16")(_meaning)
for _name, _meaning in (("minimum", minimum), ("maximum", maximum)):
    operation(f"v_pk_{_name}_f16", "pf16", "pf16 pf16")(_meaning)
    operation(f"v_pk_{_name}3_f16", "pf16", "pf16 pf16 pf16")(lambda a, b, c, of=_meaning: of(of(a, b), c))
for _name in ("min", "max"):
    operation(f"v_pk_{_name}_num_f16", "pf16", "pf16 pf16")(_TWO[_name])
operation("v_pk_fma_f16", "pf16", "pf16 pf16 pf16")(fused)
operation("v_pk_fmac_f16", "pf16", "pf16 pf16 pf16", keeps=True)(fused)
operation("v_pk_add_f32", "pf32", "pf32 pf32")(_TWO["add"])
operation("v_pk_mul_f32", "pf32", "pf32 pf32")(_TWO["mul"])
operation("v_pk_fma_f32", "pf32", "pf32 pf32 pf32")(fused)
operation("v_pk_mov_b32", "pb32", "pb32 pb32")(lambda a, b: (a, b))
for _kind in ("u16", "i16"):
    _p = f"p{_kind}"
    operation(f"v_pk_add_{_kind}", _p, f"{_p} {_p}")(_TWO["add"])
    operation(f"v_pk_sub_{_kind}", _p, f"{_p} {_p}")(lambda a, b: a - b)
    operation(f"v_pk_min_{_kind}", _p, f"{_p} {_p}")(least)
    operation(f"v_pk_max_{_kind}", _p, f"{_p} {_p}")(greatest)
    operation(f"v_pk_mad_{_kind}", _p, f"{_p} {_p} {_p}")(lambda a, b, c: a * b + c)
    for _name in ("add", "sub"):
        operation(f"v_pk_{_name}_{_kind}@clamp", _p, f"{_p} {_p}")(OPERATIONS[f"v_{_name}_{_kind}@clamp"].meaning)
operation("v_pk_mul_lo_u16", "pu16", "pu16 pu16")(_TWO["mul"])
operation("v_pk_lshlrev_b16", "pu16", "pu16 pu16")(lambda by, a: a << (by & 15))
operation("v_pk_lshrrev_b16", "pu16", "pu16 pu16")(lambda by, a: a >> (by & 15))
operation("v_pk_ashrrev_i16", "pi16", "pi16 pi16")(lambda by, a: a >> (by & 15))

# Sources of `mix` are float16 or float32, as op_sel_hi says of each; the decoder makes float32 of them.
operation("v_fma_mix_f32", "f32", "mix mix mix")(fused)
operation("v_fma_mixlo_f16", "f16", "mix mix mix", clears=False)(lambda a, b, c: convert(fused(a, b, c), "f16"))
operation("v_fma_mixhi_f16", "high", "mix mix mix")(lambda a, b, c: convert(fused(a, b, c), "f16"))


# ------------------------------------------------------------------------------------------------------ bfloat16
# gfx1250 computes on halves of this type too; sums and products of float32 lose nothing that the last rounding needs.
def _of_bfloat(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *halves: convert(to_bfloat(function(*(from_bfloat(convert(each, "u32")) for each in halves))), "u16")


def _fused_to_odd(a: Any, b: Any, c: Any) -> Any:
    """a * b + c in float32, to odd where that is not exact, so that the rounding to bfloat16 is the only one."""
    product, other = convert(a, "f64") * convert(b, "f64"), convert(c, "f64")
    total = product + other
    back = total - product
    near = convert(total, "f32")
    lost = (total - convert(near, "f64")) + ((product - (total - back)) + (other - back))
    pattern = bits(near, "u32")
    even = (lost != 0) & ((pattern & 1) == 0) & (near != 0) & (abs(near) < float("inf"))
    step = select((lost > 0) == (near > 0), (pattern & 0) + 1, (pattern & 0) - 1)
    return bits(select(even, pattern + step, pattern), "f32")


for _name in ("add", "mul"):
    operation(f"v_pk_{_name}_bf16", "pbf16", "pbf16 pbf16")(_of_bfloat(_TWO[_name]))
for _name in ("min", "max"):  # of two that are no number, the first
    operation(f"v_pk_{_name}_num_bf16", "pbf16", "pbf16 pbf16")(
        _of_bfloat(lambda a, b, of=_TWO[_name]: select(is_nan(a) & is_nan(b), a, of(a, b)))
    )
operation("v_pk_fma_bf16", "pbf16", "pbf16 pbf16 pbf16")(_of_bfloat(_fused_to_odd))
operation("v_fma_mix_f32_bf16", "f32", "mixb mixb mixb")(fused)
operation("v_fma_mixlo_bf16", "u16", "mixb mixb mixb", clears=False)(
    lambda a, b, c: convert(to_bfloat(fused(a, b, c)), "u16")
)
operation("v_fma_mixhi_bf16", "high16", "mixb mixb mixb")(lambda a, b, c: convert(to_bfloat(fused(a, b, c)), "u16"))


# ------------------------------------------------------------------------------------------------------ dot products
def _half(a: Any, place: int) -> Any:
    return convert(bits(convert((a >> (16 * place)) & 0xFFFF, "u16"), "f16"), "f32")


def _byte(a: Any, place: int, *, signed: bool) -> Any:
    raw = bits(a, "i32")
    return (raw << (24 - 8 * place)) >> 24 if signed else (raw >> (8 * place)) & 0xFF


operation("v_dot2_f32_f16", "f32", "u32 u32 f32")(
    lambda a, b, c: fused(_half(a, 1), _half(b, 1), fused(_half(a, 0), _half(b, 0), c))
)
operation("v_dot2c_f32_f16 v_dot2acc_f32_f16", "f32", "u32 u32 f32", keeps=True)(
    lambda a, b, c: fused(_half(a, 1), _half(b, 1), fused(_half(a, 0), _half(b, 0), c))
)


def _dot4(a: Any, b: Any, c: Any, first: bool, second: bool) -> Any:  # noqa: FBT001 - one for each source
    for place in range(4):
        c = c + _byte(a, place, signed=first) * _byte(b, place, signed=second)
    return c


operation("v_dot4_i32_i8", "i32", "u32 u32 i32")(lambda a, b, c: _dot4(a, b, c, True, True))
operation("v_dot4c_i32_i8", "i32", "u32 u32 i32", keeps=True)(lambda a, b, c: _dot4(a, b, c, True, True))
operation("v_dot4_u32_u8", "i32", "u32 u32 i32")(lambda a, b, c: _dot4(a, b, c, False, False))
for _first in (False, True):
    for _second in (False, True):
        # neg_lo says which sources of v_dot4_i32_iu8 are signed; the decoder puts it into the name.
        operation(f"v_dot4_i32_iu8@{_first:d}{_second:d}", "i32", "u32 u32 i32")(
            lambda a, b, c, first=_first, second=_second: _dot4(a, b, c, first, second)
        )
