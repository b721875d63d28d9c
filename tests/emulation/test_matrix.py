"""Matrix instructions against numpy's products, with factors laid into lanes as the documents say."""

from __future__ import annotations

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


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("arch", "side", "k", "kind", "other"),
    [
        ("gfx942", 16, 16, "f16", ""),
        ("gfx942", 32, 8, "f16", ""),
        ("gfx950", 16, 4, "f32", ""),
        ("gfx950", 16, 32, "f16", ""),
        ("gfx950", 32, 16, "f16", ""),
        ("gfx950", 16, 32, "bf16", ""),
        ("gfx950", 32, 16, "bf16", ""),
        ("gfx950", 16, 64, "i8", ""),
        ("gfx950", 32, 32, "i8", ""),
        ("gfx950", 16, 32, "fp8", "bf8"),
        ("gfx950", 32, 16, "bf8", "fp8"),
    ],
)
def test_mfma(arch: str, side: int, k: int, kind: str, other: str, engine: Any) -> None:
    random = np.random.default_rng(3)
    a, b = chosen(kind, (side, k), random), chosen(other or kind, (k, side), random)
    whole = kind == "i8"
    c = random.integers(-9, 9, (side, side)).astype(np.int32 if whole else np.float32)
    name = f"v_mfma_{'i32' if whole else 'f32'}_{side}x{side}x{k}_{kind}{f'_{other}' if other else ''}"
    bits = TYPES[kind][0]
    found = product(name, in_lanes(a, bits), in_lanes(b.T.copy(), bits), with_results(side, c), engine, arch)
    expected = a.astype(np.float64) @ b.astype(np.float64) + c
    np.testing.assert_array_equal(results_of(side, found, c.dtype), expected)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(("side", "k"), [(16, 128), (32, 64)])
@pytest.mark.parametrize(
    ("left", "right"), [("fp8", "fp8"), ("fp8", "fp4"), ("fp4", "fp4"), ("fp6", "bf6"), ("bf8", "fp6"), ("bf6", "bf8")]
)
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


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("k", "kind", "other", "signs"),
    [
        (4, "f32", "", ""),
        (32, "f16", "", ""),
        (32, "bf16", "", ""),
        (64, "iu8", "", ""),
        (64, "i8", "", " neg_lo:[1,1,0]"),
        (64, "fp8", "bf8", ""),
        (128, "bf8", "fp8", ""),
    ],
)
def test_wmma(k: int, kind: str, other: str, signs: str, engine: Any) -> None:
    random = np.random.default_rng(5)
    a, b = chosen(kind, (16, k), random), chosen(other or kind, (k, 16), random)
    whole = kind in ("i8", "iu8")
    c = random.integers(-9, 9, (16, 16)).astype(np.int32 if whole else np.float32)
    types = "iu8" if whole else f"{kind}_{other}" if other else kind
    bits = TYPES[kind][0]
    # Lane j and 16 lanes on hold column j: rows 0 to 7, and 8 to 15.
    summands = c.reshape(2, 8, 16).transpose(0, 2, 1).reshape(32, 8).copy().view(np.uint32)
    name = f"v_wmma_{'i32' if whole else 'f32'}_16x16x{k}_{types}"
    found = product(name, in_half_lanes(a, bits), in_half_lanes(b.T.copy(), bits), summands, engine, "gfx1250", signs)
    made = found.view(c.dtype).reshape(2, 16, 8).transpose(0, 2, 1).reshape(16, 16)
    np.testing.assert_array_equal(made, a.astype(np.float64) @ b.astype(np.float64) + c)


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
