"""Quantisation: every element type, ties, saturation, axes and blocks."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from argosy.errors import ModelError
from argosy.ir import Builder, Symbol, TensorType, symbol_dim
from argosy.ir.dtype import DTYPES, FLOAT32, UINT8
from argosy.ops.demands import demands_of
from argosy.ops.quantize import Dequantize, Quantize
from tests.ops.agreement import apply, infer, tensor

RANGES = {
    "uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767),
    "uint4": (0, 15), "int4": (-8, 7), "uint2": (0, 3), "int2": (-2, 1),
}  # fmt: skip


@pytest.mark.parametrize("size", [4, 5, 2**62])
def test_a_block_may_be_longer_than_its_axis(size: int) -> None:
    x, scale = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([[1], [2], [4]], np.float32)
    (codes,) = apply(
        Quantize(UINT8, 1, block_size=size), tensor("float32", 3, 4), tensor("float32", 3, 1), feeds=[x, scale]
    )
    np.testing.assert_array_equal(codes, np.rint(x / scale).astype(np.uint8))


@pytest.mark.parametrize("name", RANGES)
def test_integers_round_half_to_even_and_saturate(name: str) -> None:
    low, high = RANGES[name]
    x = np.array([-1e9, -0.5, 0.0, 0.5, 1.5, 2.5, 1e9, -np.inf, np.inf, np.nan], np.float32)
    zero = np.asarray(1).astype(DTYPES[name].numpy)
    kinds = tensor("float32", "n"), tensor("float32"), tensor(name)
    (found,) = apply(Quantize(DTYPES[name]), *kinds, feeds=[x, np.array(1.0, np.float32), zero])
    expected = np.clip([-1e9, 1, 1, 1, 3, 3, 1e9, -1e9, 1e9, 1e9], low, high)
    np.testing.assert_array_equal(found.astype(np.int64), expected.astype(np.int64))


@pytest.mark.parametrize(
    ("name", "largest", "overflow"),
    [("float8_e4m3fn", 448, np.nan), ("float8_e4m3fnuz", 240, np.nan), ("float8_e5m2", 57344, np.inf)],
)
def test_eight_bit_floats_saturate_or_overflow(name: str, largest: float, overflow: float) -> None:
    x, scale = np.array([1e9, -1e9, 1.2], np.float32), np.array(2.0, np.float32)
    kinds = tensor("float32", "n"), tensor("float32")
    (kept,) = apply(Quantize(DTYPES[name]), *kinds, feeds=[x, scale])
    np.testing.assert_array_equal(kept.astype(np.float32), [largest, -largest, 0.625])
    (lost,) = apply(Quantize(DTYPES[name], saturate=False), *kinds, feeds=[x, scale])
    np.testing.assert_array_equal(lost.astype(np.float32), [overflow, -overflow, 0.625])


def test_the_quotient_is_rounded_to_its_precision() -> None:
    # 1.00048828125 / 1 is 1.0 in float16, so that a scaled half rounds down.
    x, scale = np.array([2.5009765625], np.float32), np.array(1.0, np.float16)
    kinds = tensor("float32", 1), tensor("float16")
    (short,) = apply(Quantize(UINT8), *kinds, feeds=[x, scale])
    (wide,) = apply(Quantize(UINT8, precision=FLOAT32), *kinds, feeds=[x, scale])
    assert short.tolist() == [2]
    assert wide.tolist() == [3]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_an_axis_with_scales(axis: int) -> None:
    x = np.arange(-12, 12, dtype=np.int8).reshape(2, 3, 4)
    size = x.shape[axis]
    scale, zero = np.arange(1, size + 1, dtype=np.float32), np.arange(size, dtype=np.int8)
    kinds = tensor("int8", 2, 3, 4), tensor("float32", size), tensor("int8", size)
    (real,) = apply(Dequantize(FLOAT32, axis), *kinds, feeds=[x, scale, zero])
    shape = [-1 if place == axis % 3 else 1 for place in range(3)]
    np.testing.assert_array_equal(real, (x.astype(np.float32) - zero.reshape(shape)) * scale.reshape(shape))
    kinds = tensor("float32", 2, 3, 4), tensor("float32", size), tensor("int8", size)
    (back,) = apply(Quantize(DTYPES["int8"], axis), *kinds, feeds=[real, scale, zero])
    np.testing.assert_array_equal(back, x)


@pytest.mark.parametrize("size", [4, 5, 6])
def test_blocks_may_end_early(size: int) -> None:
    x = np.arange(2 * size, dtype=np.int8).reshape(2, size)
    scale = np.arange(1, 2 * -(-size // 2) + 1, dtype=np.float32).reshape(2, -1)
    kinds = tensor("int8", 2, "n"), tensor("float32", 2, "m")
    (found,) = apply(Dequantize(FLOAT32, 1, 2), *kinds, feeds=[x, scale])
    np.testing.assert_array_equal(found, x * np.repeat(scale, 2, 1)[:, :size])


def test_blocks_of_a_vector_whose_sizes_only_the_run_knows() -> None:
    """The scale is no number for all elements, though it may have one element: its size is that of the blocks."""
    x, scale = np.arange(6, dtype=np.int8), np.array([1, 2, 4], np.float32)
    build = Builder()
    n = symbol_dim(Symbol("n"))
    kinds = [TensorType(DTYPES["int8"], (2 * n,)), TensorType(FLOAT32, (n,))]
    value = build.add(Dequantize(FLOAT32, -1, 2), *(build.parameter(f"x{place}", k) for place, k in enumerate(kinds)))
    assert demands_of(value.instruction) == ()
    (found,) = apply(Dequantize(FLOAT32, -1, 2), *kinds, feeds=[x, scale])
    np.testing.assert_array_equal(found, x * np.repeat(scale, 2))


def test_int32_loses_no_digits_before_the_zero_point_is_taken_off() -> None:
    x, zero = np.array([2**30 + 1], np.int32), np.array(2**30, np.int32)
    kinds = tensor("int32", 1), tensor("float32"), tensor("int32")
    (found,) = apply(Dequantize(FLOAT32), *kinds, feeds=[x, np.array(3.0, np.float32), zero])
    assert found.tolist() == [3.0]


def test_short_results() -> None:
    x = np.array([3], ml_dtypes.float8_e4m3fn)
    kinds = tensor("float8_e4m3fn", 1), tensor("bfloat16")
    (found,) = apply(Dequantize(DTYPES["bfloat16"]), *kinds, feeds=[x, np.asarray(0.5, ml_dtypes.bfloat16)])
    assert found.dtype == ml_dtypes.bfloat16
    assert found.astype(np.float32).tolist() == [1.5]


X = tensor("float32", 2, 6)


@pytest.mark.parametrize(
    ("op", "operands", "words"),
    [
        (Quantize(UINT8), (X, tensor("float32", 5)), "the scale has 5 elements, axis 1 of x has 6"),
        (Quantize(UINT8, 3), (X, tensor("float32", 6)), "axis is 3, expected -2..1"),
        (Quantize(UINT8), (X, tensor("float32", 2, 6)), "rank 0 or 1, or a block_size"),
        (Quantize(UINT8, 1, 3), (X, tensor("float32", 2, 3)), "the scale has 3 elements on axis 1, expected 2"),
        (Quantize(UINT8), (X, tensor("float32"), tensor("int8")), "zero point has type int8, the result uint8"),
        (Quantize(UINT8), (X, tensor("float32"), tensor("uint8", 5)), "the zero point has 5 elements"),
        (Quantize(FLOAT32), (X, tensor("float32")), "no quantisation to float32"),
        (Dequantize(FLOAT32), (X, tensor("float32")), "tensor of float32 is not quantised"),
        (Dequantize(FLOAT32), (tensor("int32", 3), tensor("int8")), "the scale has type int8"),
    ],
)
def test_contradictions_are_named(op: Any, operands: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        infer(op, *operands)


def test_int32_scales_are_taken() -> None:
    (found,) = apply(
        Quantize(UINT8), tensor("int32", 1), tensor("int32"), feeds=[np.array([9], np.int32), np.array(2, np.int32)]
    )
    assert found.tolist() == [4]
