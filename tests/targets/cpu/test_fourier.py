"""Fourier transforms on the CPU against numpy's in float64: lengths of every kind, cut and padded, every form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import argosy
from argosy.ir import Builder, Program
from argosy.ir.dtype import dtype
from argosy.ops.signal import Fourier
from argosy.targets.cpu.codegen.fourier import transform_size
from tests.targets.cpu.loops import needs_compiler

pytestmark = needs_compiler
RNG = np.random.default_rng(4)
LENGTHS = [1, 2, 3, 4, 5, 7, 8, 12, 31, 37, 60, 64, 74, 97, 128, 210, 257, 400, 512, 1000, 1021]
"""Powers of two, small factors, primes small and large, twice a large prime."""


def transformed(x: Any, length: int | None, axis: int, *, inverse: bool, onesided: bool, symbolic: bool) -> Any:
    """The result of native code alone for `x` with its parts on the last axis."""
    build = Builder()
    dims: list[Any] = [f"d{place}" for place in range(x.ndim - 1)] if symbolic else list(x.shape[:-1])
    value = build.tensor_parameter("x", dtype(str(x.dtype)), [*dims, x.shape[-1]])
    y = build.add(Fourier(length, axis, inverse, onesided), value)
    artifact = argosy.compile(Program(build.module({"y": y})), targets=("cpu",), strict=True)
    return argosy.Session(artifact, device="cpu").run({"x": x})["y"]


def expected(x: Any, length: int | None, axis: int, *, inverse: bool, onesided: bool) -> Any:
    wide = x.astype(np.float64)
    signal = wide[..., 0] + (1j * wide[..., 1] if x.shape[-1] == 2 else 0)
    if inverse and onesided:
        return np.fft.irfft(signal, length, axis)[..., None]
    whole = (np.fft.ifft if inverse else np.fft.fft)(signal, length, axis)
    if onesided:
        whole = np.take(whole, range(whole.shape[axis] // 2 + 1), axis)
    return np.stack([whole.real, whole.imag], -1)


def check(x: Any, length: int | None, axis: int, limit: float, **options: bool) -> None:
    found = transformed(x, length, axis, **options)
    wanted = expected(x, length, axis, inverse=options["inverse"], onesided=options["onesided"])
    assert found.shape == wanted.shape
    assert found.dtype == x.dtype
    assert np.abs(found - wanted).max(initial=0) <= limit * np.abs(wanted).max(initial=0)


@pytest.mark.parametrize("length", LENGTHS)
def test_lengths(length: int) -> None:
    x = RNG.standard_normal((3, length, 2))
    check(x, None, 1, 2e-15 * np.log2(length + 2), inverse=False, onesided=False, symbolic=False)
    check(x, None, 1, 2e-15 * np.log2(length + 2), inverse=True, onesided=False, symbolic=True)


@pytest.mark.parametrize("length", [1, 2, 9, 64, 74, 400])
@pytest.mark.parametrize("symbolic", [False, True])
def test_halves(length: int, symbolic: bool) -> None:
    real = RNG.standard_normal((11, length, 1)).astype(np.float32)
    check(real, None, 1, 1e-7, inverse=False, onesided=True, symbolic=symbolic)
    if length > 1:
        half = RNG.standard_normal((11, length // 2 + 1, 2)).astype(np.float32)
        check(half, length, 1, 1e-7, inverse=True, onesided=True, symbolic=symbolic)
        check(half, None, 1, 1e-7, inverse=True, onesided=True, symbolic=symbolic)


@pytest.mark.parametrize("length", [5, 20, 33])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_axes_cut_and_padded(length: int, axis: int) -> None:
    for parts, inverse, onesided in ((1, False, True), (1, False, False), (2, True, False), (2, True, True)):
        x = RNG.standard_normal((19, 20, 3, parts)).astype(np.float32)
        check(x, length, axis, 2e-7, inverse=inverse, onesided=onesided, symbolic=axis == 1)


def test_short_floats_round_once() -> None:
    x = RNG.standard_normal((4, 48, 1)).astype(np.float16)
    found = transformed(x, None, 1, inverse=False, onesided=True, symbolic=False)
    wanted = expected(x, None, 1, inverse=False, onesided=True)
    np.testing.assert_array_equal(found, wanted.astype(np.float32).astype(np.float16))


@pytest.mark.parametrize("length", [1, 2, 31, 32, 62, 961])
def test_small_factors_need_no_convolution(length: int) -> None:
    assert transform_size(length) == length


@pytest.mark.parametrize("length", [37, 74, 1021, 37 * 64])
def test_sizes_of_convolutions_hold_the_signal_twice(length: int) -> None:
    size = transform_size(length)
    assert size & (size - 1) == 0
    assert 2 * length - 1 <= size < 2 * (2 * length - 1)
