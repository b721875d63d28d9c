"""Derivatives against central differences in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argosy.ir import Builder, Env, Module, TensorType, Value
from argosy.ir.dim import DimLike, Symbol, symbol_dim
from argosy.ir.dtype import FLOAT64
from argosy.ir.interpreter import Interpreter
from argosy.ir.validate import validate
from argosy.rewrite.gradient import gradients

__all__ = ["Make", "check", "differences", "numbers"]

Array = NDArray[Any]
Make = Callable[..., Value]
"""Takes a builder and the values of the inputs, and gives a value computed from them."""

_STEP = 1e-5


def numbers(*shape: int, seed: int = 0) -> Array:
    """Numbers of the normal distribution."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def check(
    make: Make, *arrays: Array, by: Sequence[int] | None = None, symbolic: bool = False, rtol: float = 1e-6
) -> None:
    """Compare the derivatives of what `make` computes by its inputs (those that `by` lists) with differences.

    With `symbolic` every dim of the inputs is a symbol. Where its dims are known, each element of the value gets a
    weight of its own, so that each of them counts.
    """
    by = range(len(arrays)) if by is None else by
    module = _module(make, arrays, by, symbolic=symbolic)
    validate(module)
    found = Interpreter(module).run(arrays, Env())[1:]
    forward = Interpreter(_module(make, arrays, (), symbolic=symbolic))
    for place, value in zip(by, found, strict=True):
        assert value.shape == arrays[place].shape
        expected = differences(lambda *given: float(forward.run(given, Env())[0].sum()), arrays, place)
        np.testing.assert_allclose(value, expected, rtol=rtol, atol=1e-6 * max(np.abs(expected).max(initial=0), 1.0))


def _module(make: Make, arrays: Sequence[Array], by: Sequence[int], *, symbolic: bool) -> Module:
    builder = Builder()
    values = []
    for place, array in enumerate(arrays):
        shape: Sequence[DimLike] = array.shape
        if symbolic:
            shape = [symbol_dim(Symbol(f"N{place}_{axis}")) for axis in range(array.ndim)]
        values.append(builder.parameter(f"x{place}", TensorType(FLOAT64, tuple(shape))))
    made = make(builder, *values)
    sizes = [size for size in made.shape if isinstance(size, int)]
    if len(sizes) == made.rank:
        made = builder.pointwise("mul", made, builder.constant(1.0 + np.abs(numbers(*sizes, seed=9))))
    results = [("y", made)]
    if by:
        found = gradients(builder, made, [values[place] for place in by])
        results += [(f"g{place}", value) for place, value in zip(by, found, strict=True)]
    return builder.module(results)


def differences(function: Callable[..., float], arrays: Sequence[Array], place: int) -> Array:
    """The derivatives of `function` by each element of array number `place`."""
    result = np.zeros(arrays[place].shape)
    for index in np.ndindex(*arrays[place].shape):
        ends = []
        for step in (_STEP, -_STEP):
            moved = [array.copy() for array in arrays]
            moved[place][index] += step
            ends.append(function(*moved))
        result[index] = (ends[0] - ends[1]) / (2 * _STEP)
    return result
