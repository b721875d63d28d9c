"""Fourier transforms of known lengths on GPUs against numpy's in float64: several stages, cut, padded, every form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argosy.ir import Builder, Program, TensorType
from argosy.ir.dtype import DTYPES
from argosy.ops.signal import Fourier
from argosy.options import CompileOptions
from argosy.targets.gpu.codegen.fourier_stages import stages_of
from argosy.targets.gpu.solutions.signal import FourierStages, FourierSums

interpreted_run = pytest.importorskip("tests.targets.gpu.interpreted").interpreted_run


@pytest.mark.parametrize("length", [1, 2, 7, 64, 97, 400, 1000, 1024, 4096, 2 * 3 * 5 * 7 * 11])
def test_stages_multiply_to_the_length(length: int) -> None:
    stages = stages_of(length)
    assert math.prod(stage.radix for stage in stages) == length
    assert [stage.first for stage in stages] == [place == 0 for place in range(len(stages))]
    assert [stage.last for stage in stages] == [place == len(stages) - 1 for place in range(len(stages))]


def test_a_thousand_numbers_take_two_stages_of_32() -> None:
    assert [stage.radix for stage in stages_of(1024)] == [32, 32]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    length=st.sampled_from([1, 2, 3, 8, 12, 17, 30, 36]),
    size=st.integers(1, 20),
    parts=st.sampled_from([1, 2]),
    form=st.sampled_from([(False, False), (False, True), (True, False), (True, True)]),
    axis=st.sampled_from([0, 1]),
    dtype=st.sampled_from(["float32", "float64", "float16"]),
)
def test_transforms(
    monkeypatch: pytest.MonkeyPatch,
    length: int, size: int, parts: int, form: tuple[bool, bool], axis: int, dtype: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(FourierStages, "configs", lambda *_: [4])
    monkeypatch.setattr(FourierSums, "applies", lambda *_: "a sum for each frequency")
    inverse, onesided = form
    shape = (size, 2, parts) if axis == 0 else (2, size, parts)
    builder = Builder()
    x = builder.parameter("x", TensorType(DTYPES[dtype], shape))
    y = builder.add(Fourier(length, axis, inverse, onesided), x)
    run = interpreted_run(Program(builder.module({"y": y})), options=CompileOptions(strict=True))
    values = np.random.default_rng(length * size).standard_normal(shape).astype(dtype)
    found = run({"x": values})["y"]
    signal = values[..., 0].astype(np.complex128) + (1j * values[..., 1] if parts == 2 else 0)
    if form == (True, True):
        expected = np.fft.irfft(signal, length, axis)[..., None]
    else:
        whole = (np.fft.ifft if inverse else np.fft.fft)(signal, length, axis)
        whole = np.take(whole, range(length // 2 + 1), axis) if onesided else whole
        expected = np.stack([whole.real, whole.imag], -1)
    assert found.dtype == np.dtype(dtype)
    assert found.shape == expected.shape
    error = {"float64": 1e-13, "float32": 2e-6, "float16": 2e-3}[dtype] * max(np.abs(expected).max(), 1e-3)
    np.testing.assert_allclose(found.astype(np.float64), expected, atol=error, rtol=0)
