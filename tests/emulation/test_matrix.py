"""Matrix instructions against numpy's products, with factors laid into lanes as the documents say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.emulation.assembly import read_assembly
from argosy.emulation.decode import decode
from argosy.emulation.refusal import NotEmulated
from tests.emulation.text import ENGINES, kernel_text, run

TYPES: dict[str, tuple[int, Any]] = {
    "f32": (32, np.float32), "f16": (16, np.float16), "bf16": (16, ml_dtypes.bfloat16), "i8": (8, np.int8),
    "iu8": (8, np.uint8), "fp8": (8, ml_dtypes.float8_e4m3fn), "bf8": (8, ml_dtypes.float8_e5m2),
    "fp8@fnuz": (8, ml_dtypes.float8_e4m3fnuz), "bf8@fnuz": (8, ml_dtypes.float8_e5m2fnuz),
    "fp6": (6, ml_dtypes.float6_e2m3fn), "bf6": (6, ml_dtypes.float6_e3m2fn), "fp4": (4, ml_dtypes.float4_e2m1fn),
}  # fmt: skip
"""Bits of a type, and numpy's."""
FORMATS = ("fp8", "bf8", "fp6", "bf6", "fp4")
"""As cbsz and blgp number them."""


def chosen(kind: str, shape: tuple[int, ...], random: np.random.Generator) -> NDArray[Any]:
    """Values of a type: integers of their whole range, halves of small integers else."""
    if kind in ("i8", "iu8"):
        limits = np.iinfo(TYPES[kind][1])
        return random.integers(limits.min, limits.max, shape, endpoint=True).astype(TYPES[kind][1])
    return (random.integers(-3, 4, shape) / 2).astype(TYPES[kind][1])


def packed(rows: NDArray[Any], bits: int) -> NDArray[np.uint32]:
    """Elements of each lane, one after the other from the lowest bit on."""
    raw = rows.view(np.dtype(f"u{rows.itemsize}")).astype(np.uint32)
    fields = (raw[..., None] >> np.arange(bits)) & 1
    flat = fields.astype(np.uint8).reshape(len(rows), -1)
    return np.packbits(flat, axis=1, bitorder="little").view(np.uint32)


def product(
    instruction: str, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any], engine: Any, arch: str, ends: str = ""
) -> NDArray[np.uint32]:
    """Registers of the result, given words of factors and summands (and, in c's last two, scales) of each lane."""
    wave, wide = len(a), "dword" if arch.startswith("gfx9") else "b32"
    values = np.concatenate([a, b, c], axis=1).astype(np.uint32)
    words = values.shape[1]
    lines = [f"v_mul_u32_u24_e32 v2, {4 * words}, v0"]
    lines += [f"global_load_{wide} v{8 + place}, v2, s[4:5] offset:{4 * place}" for place in range(words)]
    starts = np.cumsum([8, a.shape[1], b.shape[1]])
    first, second, third = (
        f"v[{at}:{at + count - 1}]" for at, count in zip(starts, (a.shape[1], b.shape[1], 0), strict=True)
    )
    registers = c.shape[1] - (2 if "scale" in instruction else 0)
    third = f"v[{starts[2]}:{starts[2] + registers - 1}]"
    scales = f", v{starts[2] + registers}, v{starts[2] + registers + 1}" if "scale" in instruction else ""
    lines.append(f"{instruction} {third}, {first}, {second}, {third}{scales}{ends}")
    lines.append(f"v_mul_u32_u24_e32 v2, {4 * registers}, v0")
    lines += [f"global_store_{wide} v2, v{starts[2] + place}, s[6:7] offset:{4 * place}" for place in range(registers)]
    found = run(lines, engine, values, 4 * wave * registers, arch=arch)
    return found.view(np.uint32).reshape(wave, registers)


# ------------------------------------------------------------------------------------------------------ waves of 64
def result_places(side: int) -> Iterator[tuple[int, int, int, int]]:
    """Row, column, lane and register of each element of D ("Output layout" of the CDNA4 document)."""
    height, rows_of_item = 4, 64 // side
    for i in range(side):
        for j in range(side):
            register = i % height + height * (i // (height * rows_of_item))
            yield i, j, j + side * (i // height % rows_of_item), register


def with_results(side: int, c: NDArray[Any]) -> NDArray[Any]:
    words = np.zeros((64, side * side // 64), c.dtype)
    for i, j, lane, register in result_places(side):
        words[lane, register] = c[i, j]
    return words.view(np.uint32)


def results_of(side: int, words: NDArray[np.uint32], kind: Any) -> NDArray[Any]:
    made = np.zeros((side, side), kind)
    for i, j, lane, register in result_places(side):
        made[i, j] = words.view(kind)[lane, register]
    return made


def in_lanes(factor: NDArray[Any], bits: int) -> NDArray[np.uint32]:
    """A, or the transpose of B, as lanes hold it ("Input layout"; bytes of the long ones as "Dense Matrix Layouts")."""
    side, k = factor.shape
    groups = 64 // side
    each = k // groups
    rows = np.zeros((64, each), factor.dtype)
    for i in range(side):
        for place in range(k):
            if each == 32 and bits == 8:
                lane, item = i + side * (place // 16 % groups), place % 16 + 16 * (place // (16 * groups))
            else:
                lane, item = i + side * (place // each), place % each
            rows[lane, item] = factor[i, place]
    return packed(rows, bits)


MFMA = {
    "gfx90a": ["f32_16x16x16f16", "f32_32x32x8f16", "f32_16x16x8bf16", "f32_32x32x4bf16", "f32_16x16x16bf16_1k",
               "f32_32x32x8bf16_1k", "i32_16x16x16i8", "i32_32x32x8i8", "f32_16x16x4f32", "f32_32x32x2f32"],
    "gfx942": ["f32_16x16x16_f16", "f32_32x32x8_f16", "f32_16x16x16_bf16", "f32_32x32x8_bf16", "i32_16x16x32_i8",
               "i32_32x32x16_i8", "f32_16x16x4_f32", "f32_32x32x2_f32", "f32_16x16x32_fp8_fp8", "f32_16x16x32_bf8_fp8",
               "f32_32x32x16_fp8_bf8", "f32_32x32x16_bf8_bf8"],
    "gfx950": ["f32_16x16x4_f32", "f32_16x16x32_f16", "f32_32x32x16_f16", "f32_16x16x32_bf16", "f32_32x32x16_bf16",
               "i32_16x16x64_i8", "i32_32x32x32_i8", "f32_16x16x32_fp8_bf8", "f32_32x32x16_bf8_fp8"],
}  # fmt: skip
"""Out, sides, k, and the types of the factors."""
PARTS = re.compile(r"^([a-z0-9]+)_(\d+)x\d+x(\d+)_?(.*)$")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("arch", "name"), [(arch, name) for arch, names in MFMA.items() for name in names])
def test_mfma(arch: str, name: str, engine: Any) -> None:
    out, side, k, kinds = PARTS.match(name).groups()  # type: ignore[union-attr]
    kind, other = (kinds.removesuffix("_1k").split("_") * 2)[:2]
    if arch == "gfx942" and kind in ("fp8", "bf8"):
        kind, other = f"{kind}@fnuz", f"{other}@fnuz"
    random = np.random.default_rng(3)
    a, b = chosen(kind, (int(side), int(k)), random), chosen(other, (int(k), int(side)), random)
    c = random.integers(-9, 9, (int(side), int(side))).astype(np.int32 if out == "i32" else TYPES[out][1])
    bits = TYPES[kind][0]
    summands = with_results(int(side), c)
    found = product(f"v_mfma_{name}", in_lanes(a, bits), in_lanes(b.T.copy(), bits), summands, engine, arch)
    expected = a.astype(np.float64) @ b.astype(np.float64) + c
    np.testing.assert_array_equal(results_of(int(side), found, c.dtype), expected)


DOUBLES = {"gfx90a": "f64_16x16x4f64", "gfx942": "f64_16x16x4_f64"}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("arch", "name"), list(DOUBLES.items()))
def test_mfma_of_doubles(arch: str, name: str, engine: Any) -> None:
    """Registers of a result go through its rows four by four, lanes through columns and those four."""
    a, b, c = (
        np.random.default_rng(6).integers(-99, 99, each).astype(np.float64) for each in ((16, 4), (4, 16), (16, 16))
    )
    summands = c.reshape(4, 4, 16).transpose(1, 2, 0).reshape(64, 4).copy().view(np.uint32)
    left, right = (each.reshape(64, 1).copy().view(np.uint32) for each in (a.T, b))
    found = product(f"v_mfma_{name}", left, right, summands, engine, arch).view(np.float64)
    np.testing.assert_array_equal(found.reshape(4, 16, 4).transpose(2, 0, 1).reshape(16, 16), a @ b + c)


SHORT = [("fp8", "fp8"), ("fp8", "fp4"), ("fp4", "fp4"), ("fp6", "bf6"), ("bf8", "fp6"), ("bf6", "bf8")]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(("side", "k"), [(16, 128), (32, 64)])
@pytest.mark.parametrize(("left", "right"), SHORT)
def test_mfma_of_short_floats(left: str, right: str, side: int, k: int, scaled: bool, engine: Any) -> None:
    random = np.random.default_rng(4)
    a, b = chosen(left, (side, k), random), chosen(right, (k, side), random)
    c = random.integers(-9, 9, (side, side)).astype(np.float32)
    ends = " op_sel:[0,1,0] op_sel_hi:[1,0,0]" * scaled + f" cbsz:{FORMATS.index(left)} blgp:{FORMATS.index(right)}"
    wide_a, wide_b, summands = a.astype(np.float64), b.astype(np.float64), with_results(side, c)
    if scaled:
        # A byte for each row and block of 32: of A's words the third (2), of B's the second (1).
        powers = random.integers(125, 130, (2, side, k // 32))
        wide_a = wide_a * np.repeat(2.0 ** (powers[0] - 127), 32, axis=1)
        wide_b = wide_b * np.repeat(2.0 ** (powers[1] - 127), 32, axis=1).T
        lanes = powers.transpose(0, 2, 1).reshape(2, 64).astype(np.uint32)
        others = random.integers(0, 256, (2, 64)).astype(np.uint32) * np.uint32(0x01010101)
        others[0] &= np.uint32(0xFF00FFFF)
        others[1] &= np.uint32(0xFFFF00FF)
        words = others | np.stack([lanes[0] << np.uint32(16), lanes[1] << np.uint32(8)])
        summands = np.concatenate([summands, words.T], axis=1)
    name = f"v_mfma_{'scale_' * scaled}f32_{side}x{side}x{k}_f8f6f4"
    bits = TYPES[left][0], TYPES[right][0]
    found = product(name, in_lanes(a, bits[0]), in_lanes(b.T.copy(), bits[1]), summands, engine, "gfx950", ends)
    np.testing.assert_array_equal(results_of(side, found, np.float32), wide_a @ wide_b + c)


# ------------------------------------------------------------------------------------------------------ waves of 32
def in_half_lanes(factor: NDArray[Any], bits: int) -> NDArray[np.uint32]:
    """A, or the transpose of B, for gfx1250: halves of a wave take turns at runs along k, of 8 or 16 elements."""
    k = factor.shape[1]
    run_length = {4: 2, 32: 8, 64: 16, 128: 16}[k]
    rows = np.zeros((32, k // 2), factor.dtype)
    for i in range(16):
        for place in range(k):
            turn = place // run_length
            rows[i + 16 * (turn % 2), turn // 2 * run_length + place % run_length] = factor[i, place]
    return packed(rows, bits)


def in_wave(factor: NDArray[Any], bits: int, arch: str) -> NDArray[np.uint32]:
    """A, or the transpose of B: both halves of a wave hold all of it, or its halves along k, or runs of it in turn."""
    if arch == "gfx1250":
        return in_half_lanes(factor, bits)
    k = factor.shape[1]
    rows = [factor, factor] if arch == "gfx1100" else [factor[:, : k // 2], factor[:, k // 2 :]]
    return packed(np.concatenate(rows), bits)


def rows_in_wave(values: NDArray[Any], arch: str) -> NDArray[Any]:
    """C or D, its rows in 8 registers of two halves of a wave: every second row, or the upper and the lower ones."""
    order = (8, 2) if arch == "gfx1100" else (2, 8)
    parts = values.reshape(*order, 16)
    return parts.transpose(1, 2, 0).reshape(32, 8) if arch == "gfx1100" else parts.transpose(0, 2, 1).reshape(32, 8)


WMMA = {
    "gfx1100": ["f32_16x16x16_f16", "f32_16x16x16_bf16", "i32_16x16x16_iu8", "f16_16x16x16_f16", "bf16_16x16x16_bf16"],
    "gfx1201": ["f32_16x16x16_f16", "f32_16x16x16_bf16", "i32_16x16x16_iu8", "f32_16x16x16_fp8_fp8",
                "f32_16x16x16_fp8_bf8", "f32_16x16x16_bf8_fp8", "f32_16x16x16_bf8_bf8"],
    "gfx1250": ["f32_16x16x4_f32", "f32_16x16x32_f16", "f32_16x16x32_bf16", "i32_16x16x64_iu8", "f32_16x16x64_fp8_bf8",
                "f32_16x16x128_bf8_fp8"],
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("arch", "name", "signs"),
    [
        (arch, name, signs)
        for arch, names in WMMA.items()
        for name in names
        for signs in (("", " neg_lo:[1,0,0]", " neg_lo:[1,1,0]") if "iu8" in name else ("",))
    ],
)
def test_wmma(arch: str, name: str, signs: str, engine: Any) -> None:
    out, _, length, kinds = PARTS.match(name).groups()  # type: ignore[union-attr]
    k, random = int(length), np.random.default_rng(5)
    kind, other = (kinds.split("_") * 2)[:2]
    if kind == "iu8":
        kind, other = ("i8" if "[1," in signs else "iu8"), ("i8" if ",1,0]" in signs else "iu8")
    a, b = chosen(kind, (16, k), random), chosen(other, (k, 16), random)
    c = random.integers(-9, 9, (16, 16)).astype(np.int32 if out == "i32" else TYPES[out][1])
    held = rows_in_wave(c, arch).copy()
    kept = np.uint32(0xABCD0000) if c.itemsize == 2 else np.uint32(0)  # results of 16 bits leave the others
    summands = held.view(f"u{c.itemsize}").astype(np.uint32) | kept
    bits = TYPES[kind][0]
    found = product(
        f"v_wmma_{name}", in_wave(a, bits, arch), in_wave(b.T.copy(), bits, arch), summands, engine, arch, signs
    )
    exact = (a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)).astype(c.dtype)
    expected = rows_in_wave(exact, arch).copy().view(f"u{c.itemsize}").astype(np.uint32) | kept
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("arch", "line", "told"),
    [
        ("gfx950", "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:15], v[16:23], v[0:3] cbsz:5", "the instruction v_mfma"),
        ("gfx950", "v_mfma_f32_16x16x32_f16 v[0:3], v[8:11], v[12:15], v[0:3] cbsz:1", "the modifier cbsz"),
        ("gfx950", "v_mfma_f32_16x16x32_f16 v[0:3], v[8:11], v[12:15], v[0:3] neg_lo:[1,0,0]", "neg_lo of a matrix"),
        ("gfx950", "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[8:9], v[12:13], v[0:3]", "the instruction v_mfma_f32_4x4x4"),
        ("gfx1250", "v_wmma_f16_16x16x32_f16 v[0:3], v[8:15], v[16:23], v[0:3]", "the instruction v_wmma_f16"),
        ("gfx1250", "v_wmma_i32_16x16x64_iu8 v[0:7], v[8:15], v[16:23], v[0:7] neg_lo:[0,0,1]", "neg_lo of a matrix"),
        ("gfx942", "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]", "the instruction v_wmma"),
    ],
)
def test_products_that_are_not_known_are_refused(arch: str, line: str, told: str) -> None:
    with pytest.raises(NotEmulated, match=told):
        decode(read_assembly(kernel_text(line, arch)))
