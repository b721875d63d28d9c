"""Floating-point operations of each lane.

Reciprocals, roots, logarithms, powers and sines are approximate in hardware, within an ulp or so; here they are rounded
rightly, and take subnormal numbers as zero where hardware does.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.emulation.semantics.arithmetic import (
    bits,
    convert,
    cosine,
    exponent,
    fused,
    greatest,
    hyperbolic,
    invert,
    is_nan,
    least,
    logarithm,
    mantissa,
    nearest,
    next_power,
    power,
    round_down,
    round_up,
    scale,
    segment,
    select,
    sine,
    square_root,
    towards_zero,
)
from argosy.emulation.semantics.table import operation, rename

__all__ = ["maximum", "minimum"]

_SMALLEST: Final = {"f16": 2.0**-14, "f32": 2.0**-126, "f64": 2.0**-1022}
_BELOW_ONE: Final = {"f16": 1 - 2.0**-11, "f32": 1 - 2.0**-24, "f64": 1 - 2.0**-53}


def _flushed(a: Any) -> Any:
    """A float32 with zero, of the same sign, for subnormal numbers."""
    return select(abs(a) < _SMALLEST["f32"], a * 0.0, a)


def _fraction(kind: str) -> Any:
    def meaning(a: Any) -> Any:
        found = a - round_down(a)
        return select((found < 1) | is_nan(found), found, _BELOW_ONE[kind])

    return meaning


def _third(order: Any) -> Any:
    def meaning(a: Any, b: Any, c: Any) -> Any:
        return order(order(a, b), c)

    return meaning


def _propagating(order: Any) -> Any:
    """The lesser or greater, or NaN where one of both is none (minimum and maximum of IEEE 754-2019)."""

    def meaning(a: Any, b: Any) -> Any:
        return select(is_nan(a) | is_nan(b), float("nan"), order(a, b))

    return meaning


minimum, maximum = _propagating(least), _propagating(greatest)


def _median(a: Any, b: Any, c: Any) -> Any:
    most = greatest(greatest(a, b), c)
    middle = select(most == a, greatest(b, c), select(most == b, greatest(a, c), greatest(a, b)))
    return select(is_nan(a) | is_nan(b) | is_nan(c), least(least(a, b), c), middle)


for _kind in ("f16", "f32", "f64"):
    _two, _three = f"{_kind} {_kind}", f"{_kind} {_kind} {_kind}"
    operation(f"v_add_{_kind}", _kind, _two)(lambda a, b: a + b)
    operation(f"v_mul_{_kind}", _kind, _two)(lambda a, b: a * b)
    operation(f"v_min_{_kind}", _kind, _two)(least)
    operation(f"v_max_{_kind}", _kind, _two)(greatest)
    rename(f"v_min_num_{_kind}", f"v_min_{_kind}")
    rename(f"v_max_num_{_kind}", f"v_max_{_kind}")
    operation(f"v_fma_{_kind}", _kind, _three, clears=False)(fused)
    operation(f"v_minimum_{_kind}", _kind, _two)(minimum)
    operation(f"v_maximum_{_kind}", _kind, _two)(maximum)
    operation(f"v_fmaak_{_kind} v_fmamk_{_kind}", _kind, _three, clears=False)(fused)
    operation(f"v_fmac_{_kind}", _kind, _three, keeps=True, clears=False)(fused)
    operation(f"v_floor_{_kind}", _kind, _kind)(round_down)
    operation(f"v_ceil_{_kind}", _kind, _kind)(round_up)
    operation(f"v_trunc_{_kind}", _kind, _kind)(towards_zero)
    operation(f"v_rndne_{_kind}", _kind, _kind)(nearest)
    operation(f"v_fract_{_kind}", _kind, _kind)(_fraction(_kind))
    operation(f"v_frexp_mant_{_kind}", _kind, _kind)(mantissa)

for _kind in ("f16", "f32"):
    _two, _three = f"{_kind} {_kind}", f"{_kind} {_kind} {_kind}"
    operation(f"v_sub_{_kind}", _kind, _two)(lambda a, b: a - b)
    operation(f"v_subrev_{_kind}", _kind, _two)(lambda a, b: b - a)
    operation(f"v_min3_{_kind} v_min3_num_{_kind}", _kind, _three, clears=False)(_third(least))
    operation(f"v_max3_{_kind} v_max3_num_{_kind}", _kind, _three, clears=False)(_third(greatest))
    operation(f"v_med3_{_kind} v_med3_num_{_kind}", _kind, _three, clears=False)(_median)
    operation(f"v_minimum3_{_kind}", _kind, _three, clears=False)(_third(minimum))
    operation(f"v_maximum3_{_kind}", _kind, _three, clears=False)(_third(maximum))
    operation(f"v_maximumminimum_{_kind}", _kind, _three, clears=False)(lambda a, b, c: minimum(maximum(a, b), c))
    operation(f"v_minimummaximum_{_kind}", _kind, _three, clears=False)(lambda a, b, c: maximum(minimum(a, b), c))
    operation(f"v_maxmin_{_kind} v_maxmin_num_{_kind}", _kind, _three, clears=False)(
        lambda a, b, c: least(greatest(a, b), c)
    )
    operation(f"v_minmax_{_kind} v_minmax_num_{_kind}", _kind, _three, clears=False)(
        lambda a, b, c: greatest(least(a, b), c)
    )

# The older sum of a product rounds the product too, and takes and gives no subnormal numbers.
operation("v_mad_f32 v_madak_f32 v_madmk_f32", "f32", "f32 f32 f32")(
    lambda a, b, c: _flushed(_flushed(_flushed(a) * _flushed(b)) + _flushed(c))
)
operation("v_mac_f32", "f32", "f32 f32 f32", keeps=True)(
    lambda a, b, c: _flushed(_flushed(_flushed(a) * _flushed(b)) + _flushed(c))
)
operation("v_tanh_f32", "f32", "f32")(hyperbolic)

operation("v_frexp_exp_i32_f32", "i32", "f32")(exponent)
operation("v_frexp_exp_i32_f64", "i32", "f64")(exponent)
operation("v_frexp_exp_i16_f16", "i16", "f16")(lambda a: convert(exponent(a), "i16"))
operation("v_trig_preop_f64", "f64", "f64 u32")(segment)
operation("v_ldexp_f32", "f32", "f32 i32")(scale)
operation("v_ldexp_f64", "f64", "f64 i32")(scale)
operation("v_ldexp_f16", "f16", "f16 i16")(lambda a, by: scale(a, convert(by, "i32")))

operation("v_exp_f32", "f32", "f32")(lambda a: _flushed(power(_flushed(a))))
operation("v_log_f32", "f32", "f32")(lambda a: logarithm(_flushed(a)))
operation("v_rcp_f32", "f32", "f32")(lambda a: _flushed(invert(_flushed(a))))
rename("v_rcp_iflag_f32", "v_rcp_f32")
operation("v_rsq_f32", "f32", "f32")(lambda a: convert(invert(square_root(convert(_flushed(a), "f64"))), "f32"))
operation("v_sqrt_f32", "f32", "f32")(lambda a: square_root(_flushed(a)))
operation("v_sin_f32", "f32", "f32")(sine)
operation("v_cos_f32", "f32", "f32")(cosine)
operation("v_exp_f16", "f16", "f16")(power)
operation("v_log_f16", "f16", "f16")(logarithm)
operation("v_rcp_f16", "f16", "f16")(invert)
operation("v_rsq_f16", "f16", "f16")(lambda a: convert(invert(square_root(convert(a, "f64"))), "f16"))
operation("v_sqrt_f16", "f16", "f16")(square_root)
operation("v_sin_f16", "f16", "f16")(sine)
operation("v_cos_f16", "f16", "f16")(cosine)
operation("v_rcp_f64", "f64", "f64")(invert)
operation("v_rsq_f64", "f64", "f64")(lambda a: invert(square_root(a)))
operation("v_sqrt_f64", "f64", "f64")(square_root)


@operation("v_mul_legacy_f32 v_mul_dx9_zero_f32", "f32", "f32 f32")
def _(a: Any, b: Any) -> Any:
    return select((a == 0) | (b == 0), 0.0, a * b)


# ------------------------------------------------------------------------------------------------------ division
# A quotient is a reciprocal, refined by two steps of Newton and Raphson, between v_div_scale, which moves what is too
# large or small for that out of the way, and v_div_fmas and v_div_fixup, which move it back.

_DIVISION: Final = {
    # what exponents are too far apart, that of a small numerator, the step, and how far apart a quotient is lost
    "f32": (96, 23, 64, 150),
    "f64": (768, 53, 128, 1075),
}


def _div_scale(kind: str) -> Any:
    apart, tiny, step, _ = _DIVISION[kind]
    smallest = _SMALLEST[kind]

    def meaning(a: Any, below: Any, above: Any) -> Any:
        nothing = (below == 0) | (above == 0)
        far = next_power(above) - next_power(below) >= apart
        subnormal = (abs(below) < smallest) & (below != 0)
        inverse = abs(invert(below))
        vanishing = (inverse < smallest) & (inverse != 0)
        quotient = abs(above / below)
        lost = (quotient < smallest) & (quotient != 0)
        small = next_power(above) <= tiny
        up, down = scale(a, step), scale(a, -step)
        is_below = bits(a, f"u{kind[1:]}") == bits(below, f"u{kind[1:]}")
        is_above = bits(a, f"u{kind[1:]}") == bits(above, f"u{kind[1:]}")
        found = select(
            far,
            select(is_below, up, a),
            select(
                subnormal,
                up,
                select(
                    vanishing & lost,
                    select(is_below, down, a),  # the documents say up, which ends beyond all; hardware goes down
                    select(vanishing, down, select(lost, select(is_above, up, a), select(small, up, a))),
                ),
            ),
        )
        flag = ~nothing & (far | (~subnormal & lost))
        return select(nothing, float("nan"), found), flag

    return meaning


def _div_fmas(kind: str) -> Any:
    _, _, step, _ = _DIVISION[kind]
    bias = 127 if kind == "f32" else 1023

    def meaning(a: Any, b: Any, c: Any, scaled: Any) -> Any:
        found = fused(a, b, c)
        moved = select(next_power(c) > bias, scale(found, step), scale(found, -step))
        return select(scaled, moved, found)

    return meaning


def _div_fixup(kind: str) -> Any:
    unsigned = f"u{kind[1:]}"
    sign_bit = 1 << (int(kind[1:]) - 1)

    def meaning(found: Any, below: Any, above: Any) -> Any:
        sign = (bits(below, unsigned) ^ bits(above, unsigned)) & sign_bit
        zero = bits(sign, kind)
        size = bits((bits(found, unsigned) & (sign_bit - 1)) | sign, kind)
        nan = float("nan")
        if kind in _DIVISION:  # a quotient that is no number grew beyond all
            size = select(is_nan(found), _endless(sign, kind), size)
            size = select(next_power(above) - next_power(below) < -_DIVISION[kind][3], zero, size)
        endless_below, endless_above = abs(below) == float("inf"), abs(above) == float("inf")
        result = select((below == 0) | endless_above, _endless(sign, kind), size)
        result = select(endless_below | (above == 0), zero, result)
        result = select((below == 0) & (above == 0), nan, result)
        result = select(endless_below & endless_above, nan, result)
        result = select(is_nan(below), below, result)
        return select(is_nan(above), above, result)

    return meaning


def _endless(sign: Any, kind: str) -> Any:
    pattern = {"f16": 0x7C00, "f32": 0x7F800000, "f64": 0x7FF0000000000000}[kind]
    return bits(sign | pattern, kind)


for _kind in ("f32", "f64"):
    operation(f"v_div_scale_{_kind}", f"{_kind} mask", f"{_kind} {_kind} {_kind}")(_div_scale(_kind))
    operation(f"v_div_fmas_{_kind}", _kind, f"{_kind} {_kind} {_kind} mask")(_div_fmas(_kind))
for _kind in ("f16", "f32", "f64"):
    operation(f"v_div_fixup_{_kind}", _kind, f"{_kind} {_kind} {_kind}", clears=False)(_div_fixup(_kind))
