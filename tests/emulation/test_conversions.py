"""Conversions against exact fractions and ml_dtypes' short floats, minima that keep NaN, 16-bit results."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.emulation.semantics.arithmetic import TYPES
from argosy.emulation.semantics.table import OPERATIONS
from tests.emulation.floats import agree, by_lane, nearest, same
from tests.emulation.text import ENGINES, run

SHORT = {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2}
WITHOUT_INFINITY = {"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz}
LONG = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def whole(value: float, kind: str) -> int:
    """Towards zero, held within the type; 0 of what is no number."""
    limits = np.iinfo(TYPES[kind])
    if math.isnan(value):
        return 0
    return (
        max(limits.min, min(limits.max, int(value)))
        if math.isfinite(value)
        else limits.max
        if value > 0
        else limits.min
    )


def rounded(value: float, form: Any) -> Any:
    """To the nearest, by fractions."""
    return form(value) if value == 0 or not math.isfinite(value) else nearest(Fraction(value), form)


def truncated(value: float) -> Any:
    """A float16, towards zero."""
    near = rounded(value, np.float16)
    return near if not math.isfinite(value) or abs(float(near)) <= abs(value) else np.nextafter(near, np.float16(0))


def side_by_side(*parts: Any) -> Any:
    """What lies in a register, from the lowest bit on."""
    return np.stack(parts, -1)


def parts_of(words: NDArray[Any], form: Any) -> list[Any]:
    """The values of a type in each word, from the lowest bit on."""
    if form == ml_dtypes.float4_e2m1fn:
        raw = words.view(np.uint8)
        return list(np.stack([raw & 15, raw >> 4], -1).view(form).reshape(len(words), -1).T)
    return list(words.view(form).reshape(len(words), -1).T)


def scale_of(by: NDArray[Any]) -> NDArray[Any]:
    """The power of two whose exponent a float32 holds (E8M0): that of what is endless is no number."""
    power = (by.view(np.uint32) >> 23 & 0xFF).astype(np.float64)
    return np.where(power == 0xFF, np.nan, 2.0 ** (power - 127))


def exactly(values: NDArray[Any], form: Any) -> Any:
    """Doubles in another type. A double is rounded once on its way to one of eight bits."""
    return by_lane(partial(rounded, form=form), form)(values) if form == np.float32 else values.astype(form)


EXPECTED: dict[str, Callable[..., Any]] = {
    "v_cvt_i32_i16": lambda a: a.astype(np.int32),
    "v_cvt_u32_u16": lambda a: a.astype(np.uint32),
    "v_cvt_flr_i32_f32": by_lane(lambda a: whole(math.floor(a) if math.isfinite(a) else a, "i32"), np.int32),
    # The documents add in float32.
    "v_cvt_rpi_i32_f32": lambda a: by_lane(partial(whole, kind="i32"), np.int32)(np.floor(a + np.float32(0.5))),
    "v_cvt_pkrtz_f16_f32": lambda *both: side_by_side(*(by_lane(truncated, np.float16)(each) for each in both)),
    "v_cvt_pk_f16_f32": lambda *both: side_by_side(*(each.astype(np.float16) for each in both)),
    "v_cvt_pk_bf16_f32": lambda *both: side_by_side(*(each.astype(ml_dtypes.bfloat16) for each in both)),
    "v_cvt_pk_i16_i32": lambda *both: side_by_side(*(np.clip(each, -32768, 32767).astype(np.int16) for each in both)),
    "v_cvt_pk_u16_u32": lambda *both: side_by_side(*(np.minimum(each, 65535).astype(np.uint16) for each in both)),
    "v_cvt_f32_bf16": lambda a: a.view(ml_dtypes.bfloat16).astype(np.float32),
}
for _from in ("f16", "f32", "f64"):
    for _to in ("i16", "u16", "i32", "u32"):
        _whole = by_lane(partial(whole, kind=_to), TYPES[_to])
        EXPECTED[f"v_cvt_{_to}_{_from}"] = _whole
        EXPECTED[f"v_cvt_pk_{_to}_{_from}"] = lambda *both, to=_whole: side_by_side(*map(to, both))
        EXPECTED[f"v_cvt_{_from}_{_to}"] = by_lane(partial(rounded, form=TYPES[_from].type), TYPES[_from])
    for _to in ("f16", "f32", "f64"):
        EXPECTED[f"v_cvt_{_to}_{_from}"] = by_lane(partial(rounded, form=TYPES[_to].type), TYPES[_to])
for _place in range(4):
    EXPECTED[f"v_cvt_f32_ubyte{_place}"] = lambda a, at=_place: parts_of(a, np.uint8)[at].astype(np.float32)
EXPECTED |= {f"s{name[1:]}": function for name, function in EXPECTED.items()}
for _name, _form in SHORT.items():
    for _end, _short in (("", _form), ("@fnuz", WITHOUT_INFINITY[_name])):
        EXPECTED |= {
            f"v_cvt_f32_{_name}{_end}": lambda a, form=_short: parts_of(a, form)[0].astype(np.float32),
            f"v_cvt_pk_f32_{_name}{_end}": lambda a, form=_short: tuple(
                each.astype(np.float32) for each in parts_of(a, form)
            ),
            f"v_cvt_pk_{_name}_f32{_end}": lambda *both, form=_short: side_by_side(
                *(each.astype(form) for each in both)
            ),
        }
    EXPECTED[f"v_cvt_scalef32_pk_{_name}_f32"] = lambda a, b, by, form=_form: side_by_side(
        *((each / scale_of(by)).astype(form) for each in (a, b))
    )
    for _kind in ("f16", "bf16"):
        EXPECTED[f"v_cvt_scalef32_pk_{_name}_{_kind}"] = lambda a, by, kind=_kind, form=_form: side_by_side(
            *((each.astype(np.float64) / scale_of(by)).astype(form) for each in parts_of(a, LONG[kind]))
        )


def widened(short: Any, kind: str, first: int) -> Callable[..., Any]:
    """Two short floats of a register, the first of them at a place, times a scale."""

    def meant(words: NDArray[Any], by: NDArray[Any]) -> Any:
        both = parts_of(words, short)[first : first + 2]
        found = [exactly(each.astype(np.float64) * scale_of(by), LONG[kind]) for each in both]
        return tuple(found) if kind == "f32" else side_by_side(*found)

    return meant


for _kind in LONG:
    for _name, _form in SHORT.items():
        EXPECTED[f"v_cvt_scalef32_pk_{_kind}_{_name}"] = widened(_form, _kind, 0)
    for _place in range(4):
        EXPECTED[f"v_cvt_scalef32_pk_{_kind}_fp4@{_place}"] = widened(ml_dtypes.float4_e2m1fn, _kind, 2 * _place)
EXPECTED = {name: function for name, function in EXPECTED.items() if name in OPERATIONS}


def test_the_families_are_there() -> None:
    assert len(EXPECTED) > 70


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_conversions(name: str) -> None:
    agree(name, EXPECTED[name])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("power", [-3, 0, 5])
@pytest.mark.parametrize("kind", list(LONG))
@pytest.mark.parametrize("short", list(SHORT))
def test_pairs_are_made_short(short: str, kind: str, power: int, engine: Any) -> None:
    """Four values of a lane, two by two into the halves of a register, divided by a power of two."""
    random = np.random.default_rng(6)
    values = (random.standard_normal(256) * 2.0 ** random.integers(-14, 12, 256)).astype(LONG[kind])
    values[:4] = [np.nan, np.inf, 0, -0.0]
    words = values.itemsize  # of four values
    scale = f"{np.float32(1.7 * 2.0**power).view(np.uint32):#x}"  # its fraction does not count
    low, high = ("v4, v5", "v6, v7") if kind == "f32" else ("v4", "v5")
    ends = ",".join("0" * (3 if kind == "f32" else 2))
    body = [
        f"v_mul_u32_u24_e32 v2, {4 * words}, v0",
        f"global_load_dwordx{words} v[4:{3 + words}], v2, s[4:5]",
        f"v_mov_b32_e32 v8, {scale}",
        f"v_cvt_scalef32_pk_{short}_{kind} v3, {low}, v8",
        f"v_cvt_scalef32_pk_{short}_{kind} v3, {high}, v8 op_sel:[{ends},1]",
        "global_store_dword v1, v3, s[6:7]",
    ]
    found = run(body, engine, values, 256, arch="gfx950").view(SHORT[short])
    with np.errstate(over="ignore", invalid="ignore"):
        same(found, (values.astype(np.float32) / np.float32(2.0**power)).astype(SHORT[short]))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("power", [-4, 0, 3])
@pytest.mark.parametrize("kind", list(LONG))
@pytest.mark.parametrize("short", list(SHORT))
def test_pairs_are_made_long(short: str, kind: str, power: int, engine: Any) -> None:
    """Every value, the two of a register's high half behind those of its low one, times a power of two."""
    values = np.arange(256, dtype=np.uint8)
    size = np.dtype(LONG[kind]).itemsize  # words of four values
    first, second = ("v[4:5]", "v[6:7]") if kind == "f32" else ("v4", "v5")
    body = [
        "global_load_dword v3, v1, s[4:5]",
        f"v_mov_b32_e32 v8, {np.float32(2.0**power).view(np.uint32):#x}",
        f"v_cvt_scalef32_pk_{kind}_{short} {first}, v3, v8",
        f"v_cvt_scalef32_pk_{kind}_{short} {second}, v3, v8 op_sel:[1,0,0]",
        f"v_mul_u32_u24_e32 v2, {4 * size}, v0",
        f"global_store_dwordx{size} v2, v[4:{3 + size}], s[6:7]",
    ]
    found = run(body, engine, values, 256 * size, arch="gfx950").view(LONG[kind])
    with np.errstate(over="ignore", invalid="ignore"):
        same(found, (values.view(SHORT[short]).astype(np.float32) * np.float32(2.0**power)).astype(LONG[kind]))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", list(LONG))
def test_pairs_of_four_bits_are_made_long(kind: str, engine: Any) -> None:
    """op_sel names the byte of a register that holds the two."""
    values = np.arange(256, dtype=np.uint8)
    size = np.dtype(LONG[kind]).itemsize // 2  # words of a pair
    results = [f"v[{4 + 2 * byte}:{5 + 2 * byte}]" if size == 2 else f"v{4 + byte}" for byte in range(4)]
    body = ["global_load_dword v3, v1, s[4:5]", "v_mov_b32_e32 v2, 4.0"]
    body += [
        f"v_cvt_scalef32_pk_{kind}_fp4 {result}, v3, v2 op_sel:[{byte & 1},{byte >> 1},0]"
        for byte, result in enumerate(results)
    ]
    body.append(f"v_mul_u32_u24_e32 v2, {16 * size}, v0")
    body += [f"global_store_dword v2, v{4 + place}, s[6:7] offset:{4 * place}" for place in range(4 * size)]
    found = run(body, engine, values, 64 * 16 * size, arch="gfx950").view(LONG[kind])
    pairs = np.stack([values & 15, values >> 4], -1).reshape(-1).view(ml_dtypes.float4_e2m1fn)
    same(found, (pairs.astype(np.float32) * 4).astype(LONG[kind]))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("v_minimum3_f32", lambda a, b, c: np.minimum(np.minimum(a, b), c)),
        ("v_maximum3_f32", lambda a, b, c: np.maximum(np.maximum(a, b), c)),
        ("v_minimummaximum_f32", lambda a, b, c: np.maximum(np.minimum(a, b), c)),
        ("v_maximumminimum_f32", lambda a, b, c: np.minimum(np.maximum(a, b), c)),
    ],
)
def test_minima_keep_nan(name: str, meant: Any, engine: Any) -> None:
    values = np.random.default_rng(8).standard_normal(96).astype(np.float32)
    values[[3, 40, 70]] = np.nan
    body = [
        *(f"global_load_b32 v{4 + place}, v1, s[4:5] offset:{128 * place}" for place in range(3)),
        f"{name} v3, v4, v5, v6",
        "global_store_b32 v1, v3, s[6:7]",
    ]
    found = run(body, engine, values, 128, arch="gfx1250").view(np.float32)
    same(found, meant(*values.reshape(3, 32)))


@pytest.mark.parametrize("engine", ENGINES)
def test_zeros_have_an_order(engine: Any) -> None:
    body = [
        "v_mov_b32_e32 v4, 0",
        "v_bfrev_b32_e32 v5, 1",
        "v_minimum_f32 v6, v4, v5",
        "v_maximum_f32 v7, v5, v4",
        "v_lshlrev_b32_e32 v2, 3, v0",
        "global_store_b64 v2, v[6:7], s[6:7]",
    ]
    found = run(body, engine, np.zeros(4, np.uint8), 256, arch="gfx1250").view(np.uint32)
    np.testing.assert_array_equal(found.reshape(32, 2), np.tile(np.array([1 << 31, 0], np.uint32), (32, 1)))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("name", "kept"), [("v_mad_u16", 0xABCD0000), ("v_mad_legacy_u16", 0)])
def test_the_legacy_product_clears_the_upper_half(name: str, kept: int, engine: Any) -> None:
    values = np.random.default_rng(8).integers(0, 2**32, 64, dtype=np.uint32)
    body = [
        "global_load_dword v3, v1, s[4:5]",
        "v_mov_b32_e32 v4, 0xabcd1234",
        f"{name} v4, v3, 6, v3",
        "global_store_dword v1, v4, s[6:7]",
    ]
    found = run(body, engine, values, 256, arch="gfx950").view(np.uint32)
    np.testing.assert_array_equal(found, ((values & 0xFFFF) * 7 & 0xFFFF) | kept)
