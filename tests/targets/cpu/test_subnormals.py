"""Products take subnormal numbers as zero, unless accuracy is to be exact or their results are looked at closely."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import argosy
from argosy.ir import Builder, Module, Program
from argosy.ir.module import Value
from argosy.ops.convolution import Conv
from argosy.ops.matmul import Dot
from tests.targets.cpu.loops import needs_compiler

pytestmark = needs_compiler

TINY = np.float32(1e-40)
Taker = Callable[[Builder, Value], Value]


def _product(build: Builder, weights: Any) -> Value:
    x = build.tensor_parameter("x", "float32", [20, 32])
    return build.add(Dot(None), x, build.constant(weights))


def _convolution(build: Builder, weights: Any) -> Value:
    x = build.tensor_parameter("x", "float32", [1, 32, 4, 5])
    return build.add(Conv((1, 1), (0, 0, 0, 0), (1, 1), 1), x, build.constant(weights.T.reshape(24, 32, 1, 1)))


def _module(make: Callable[[Builder, Any], Value], taker: Taker | None) -> Module:
    """Half of the columns of the weights are subnormal numbers, the others ones."""
    weights = np.ones((32, 24), np.float32)
    weights[:, ::2] = TINY
    build = Builder()
    y = make(build, weights)
    return build.module({"y": y if taker is None else taker(build, y)})


def _run(module: Module, accuracy: str) -> Any:
    """The two kinds of columns of the result for ones."""
    artifact = argosy.compile(Program(module), targets=("cpu",), strict=True, accuracy=accuracy)
    (shape,) = [parameter.types[0].dims for parameter in module.parameters]  # type: ignore[union-attr]
    y = argosy.Session(artifact, device="cpu", threads=1).run({"x": np.ones(shape, np.float32)})["y"]
    columns = y if y.ndim == 2 else y.reshape(24, -1).T
    return columns[:, ::2], columns[:, 1::2]


SUM = float(TINY) * 32
SMOOTH: dict[str, tuple[Taker | None, float, float]] = {
    "alone": (None, 0.0, 32.0),
    "gelu": (
        lambda build, y: build.pointwise(lambda y: (y / 2.0 + 0.0).max(0.0).tanh() * y + 1.0, y),
        1.0,
        float(np.tanh(16.0)) * 32 + 1,
    ),
}
CLOSE: dict[str, tuple[Taker, float, float]] = {
    "logarithm": (lambda build, y: build.pointwise(lambda y: y.log(), y), float(np.log(SUM)), float(np.log(32.0))),
    "comparison": (lambda build, y: build.pointwise(lambda y: (y > 0.0).select(y, y - 7.0), y), SUM, 32.0),
    "quotient": (lambda build, y: build.pointwise(lambda y: 1e-30 / y, y), 1e-30 / SUM, 1e-30 / 32),
    "small divisor": (lambda build, y: build.pointwise(lambda y: y / 1e-30, y), SUM / 1e-30, 32 / 1e-30),
}


@pytest.mark.parametrize("make", [_product, _convolution])
@pytest.mark.parametrize("name", SMOOTH)
def test_flushed_where_nobody_can_tell(make: Callable[[Builder, Any], Value], name: str) -> None:
    taker, tiny, whole = SMOOTH[name]
    for accuracy in ("standard", "relaxed"):
        small, large = _run(_module(make, taker), accuracy)
        np.testing.assert_array_equal(small, np.full_like(small, tiny))
        np.testing.assert_allclose(large, whole, 1e-6)


@pytest.mark.parametrize("make", [_product, _convolution])
def test_kept_where_exact(make: Callable[[Builder, Any], Value]) -> None:
    small, large = _run(_module(make, None), "exact")
    np.testing.assert_allclose(small, SUM, 1e-4)
    np.testing.assert_array_equal(large, np.full_like(large, 32.0))


@pytest.mark.parametrize("make", [_product, _convolution])
@pytest.mark.parametrize("name", CLOSE)
def test_kept_where_the_result_is_looked_at_closely(make: Callable[[Builder, Any], Value], name: str) -> None:
    taker, tiny, whole = CLOSE[name]
    small, large = _run(_module(make, taker), "standard")
    np.testing.assert_allclose(small, tiny, 1e-4)
    np.testing.assert_allclose(large, whole, 1e-6)


def test_the_mode_of_the_caller_stays() -> None:
    """Python's own arithmetic is as before a run."""
    before = np.float32(1e-38) * np.float32(0.01)
    _run(_module(_product, None), "standard")
    after = np.float32(1e-38) * np.float32(0.01)
    assert before == after != 0
