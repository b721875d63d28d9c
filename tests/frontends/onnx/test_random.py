"""Random numbers: shapes, types, repeatability, and what is drawn in the mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.frontends.onnx import load
from argosy.ir import Env
from argosy.ir.interpreter import Interpreter
from tests.frontends.onnx.one_node import model, run


def test_shapes_and_types() -> None:
    assert run("RandomNormal", shape=[2, 3]).dtype == np.float32
    assert run("RandomUniform", shape=[2, 3], dtype=11).dtype == np.float64
    x = np.zeros((4, 5), np.float16)
    assert run("RandomNormalLike", x).dtype == np.float16
    assert run("RandomUniformLike", x.astype(np.int32), dtype=1, shapes=[("a", "b")]).shape == (4, 5)


def test_parameters() -> None:
    normal = run("RandomNormal", shape=[10000], mean=3.0, scale=0.5)
    assert abs(normal.mean() - 3) < 0.02
    assert abs(normal.std() - 0.5) < 0.02
    uniform = run("RandomUniform", shape=[10000], low=-2.0, high=4.0)
    assert uniform.min() >= -2
    assert uniform.max() < 4
    assert abs(uniform.mean() - 1) < 0.1


def test_runs_differ_and_sessions_repeat() -> None:
    program = load(model("RandomNormal", [], shape=[100], seed=5.0))
    prepared = Interpreter(program.main)
    first, second = (prepared.run([], Env(run=run_))[0] for run_ in (0, 1))
    assert (first != second).all()
    again = Interpreter(load(model("RandomNormal", [], shape=[100], seed=5.0)).main).run([], Env())[0]
    np.testing.assert_array_equal(first, again)
    other = run("RandomNormal", shape=[100], seed=6.0)
    assert (first != other).all()


@pytest.mark.parametrize("number", [1, 6, 9, 10])
def test_bernoulli(number: int) -> None:
    p = np.full(20000, 0.3, np.float32)
    found = run("Bernoulli", p, dtype=number)
    assert abs(found.astype(np.float64).mean() - 0.3) < 0.02
    assert run("Bernoulli", np.array([0.0, 1.0], np.float32)).tolist() == [0.0, 1.0]


def test_multinomial() -> None:
    shares = np.array([[0.1, 0.6, 0.3], [0.5, 0.0, 0.5]], np.float32)
    logits = np.log(np.maximum(shares, 1e-30))
    found: Any = run("Multinomial", logits + 7, sample_size=20000)
    assert found.dtype == np.int32
    for row, expected in zip(found, shares, strict=True):
        np.testing.assert_allclose(np.bincount(row, minlength=3) / 20000, expected, atol=0.02)
    assert run("Multinomial", logits, sample_size=3, dtype=7).dtype == np.int64
