"""Matrix products against ONNX Runtime and numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.errors import ModelError
from tests.frontends.onnx.against_onnxruntime import assert_agrees
from tests.frontends.onnx.one_node import program, run

RNG = np.random.default_rng(0)
A, B, C = (RNG.standard_normal(shape).astype(np.float32) for shape in ((3, 4), (4, 5), (3, 5)))


@pytest.mark.parametrize("opset", [9, 11, 13])
@pytest.mark.parametrize(("trans_a", "trans_b"), [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("c", [C, C[0], C[:, :1], np.array(2.0, np.float32)], ids=lambda c: str(c.shape))
def test_gemm(opset: int, trans_a: int, trans_b: int, c: Any) -> None:
    a, b = A.T.copy() if trans_a else A, B.T.copy() if trans_b else B
    assert_agrees("Gemm", a, b, c, opset=opset, alpha=0.5, beta=2.0, transA=trans_a, transB=trans_b)


def test_gemm_without_c_and_with_a_zero_beta() -> None:
    assert_agrees("Gemm", A, B, opset=13, alpha=0.25)
    np.testing.assert_array_equal(run("Gemm", A, B, np.full((3, 5), np.nan, np.float32), beta=0.0), run("Gemm", A, B))


@pytest.mark.parametrize("opset", [1, 6])
def test_gemm_before_opset_7(opset: int) -> None:
    np.testing.assert_allclose(run("Gemm", A, B, C[0], opset=opset, broadcast=1), A @ B + C[0], rtol=1e-5)


def test_gemm_of_float16_rounds_once() -> None:
    a, b, c = np.full((1, 2), 2049.0, np.float16), np.ones((2, 1), np.float16), np.array([[-4096.0]], np.float16)
    assert run("Gemm", a, b, c).tolist() == [[float(np.float16(2 * float(a[0, 0]) - 4096))]]


def test_gemm_of_integers() -> None:
    x = np.array([[2, 3]], np.int32)
    assert run("Gemm", x, x, np.array([[10]], np.int32), transB=1).tolist() == [[23]]


def test_gemm_wants_matrices() -> None:
    with pytest.raises(ModelError, match=r"Gemm \(node 0 → 'y'\): A and B must have rank 2, found float32\[2, 3, 4\]"):
        program("Gemm", [np.zeros((2, 3, 4), np.float32), B])


@pytest.mark.parametrize("kinds", [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
@pytest.mark.parametrize("constant", [(), (1, 2, 3)])
def test_matmul_integer(kinds: Any, constant: Any) -> None:
    a, b = (
        RNG.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, kind)
        for kind, shape in zip(kinds, ((3, 4), (4, 5)), strict=True)
    )
    zero_a, zero_b = np.array(3, kinds[0]), RNG.integers(0, 9, 5, kinds[1])
    assert_agrees("MatMulInteger", a, b, zero_a, zero_b, constant=constant)
    assert_agrees("MatMulInteger", a, b)


def test_matmul_integer_with_a_zero_point_for_each_row() -> None:
    a, b, zero = (
        RNG.integers(0, 9, (3, 4), np.uint8),
        RNG.integers(0, 9, (4, 5), np.uint8),
        np.array([1, 2, 3], np.uint8),
    )
    expected = (a.astype(np.int32) - zero.astype(np.int32)[:, None]) @ b.astype(np.int32)
    np.testing.assert_array_equal(run("MatMulInteger", a, b, zero), expected)


def test_matmul_integer_wants_bytes_and_zero_points_of_their_type() -> None:
    a, b = np.ones((2, 3), np.uint8), np.ones((3, 2), np.int8)
    with pytest.raises(ModelError, match="zero point of a tensor of uint8 has type int8"):
        program("MatMulInteger", [a, b, np.array(1, np.int8)])
    with pytest.raises(ModelError, match="expected a tensor of int8 or uint8, found int16"):
        program("MatMulInteger", [a, b.astype(np.int16)])


@pytest.mark.parametrize("options", [{}, {"transA": 1}, {"transB": 1}, {"alpha": 0.125, "transA": 1, "transB": 1}])
def test_fused_matmul(options: dict[str, Any]) -> None:
    a = RNG.standard_normal((2, 4, 3) if options.get("transA") else (2, 3, 4)).astype(np.float32)
    b = RNG.standard_normal((2, 5, 4) if options.get("transB") else (2, 4, 5)).astype(np.float32)
    assert_agrees("FusedMatMul", a, b, domain="com.microsoft", **options)


def test_fused_matmul_moves_the_batch() -> None:
    a, b = RNG.standard_normal((3, 2, 4)).astype(np.float32), RNG.standard_normal((2, 4, 5)).astype(np.float32)
    assert_agrees("FusedMatMul", a, b, domain="com.microsoft", transBatchA=1)
