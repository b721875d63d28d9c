"""Signal processing against ONNX Runtime and scipy's definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.frontends.onnx.against_onnxruntime import assert_agrees
from tests.frontends.onnx.one_node import run

Array = NDArray[Any]
RNG = np.random.default_rng(0)
REAL = RNG.standard_normal((2, 16, 1)).astype(np.float32)


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("length", [None, 16, 32, 8])
def test_dft(onesided: int, length: int | None) -> None:
    given = None if length is None else np.array(length)
    for constant in ((), () if length is None else (1,)):
        options: dict[str, Any] = {"onesided": onesided, "constant": constant, "atol": 1e-5}
        assert_agrees("DFT", REAL, given, opset=17, axis=1, **options)


@pytest.mark.parametrize("axis", [None, -2, 0])
def test_the_axis_as_an_input(axis: int | None) -> None:
    complex_ = RNG.standard_normal((4, 8, 2)).astype(np.float32)
    given = None if axis is None else np.array(axis)
    for inverse in (0, 1):
        for constant in ((), () if axis is None else (2,)):
            found = run("DFT", complex_, None, given, inverse=inverse, constant=constant)
            signal = complex_[..., 0].astype(np.float64) + 1j * complex_[..., 1]
            expected = (np.fft.ifft if inverse else np.fft.fft)(signal, axis=0 if axis == 0 else 1)
            np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], expected, atol=1e-5)


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("constant", [(), (1, 2, 3)])
def test_stft(onesided: int, constant: Any) -> None:
    window = np.hanning(8).astype(np.float32)
    inputs = (REAL, np.array(3), window, np.array(8))
    assert_agrees("STFT", *inputs, opset=17, onesided=onesided, constant=constant, atol=1e-5)


def test_stft_without_a_window_or_a_length() -> None:
    assert_agrees("STFT", REAL, np.array(4), None, np.array(8), opset=17, constant=(1, 3), atol=1e-5)
    found = run("STFT", REAL[..., 0], np.array(4), np.ones(8, np.float32), constant=(1,))
    np.testing.assert_allclose(found, run("STFT", REAL, np.array(4), None, np.array(8)), atol=1e-6)


@pytest.mark.parametrize("periodic", [0, 1])
@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
def test_windows(op: str, periodic: int) -> None:
    size = np.array(11)
    for constant in ((), (0,)):
        found = run(op, size, periodic=periodic, constant=constant, output_datatype=11)
        assert found.dtype == np.float64
        turn = 2 * np.pi * np.arange(11) / (11 if periodic else 10)
        expected = {
            "HannWindow": 0.5 - 0.5 * np.cos(turn),
            "HammingWindow": 25 / 46 - 21 / 46 * np.cos(turn),
            "BlackmanWindow": 0.42 - 0.5 * np.cos(turn) + 0.08 * np.cos(2 * turn),
        }[op]
        np.testing.assert_allclose(found, expected, atol=1e-14)


def test_mel_weight_matrix() -> None:
    hertz = [np.array(20.0, np.float32), np.array(4000.0, np.float32)]
    inputs = [np.array(8), np.array(64), np.array(8000), *hertz]
    assert_agrees("MelWeightMatrix", *inputs, opset=17, atol=1e-5)
    assert_agrees("MelWeightMatrix", *inputs, opset=17, constant=(0, 1, 2, 3, 4), atol=1e-5)
