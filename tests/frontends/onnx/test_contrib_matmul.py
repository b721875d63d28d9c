"""Matrix products of com.microsoft against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.errors import ModelError, UnsupportedError
from tests.frontends.onnx.against_onnxruntime import assert_agrees
from tests.frontends.onnx.one_node import program, run

RNG = np.random.default_rng(0)
MS: Any = {"domain": "com.microsoft"}


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def bytes_of(kind: Any, *shape: int) -> Any:
    """Signed ones of 7 bits: on CPUs without VNNI, ONNX Runtime adds pairs of products in 16 bits, and saturates."""
    least, most = (-64, 63) if kind is np.int8 else (0, 255)
    return RNG.integers(least, most, shape, kind, endpoint=True)


@pytest.mark.parametrize("batched", [0, 1])
@pytest.mark.parametrize(("trans_a", "trans_b"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_fused_matmul(trans_a: int, trans_b: int, batched: int) -> None:
    a, b = floats(2, 3, 4, 5), floats(2, 3, 5, 6)
    a = a.swapaxes(-1, -2).copy() if trans_a else a
    b = b.swapaxes(-1, -2).copy() if trans_b else b
    if batched:
        a, b = (np.moveaxis(x, 2, 0).copy() for x in (a, b))
    flags: Any = {"transA": trans_a, "transB": trans_b, "transBatchA": batched, "transBatchB": batched}
    assert_agrees("FusedMatMul", a, b, alpha=0.3, **flags, **MS)


@pytest.mark.parametrize("kinds", [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
def test_matmul_integer_to_float(kinds: Any) -> None:
    a, b = bytes_of(kinds[0], 2, 3, 8), bytes_of(kinds[1], 8, 5)
    scale, scales, bias = np.array(0.03, np.float32), RNG.random(5).astype(np.float32), floats(5)
    zero, zeros = np.array(3, kinds[0]), np.full(5, 2, kinds[1])
    assert_agrees("MatMulIntegerToFloat", a, b, scale, scales, zero, zeros, bias, **MS)
    assert_agrees("MatMulIntegerToFloat", a, b, scale, scale, **MS)


def test_matmul_integer_to_float_by_columns_of_a() -> None:
    a, b = bytes_of(np.int8, 4, 3), bytes_of(np.uint8, 3, 2)
    scale_a, scale_b, bias = RNG.random(3), RNG.random(2), RNG.random(2)
    zero_a, zero_b = np.array([1, 2, 3], np.int8), np.array([4, 5], np.uint8)
    wanted = ((a - zero_a.astype(int)) * scale_a) @ ((b - zero_b.astype(int)) * scale_b) + bias
    reals = (value.astype(np.float32) for value in (scale_a, scale_b))
    found = run("MatMulIntegerToFloat", a, b, *reals, zero_a, zero_b, bias.astype(np.float32), **MS)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize(("a", "b"), [((), (3, 2)), ((4, 3), ()), ((), ())])
def test_matmul_integer_to_float_of_scalars(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    scale = np.array(0.5, np.float32)
    words = rf"MatMulIntegerToFloat \(node 0 → 'y'\): {'B' if a else 'A'} is int8\[\], expected rank 1 or more"
    with pytest.raises(ModelError, match=words):
        program("MatMulIntegerToFloat", [np.zeros(a, np.int8), np.zeros(b, np.int8), scale, scale], **MS)


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_dynamic_quantize_matmul(kind: Any) -> None:
    a, b = floats(3, 8), bytes_of(kind, 8, 5)
    scales, zeros = RNG.random(5).astype(np.float32), np.full(5, 2, kind)
    assert_agrees("DynamicQuantizeMatMul", a, b, scales, zeros, floats(5), rtol=1e-4, atol=1e-4, **MS)
    assert_agrees("DynamicQuantizeMatMul", a, b, np.array(0.1, np.float32), rtol=1e-4, atol=1e-4, **MS)


@pytest.mark.parametrize("kinds", [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
@pytest.mark.parametrize("trans_b", [0, 1])
def test_qgemm(kinds: Any, trans_b: int) -> None:
    a, b = bytes_of(kinds[0], 3, 8), bytes_of(kinds[1], *((5, 8) if trans_b else (8, 5)))
    scale, zero_a, zero_b = np.array(0.02, np.float32), np.array(3, kinds[0]), np.array(2, kinds[1])
    c = RNG.integers(-999, 999, 5, np.int32)
    inputs = [a, scale, zero_a, b, scale, zero_b, c]
    options: Any = {"transB": trans_b, "alpha": 0.5, "constant": (1, 2, 4, 5), **MS}
    assert_agrees("QGemm", *inputs, rtol=1e-4, **options)
    options["constant"] = (1, 2, 4, 5, 7, 8)
    assert_agrees("QGemm", *inputs, np.array(0.3, np.float32), np.array(7, kinds[0]), rtol=0, atol=1, **options)


def packed(codes: Any, bits: int) -> Any:
    """Codes `[..., n]` in bytes, the first in the low bits."""
    parts = codes.reshape(*codes.shape[:-1], -1, 8 // bits).astype(np.uint32)
    return (parts << (bits * np.arange(8 // bits))).sum(-1).astype(np.uint8)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zero_points", ["none", "packed", "float"])
@pytest.mark.parametrize(("depth", "block"), [(64, 16), (40, 32)])
def test_matmul_n_bits(bits: int, zero_points: str, depth: int, block: int) -> None:
    rows, blocks = 6, -(-depth // block)
    codes = RNG.integers(0, 2**bits, (rows, blocks, block))
    scales, bias = RNG.random((rows, blocks)).astype(np.float32), floats(rows)
    zeros = RNG.integers(0, 2**bits, (rows, blocks))
    stored = {
        "none": None,
        "packed": packed(np.pad(zeros, ((0, 0), (0, -blocks % (8 // bits)))), bits),
        "float": zeros.astype(np.float32),
    }[zero_points]
    real = zeros if stored is not None else np.full((rows, blocks), 2 ** (bits - 1))
    weights = ((codes - real[..., None]) * scales[..., None]).reshape(rows, -1)[:, :depth]
    a = floats(2, 3, depth)
    inputs = (a, packed(codes, bits), scales, stored, None, bias)
    options: Any = {"N": rows, "K": depth, "bits": bits, "block_size": block, **MS}
    np.testing.assert_allclose(run("MatMulNBits", *inputs, **options), a @ weights.T + bias, rtol=1e-4, atol=1e-4)
    if bits != 2 and zero_points != "float":
        assert_agrees("MatMulNBits", *inputs, constant=(1, 2, 3), rtol=1e-3, atol=1e-3, **options)


def test_matmul_n_bits_of_float16_rounds_once() -> None:
    codes = RNG.integers(0, 16, (4, 1, 32))
    a, scales = floats(3, 32).astype(np.float16), RNG.random((4, 1)).astype(np.float16)
    weights = ((codes - 8) * scales.astype(np.float64)[..., None]).reshape(4, 32)
    found = run("MatMulNBits", a, packed(codes, 4), scales, N=4, K=32, block_size=32, **MS)
    np.testing.assert_allclose(found, (a.astype(np.float64) @ weights.T).astype(np.float16), rtol=1e-3)


def test_matmul_n_bits_refuses() -> None:
    a, b, scales = floats(2, 32), np.zeros((4, 1, 16), np.uint8), np.ones((4, 1), np.float32)
    options: Any = {"N": 4, "K": 32, **MS}
    with pytest.raises(ModelError, match="attribute 'block_size' is 8, expected a power of 2 from 16 on"):
        program("MatMulNBits", [a, b, scales], block_size=8, **options)
    with pytest.raises(ModelError, match=r"input 2 is float32\[3, 1\], expected \[4, 1\]"):
        program("MatMulNBits", [a, b, scales[:3]], block_size=32, **options)
    with pytest.raises(UnsupportedError, match="attribute 'bits' is 3"):
        program("MatMulNBits", [a, b, scales], block_size=32, bits=3, **options)
    with pytest.raises(UnsupportedError, match="g_idx"):
        program("MatMulNBits", [a, b, scales, None, np.zeros(32, np.int32)], block_size=32, **options)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize(("rows", "depth", "block"), [(4, 32, 16), (3, 7, 16)])
def test_matmul_bnb4(kind: int, rows: int, depth: int, block: int) -> None:
    count = rows * depth
    b = bytes_of(np.uint8, (count + 1) // 2)
    absmax = RNG.random(-(-count // block)).astype(np.float32)
    options: Any = {"N": rows, "K": depth, "block_size": block, "quant_type": kind, **MS}
    assert_agrees("MatMulBnb4", floats(5, depth), b, absmax, constant=(1, 2), rtol=1e-4, atol=1e-5, **options)


def test_matmul_bnb4_refuses() -> None:
    a, b, absmax = floats(5, 32), np.zeros(64, np.uint8), np.ones(8, np.float32)
    options: Any = {"N": 4, "K": 32, **MS}
    with pytest.raises(ModelError, match="attribute 'quant_type' is 2"):
        program("MatMulBnb4", [a, b, absmax], quant_type=2, block_size=16, **options)
    with pytest.raises(ModelError, match=r"A is float32\[5, 31\], its last axis must have 32 elements"):
        program("MatMulBnb4", [a[:, 1:], b, absmax], quant_type=1, block_size=16, **options)
    with pytest.raises(ModelError, match="attribute 'N' is missing"):
        program("MatMulBnb4", [a, b, absmax], quant_type=1, block_size=16, K=32, **MS)
