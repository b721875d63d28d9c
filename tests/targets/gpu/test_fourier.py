"""Fourier transforms on GPUs against numpy's in float64: all factors, cut, padded, every form, fused with others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argosy.ir import Builder, Program, Symbol, TensorType, symbol_dim
from argosy.ir.dtype import DTYPES, FLOAT32, INT64
from argosy.ir.module import Value
from argosy.ops.signal import Fourier, Frames
from argosy.options import CompileOptions
from argosy.passes.manager import PassManager
from argosy.targets.gpu.arch import find_gpu
from argosy.targets.gpu.codegen.fourier_stages import RADICES, stages_of
from argosy.targets.gpu.lower import lower_module
from argosy.targets.gpu.pipeline import pipeline
from argosy.targets.gpu.solutions.signal import FourierStages

interpreted_run = pytest.importorskip("tests.targets.gpu.interpreted").interpreted_run

STRICT = CompileOptions(strict=True)
FORMS = [(False, False), (False, True), (True, False), (True, True)]


@pytest.mark.parametrize("length", [1, 2, 7, 64, 97, 400, 1000, 1024, 4096, 2 * 3 * 5 * 7 * 11, 2 * 97 * 101])
def test_stages_multiply_to_the_length(length: int) -> None:
    for radix in RADICES:
        stages = stages_of(length, radix)
        assert math.prod(stage.radix for stage in stages) == length
        assert [stage.done for stage in stages] == [
            math.prod(stage.radix for stage in stages[:place]) for place in range(len(stages))
        ]
        assert [stage.first for stage in stages] == [place == 0 for place in range(len(stages))]
        assert stages[-1].last
        assert all(stage.radix <= max(radix, 13) or stage.summed for stage in stages)
        assert not stages[0].summed


def test_a_thousand_numbers_take_two_stages_of_32() -> None:
    assert [stage.radix for stage in stages_of(1024)] == [32, 32]


def _expected(values: Any, length: int, axis: int, form: tuple[bool, bool]) -> Any:
    """The transform by numpy, in float64."""
    inverse, onesided = form
    signal = values[..., 0].astype(np.complex128) + (1j * values[..., 1] if values.shape[-1] == 2 else 0)
    if form == (True, True):
        return np.fft.irfft(signal, length, axis)[..., None]
    whole = (np.fft.ifft if inverse else np.fft.fft)(signal, length, axis)
    whole = np.take(whole, range(length // 2 + 1), axis) if onesided else whole
    return np.stack([whole.real, whole.imag], -1)


def _check(found: Any, expected: Any, dtype: str) -> None:
    assert found.dtype == np.dtype(dtype)
    assert found.shape == expected.shape
    error = {"float64": 1e-13, "float32": 1e-6, "float16": 2e-3}[dtype] * max(np.abs(expected).max(), 1e-3)
    np.testing.assert_allclose(found.astype(np.float64), expected, atol=error, rtol=0)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    length=st.sampled_from([1, 2, 3, 8, 11, 12, 17, 25, 30, 34, 36, 60, 64, 105, 143]),
    size=st.integers(1, 150),
    parts=st.sampled_from([1, 2]),
    form=st.sampled_from(FORMS),
    axis=st.sampled_from([0, 1]),
    dtype=st.sampled_from(["float32", "float64", "float16"]),
    radix=st.sampled_from(RADICES),
)
def test_transforms(
    monkeypatch: pytest.MonkeyPatch,
    length: int, size: int, parts: int, form: tuple[bool, bool], axis: int, dtype: str, radix: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(FourierStages, "configs", lambda *_: [radix])
    shape = (size, 2, parts) if axis == 0 else (2, size, parts)
    builder = Builder()
    x = builder.parameter("x", TensorType(DTYPES[dtype], shape))
    y = builder.add(Fourier(length, axis, *form), x)
    run = interpreted_run(Program(builder.module({"y": y})), options=STRICT)
    values = np.random.default_rng(length * size).standard_normal(shape).astype(dtype)
    _check(run({"x": values})["y"], _expected(values, length, axis, form), dtype)


@pytest.mark.parametrize("length", [32, 31 * 26, 97, 1024, 1000, 13 * 11 * 7])
@pytest.mark.parametrize("parts", [1, 2])
def test_long_transforms(length: int, parts: int) -> None:
    builder = Builder()
    x = builder.parameter("x", TensorType(FLOAT32, (3, length, parts)))
    y = builder.add(Fourier(None, 1, onesided=True), x)
    run = interpreted_run(Program(builder.module({"y": y})), options=STRICT)
    values = np.random.default_rng(length).standard_normal((3, length, parts)).astype(np.float32)
    _check(run({"x": values})["y"], _expected(values, length, 1, (False, True)), "float32")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("parts", [1, 2])
def test_lengths_that_the_run_knows(form: tuple[bool, bool], parts: int) -> None:
    builder = Builder()
    x = builder.parameter("x", TensorType(FLOAT32, (2, symbol_dim(Symbol("n", 1)), 3, parts)))
    length, axis = (builder.parameter(name, TensorType(INT64, ())) for name in ("length", "axis"))
    y = builder.add(Fourier(None, None, *form), x, length, axis)
    run = interpreted_run(Program(builder.module({"y": y})), options=STRICT)
    for count, size in ((1, 1), (8, 9), (97, 60), (360, 360), (64, 100)):
        values = np.random.default_rng(count).standard_normal((2, size, 3, parts)).astype(np.float32)
        found = run({"x": values, "length": np.array(count), "axis": np.array(-3)})["y"]
        _check(found, _expected(values, count, 1, form), "float32")


def _short_time(builder: Builder, x: Value, window: Any, length: int, step: int) -> Value:
    frames = builder.add(Frames(length, step), x)
    scaled = builder.pointwise("mul", frames, builder.constant(window[:, None]))
    return builder.add(Fourier(None, 2, onesided=True), scaled)


@pytest.mark.parametrize("length", [16, 17, 48])
def test_frames_and_window_are_computed_where_they_are_read(length: int) -> None:
    signal = np.random.default_rng(3).standard_normal((2, 200, 1)).astype(np.float32)
    window = np.hanning(length).astype(np.float32)
    builder = Builder()
    x = builder.parameter("x", TensorType(FLOAT32, signal.shape))
    module = builder.module({"y": _short_time(builder, x, window, length, 5)})
    arch = find_gpu("sm_90")
    assert arch is not None
    lowered = lower_module(PassManager(tuple(pipeline(STRICT))).run(module), arch, STRICT, {}, {})
    kinds = {name.rpartition("_")[0] for name in lowered.kernels}
    assert kinds == {"turns", "dft_fourier_stages"}
    frames = np.lib.stride_tricks.sliding_window_view(signal[..., 0], length, 1)[:, ::5] * window.astype(np.float64)
    found = interpreted_run(Program(module), options=STRICT)({"x": signal})["y"]
    _check(found, _expected(frames[..., None], length, 2, (False, True)), "float32")


def test_what_is_read_by_a_length_of_the_run_is_fused_as_well() -> None:
    builder = Builder()
    x = builder.parameter("x", TensorType(FLOAT32, (symbol_dim(Symbol("b", 1)), symbol_dim(Symbol("n", 1)), 1)))
    raised = builder.pointwise(lambda value: value + 1.0, x)
    y = builder.add(Fourier(None, 1), raised)
    run = interpreted_run(Program(builder.module({"y": y})), options=STRICT)
    for shape in ((1, 30, 1), (3, 11, 1)):
        values = np.random.default_rng(4).standard_normal(shape).astype(np.float32)
        _check(run({"x": values})["y"], _expected(values + 1.0, shape[1], 1, (False, False)), "float32")
