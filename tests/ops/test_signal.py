"""Fourier transforms against their definition, frames, mel weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.errors import ModelError
from argosy.ir.dtype import FLOAT32
from argosy.ops.signal import Fourier, Frames, MelWeights
from tests.ops.agreement import apply, infer, tensor

Complex = NDArray[Any]


def transform(x: Complex, size: int, *, inverse: bool = False) -> Complex:
    """The definition along the last axis, in complex128."""
    cut = np.zeros((*x.shape[:-1], size), np.complex128)
    cut[..., : min(size, x.shape[-1])] = x[..., :size]
    n = np.arange(size)
    matrix = np.exp((2j if inverse else -2j) * np.pi * n[:, None] * n / size)
    return cut @ matrix / (size if inverse else 1)


@pytest.mark.parametrize("size", [1, 6, 7])
@pytest.mark.parametrize("length", [None, 4, 9])
@pytest.mark.parametrize("onesided", [False, True])
@pytest.mark.parametrize("parts", [1, 2])
def test_forward(size: int, length: int | None, onesided: bool, parts: int) -> None:
    x = np.random.default_rng(0).standard_normal((2, size, parts)).astype(np.float32)
    op = Fourier(length, 1, onesided=onesided)
    (found,) = apply(op, tensor("float32", 2, "t", parts), feeds=[x])
    wide = x.astype(np.float64)
    expected = transform(wide[..., 0] + (1j * wide[..., 1] if parts == 2 else 0), length or size)
    expected = expected[:, : (length or size) // 2 + 1] if onesided else expected
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], expected, atol=2e-6)


@pytest.mark.parametrize("size", [5, 8])
def test_inverse(size: int) -> None:
    x = np.random.default_rng(1).standard_normal((size, 3, 2)).astype(np.float64)
    (found,) = apply(Fourier(None, 0, inverse=True), tensor("float64", "t", 3, 2), feeds=[x])
    expected = transform((x[..., 0] + 1j * x[..., 1]).T, size, inverse=True).T
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], expected, atol=1e-14)


@pytest.mark.parametrize("size", [6, 7])
def test_half_a_spectrum_gives_the_real_signal_back(size: int) -> None:
    x = np.random.default_rng(2).standard_normal((2, size, 1)).astype(np.float32)
    (half,) = apply(Fourier(None, 1, onesided=True), tensor("float32", 2, "t", 1), feeds=[x])
    kinds = tensor("float32", 2, "t", 2), tensor("int64")
    (back,) = apply(Fourier(None, 1, inverse=True, onesided=True), *kinds, feeds=[half, np.array(size)])
    np.testing.assert_allclose(back, x, atol=1e-6)


def test_length_and_axis_at_run_time() -> None:
    x = np.ones((2, 3, 4, 1), np.float32)
    kinds = tensor("float32", 2, 3, 4, 1), tensor("int64"), tensor("int64")
    (found,) = apply(Fourier(), *kinds, feeds=[x, np.array(8), np.array(-2)])
    assert found.shape == (2, 3, 8, 2)


def test_what_no_transform_has() -> None:
    with pytest.raises(ModelError, match="must hold 1 or 2 parts, found 3"):
        infer(Fourier(None, 0), tensor("float32", 4, 3))
    with pytest.raises(ModelError, match="last axis holds real and imaginary parts"):
        infer(Fourier(None, -1), tensor("float32", 4, 2))


@pytest.mark.parametrize("total", [8, 9, 11])
def test_frames(total: int) -> None:
    x = np.arange(total, dtype=np.float32).reshape(1, total, 1)
    (found,) = apply(Frames(4, 3), tensor("float32", 1, "t", 1), feeds=[x])
    expected = [x[0, i : i + 4] for i in range(0, total - 3, 3)]
    np.testing.assert_array_equal(found[0], expected)
    with pytest.raises(ModelError, match="frame of 4 does not fit into a signal of 3"):
        infer(Frames(4, 3), tensor("float32", 1, 3, 1))


def test_mel_weights_are_triangles() -> None:
    scalars = [np.array(8), np.array(32), np.array(8000), np.array(20.0, np.float32), np.array(4000.0, np.float32)]
    (found,) = apply(MelWeights(FLOAT32), *scalars)
    assert found.shape == (17, 8)
    assert (found.max(axis=0) == 1).all()
    for column in found.T:
        peak = int(column.argmax())
        assert (np.diff(column[: peak + 1]) >= 0).all()
        assert (np.diff(column[peak:]) <= 0).all()
