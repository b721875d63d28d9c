"""Conversions to and from short floats against ml_dtypes', minima that keep NaN against numpy's, 16-bit results."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.emulation.text import ENGINES, run

SHORT = {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2}
LONG = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def same(found: NDArray[Any], expected: NDArray[Any]) -> None:
    """Bit for bit, but for what is no number."""
    numbers = ~np.isnan(expected.astype(np.float64))
    np.testing.assert_array_equal(np.isnan(found.astype(np.float64)), ~numbers)
    raw = f"u{found.itemsize}"
    np.testing.assert_array_equal(found[numbers].view(raw), expected[numbers].view(raw))


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
