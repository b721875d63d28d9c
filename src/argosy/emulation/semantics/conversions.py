"""Conversions between types, and operations on short floats."""

from __future__ import annotations

from typing import Any, Final

from argosy.emulation.semantics.arithmetic import (
    bits,
    convert,
    greatest,
    is_nan,
    least,
    nearest,
    next_power,
    round_down,
    scale,
    select,
    to_integer,
    truncated_half,
)
from argosy.emulation.semantics.table import operation

for _from, _to in (
    ("f32", "i32"), ("f32", "u32"), ("f64", "i32"), ("f64", "u32"), ("f16", "i16"), ("f16", "u16"),
):  # fmt: skip
    operation(f"v_cvt_{_to}_{_from}", _to, _from)(lambda a, to=_to: to_integer(a, to))
for _from, _to in (
    ("i32", "f32"), ("u32", "f32"), ("i32", "f64"), ("u32", "f64"), ("i16", "f16"), ("u16", "f16"),
    ("f32", "f16"), ("f16", "f32"), ("f32", "f64"), ("f64", "f32"),
):  # fmt: skip
    operation(f"v_cvt_{_to}_{_from}", _to, _from)(lambda a, to=_to: convert(a, to))
operation("v_cvt_i32_i16", "i32", "i16")(lambda a: convert(a, "i32"))
operation("v_cvt_u32_u16", "u32", "u16")(lambda a: convert(a, "u32"))
operation("v_cvt_flr_i32_f32 v_cvt_floor_i32_f32", "i32", "f32")(lambda a: to_integer(round_down(a), "i32"))
operation("v_cvt_rpi_i32_f32 v_cvt_nearest_i32_f32", "i32", "f32")(lambda a: to_integer(round_down(a + 0.5), "i32"))
for _byte in range(4):
    operation(f"v_cvt_f32_ubyte{_byte}", "f32", "u32")(lambda a, by=8 * _byte: convert((a >> by) & 0xFF, "f32"))
operation("v_cvt_pkrtz_f16_f32 v_cvt_pk_rtz_f16_f32", "u32", "f32 f32")(
    lambda a, b: _pair(bits(truncated_half(a), "u16"), bits(truncated_half(b), "u16"))
)
operation("v_cvt_pk_f16_f32", "u32", "f32 f32")(
    lambda a, b: _pair(bits(convert(a, "f16"), "u16"), bits(convert(b, "f16"), "u16"))
)
for _to in ("i16", "u16"):
    operation(f"v_cvt_pk_{_to}_f32", "u32", "f32 f32")(
        lambda a, b, to=_to: _pair(bits(to_integer(a, to), "u16"), bits(to_integer(b, to), "u16"))
    )
operation("v_cvt_pk_i16_i32", "u32", "i32 i32")(lambda a, b: _pair(_held(a, -32768, 32767), _held(b, -32768, 32767)))
operation("v_cvt_pk_u16_u32", "u32", "u32 u32")(
    lambda a, b: _pair(convert(least(a, a * 0 + 65535), "u16"), convert(least(b, b * 0 + 65535), "u16"))
)


def _pair(low: Any, high: Any) -> Any:
    return convert(low, "u32") | (convert(high, "u32") << 16)


def _held(a: Any, least_one: int, greatest_one: int) -> Any:
    return convert(bits(least(greatest(a, a * 0 + least_one), a * 0 + greatest_one), "u32") & 0xFFFF, "u16")


# ------------------------------------------------------------------------------------------------------ bfloat16
def to_bfloat(a: Any) -> Any:
    """The 16 bits of the bfloat16 nearest to a float32, in a uint32; NaN stays NaN."""
    pattern = bits(a, "u32")
    rounded = (pattern + 0x7FFF + ((pattern >> 16) & 1)) >> 16
    return select(is_nan(a), (pattern >> 16) | 0x40, rounded)


def from_bfloat(a: Any) -> Any:
    """The float32 of 16 bits in a uint32."""
    return bits(a << 16, "f32")


operation("v_cvt_pk_bf16_f32", "u32", "f32 f32")(lambda a, b: to_bfloat(a) | (to_bfloat(b) << 16))
operation("v_cvt_f32_bf16", "f32", "b16")(lambda a: from_bfloat(convert(a, "u32")))

# ------------------------------------------------------------------------------------------------------ eight bits
_SHORT: Final = {
    # exponent's bits, fraction's bits, bias, whether it is of the FNUZ kind (no -0, one NaN, no infinity)
    "e4m3": (4, 3, 7, False),
    "e5m2": (5, 2, 15, False),
    "e4m3fnuz": (4, 3, 8, True),
    "e5m2fnuz": (5, 2, 16, True),
    "e2m3": (2, 3, 1, False),
    "e3m2": (3, 2, 3, False),
    "e2m1": (2, 1, 1, False),
}
_FINITE: Final = frozenset({"e2m3", "e3m2", "e2m1"})
"""Of fewer than 8 bits: neither infinities nor NaN."""


def from_short(byte: Any, form: str) -> Any:
    """The float32 of a short float in a uint32.

    Sources: OCP 8-bit Floating Point and Microscaling Formats Specifications; FNUZ as of gfx942.
    """
    exponents, fractions, bias, alone = _SHORT[form]
    sign, power, fraction = (
        byte >> (exponents + fractions),
        (byte >> fractions) & ((1 << exponents) - 1),
        byte & ((1 << fractions) - 1),
    )
    normal = bits(((power + (127 - bias)) << 23) | (fraction << (23 - fractions)), "f32")
    subnormal = convert(fraction, "f32") * 2.0 ** (1 - bias - fractions)
    size = select(power == 0, subnormal, normal)
    if alone:
        found = select(byte == 0x80, float("nan"), select(sign == 1, -size, size))
    else:
        top = (1 << exponents) - 1
        if form in _FINITE:
            pass
        elif form == "e4m3":
            size = select((power == top) & (fraction == 7), float("nan"), size)
        else:
            size = select(power == top, select(fraction == 0, size * 0 + float("inf"), float("nan")), size)
        found = select(sign == 1, -size, size)
    return convert(found, "f32")


def to_short(a: Any, form: str) -> Any:
    """The 8 bits nearest to a float32, even of two, in a uint32; what is too large is as the form has it."""
    _, fractions, bias, alone = _SHORT[form]
    pattern = bits(a, "u32")
    sign, size = (pattern >> 31) << 7, bits(pattern & 0x7FFFFFFF, "f32")
    # The step between neighbours at this size; adding what is too large for less rounds to it.
    power = greatest(convert((bits(size, "u32") >> 23), "i32"), convert(size * 0, "i32") + (128 - bias))
    steps = nearest(scale(size, fractions + 127 - power))
    whole = convert(steps, "u32")
    made = (convert(power - (128 - bias), "u32") << fractions) + whole
    if alone:
        most, infinite, nan = 0x7F, 0x80, 0x80
    else:
        most, infinite, nan = (0x7E, 0x7F, 0x7F) if form == "e4m3" else (0x7B, 0x7C, 0x7F)
    over = (made > most) | (size == float("inf"))
    found = select(over, made * 0 + infinite, made)
    found = select(is_nan(a), made * 0 + nan, found)
    if alone:
        return select(is_nan(a) | over | (found == 0), found, found | sign)
    return found | sign


def _enter_short(name: str, form: str, suffix: str = "") -> None:
    operation(f"v_cvt_f32_{name}{suffix}", "f32", "u32")(lambda a: from_short(a & 0xFF, form))
    operation(f"v_cvt_pk_f32_{name}{suffix}", "pair", "b16")(
        lambda a: (from_short(convert(a, "u32") & 0xFF, form), from_short(convert(a, "u32") >> 8, form))
    )
    operation(f"v_cvt_pk_{name}_f32{suffix}", "u16", "f32 f32", clears=False)(
        lambda a, b: convert(to_short(a, form) | (to_short(b, form) << 8), "u16")
    )


for _name, _ocp, _alone in (("fp8", "e4m3", "e4m3fnuz"), ("bf8", "e5m2", "e5m2fnuz")):
    _enter_short(_name, _ocp)
    _enter_short(_name, _alone, "@fnuz")


# ------------------------------------------------------------------------------------------------------ scales
# The power of two of a float32, whose fraction counts for nothing, divides what is made short and multiplies what was;
# the exponent of infinities makes NaN of it (E8M0 of the OCP Microscaling Formats Specification).
def _scaled(a: Any, by: Any, sign: int) -> Any:
    power = next_power(by)
    return select(power == 0xFF, float("nan"), scale(a, (power - 127) * sign))


def _halves(a: Any, kind: str) -> tuple[Any, Any]:
    """Both halves of a uint32 as float32."""
    if kind == "bf16":
        return from_bfloat(a & 0xFFFF), from_bfloat(a >> 16)
    low, high = (bits(convert(half, "u16"), "f16") for half in (a & 0xFFFF, a >> 16))
    return convert(low, "f32"), convert(high, "f32")


def _joined(a: Any, b: Any, kind: str) -> Any:
    """Two float32 as halves of a uint32."""
    if kind == "bf16":
        return to_bfloat(a) | (to_bfloat(b) << 16)
    return _pair(bits(convert(a, "f16"), "u16"), bits(convert(b, "f16"), "u16"))


def _widened(pair: Any, by: Any, form: str) -> tuple[Any, Any]:
    """Two short floats in a uint32, the first one lowest, as float32."""
    size = 4 if form == "e2m1" else 8
    low, high = pair & ((1 << size) - 1), (pair >> size) & ((1 << size) - 1)
    return _scaled(from_short(low, form), by, 1), _scaled(from_short(high, form), by, 1)


def _enter_scaled(name: str, form: str) -> None:
    def shortened(a: Any, b: Any, by: Any) -> Any:
        return convert(to_short(_scaled(a, by, -1), form) | (to_short(_scaled(b, by, -1), form) << 8), "u16")

    operation(f"v_cvt_scalef32_pk_{name}_f32", "u16", "f32 f32 f32", clears=False)(shortened)
    operation(f"v_cvt_scalef32_pk_f32_{name}", "pair", "b16 f32")(lambda a, by: _widened(convert(a, "u32"), by, form))
    for kind in ("f16", "bf16"):
        operation(f"v_cvt_scalef32_pk_{name}_{kind}", "u16", "u32 f32", clears=False)(
            lambda a, by, kind=kind: shortened(*_halves(a, kind), by)
        )
        operation(f"v_cvt_scalef32_pk_{kind}_{name}", "u32", "b16 f32")(
            lambda a, by, kind=kind: _joined(*_widened(convert(a, "u32"), by, form), kind)
        )


for _name, _ocp in (("fp8", "e4m3"), ("bf8", "e5m2")):
    _enter_scaled(_name, _ocp)
for _byte in range(4):
    # op_sel says which byte of v_cvt_scalef32_pk_…_fp4 holds the two; the decoder puts it into the name.
    operation(f"v_cvt_scalef32_pk_f32_fp4@{_byte}", "pair", "u32 f32")(
        lambda a, by, at=8 * _byte: _widened((a >> at) & 0xFF, by, "e2m1")
    )
    for _kind in ("f16", "bf16"):
        operation(f"v_cvt_scalef32_pk_{_kind}_fp4@{_byte}", "u32", "u32 f32")(
            lambda a, by, at=8 * _byte, kind=_kind: _joined(*_widened((a >> at) & 0xFF, by, "e2m1"), kind)
        )
