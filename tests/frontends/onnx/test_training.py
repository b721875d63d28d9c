"""Optimiser steps against the standard's pseudo code in numpy: several tensors, mixed types, the first update."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.errors import ModelError
from tests.frontends.onnx.one_node import program, run

Array = NDArray[Any]
DOMAIN = "ai.onnx.preview.training"
RATE = np.array(0.1, np.float32)


def tensors(states: int) -> list[list[Array]]:
    """Two tensors of two types; for each X, G and the states."""
    rng = np.random.default_rng(0)
    return [
        [rng.random(shape).astype(dtype) for _ in range(2 + states)]
        for shape, dtype in (((2, 3), np.float32), ((4,), np.float64))
    ]


def update(op: str, updates: int, groups: list[list[Array]], **attributes: Any) -> list[tuple[Array, ...]]:
    """The new values of each tensor and its states."""
    flat = [value for kind in zip(*groups, strict=True) for value in kind]
    outputs = [f"y{index}" for index in range(len(flat) - len(groups))]
    found = run(op, RATE, np.array(updates), *flat, domain=DOMAIN, outputs=outputs, **attributes)
    return [tuple(found[index :: len(groups)]) for index in range(len(groups))]


@pytest.mark.parametrize("updates", [0, 3])
def test_adagrad(updates: int) -> None:
    groups = tensors(1)
    found = update("Adagrad", updates, groups, norm_coefficient=0.5, epsilon=0.25, decay_factor=0.5)
    for (x, g, h), (new_x, new_h) in zip(groups, found, strict=True):
        slope = 0.5 * x + g
        squares = h + slope * slope
        np.testing.assert_allclose(new_h, squares, rtol=1e-6)
        np.testing.assert_allclose(new_x, x - 0.1 / (1 + updates * 0.5) * slope / (np.sqrt(squares) + 0.25), rtol=1e-6)
        assert (new_x.dtype, new_h.dtype) == (x.dtype, h.dtype)


@pytest.mark.parametrize("updates", [0, 3])
def test_adam(updates: int) -> None:
    groups = tensors(2)
    coefficients = {"alpha": 0.75, "beta": 0.5, "epsilon": 0.25, "norm_coefficient": 0.5, "norm_coefficient_post": 0.25}
    found = update("Adam", updates, groups, **coefficients)
    for (x, g, v, h), (new_x, new_v, new_h) in zip(groups, found, strict=True):
        slope = 0.5 * x + g
        mean, squares = 0.75 * v + 0.25 * slope, 0.5 * h + 0.5 * slope * slope
        rate = 0.1 * np.sqrt(1 - 0.5**updates) / (1 - 0.75**updates) if updates else 0.1
        np.testing.assert_allclose(new_v, mean, rtol=1e-6)
        np.testing.assert_allclose(new_h, squares, rtol=1e-6)
        np.testing.assert_allclose(new_x, 0.75 * (x - rate * mean / (np.sqrt(squares) + 0.25)), rtol=1e-6)


@pytest.mark.parametrize("updates", [0, 3])
@pytest.mark.parametrize("mode", ["standard", "nesterov"])
def test_momentum(mode: str, updates: int) -> None:
    groups = tensors(1)
    found = update("Momentum", updates, groups, alpha=0.75, beta=0.5, norm_coefficient=0.25, mode=mode)
    for (x, g, v), (new_x, new_v) in zip(groups, found, strict=True):
        slope = 0.25 * x + g
        momentum = 0.75 * v + (0.5 if updates else 1.0) * slope
        np.testing.assert_allclose(new_v, momentum, rtol=1e-6)
        step = slope + 0.75 * momentum if mode == "nesterov" else momentum
        np.testing.assert_allclose(new_x, x - 0.1 * step, rtol=1e-6)


def test_the_number_of_tensors_is_checked() -> None:
    x = np.ones(2, np.float32)
    with pytest.raises(ModelError, match="has 2 tensors after R and T, expected a multiple of 3"):
        program("Adagrad", [RATE, np.array(0), x, x], domain=DOMAIN)
