"""Transposes, alone and with what is computed in passing, against numpy: whole blocks, edges, symbolic dims."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import argosy
from argosy.ir import Builder, Module, Program
from argosy.ir.dtype import dtype
from argosy.ops.view import Reshape, Transpose
from argosy.targets.cpu.codegen import crossing, scalar
from argosy.targets.cpu.codegen.loops import elementwise_kernel
from tests.targets.cpu.loops import LEVELS, library_of, needs_compiler

pytestmark = needs_compiler
RNG = np.random.default_rng(8)
CASES = [
    ((16, 16), (1, 0)),
    ((48, 33), (1, 0)),
    ((15, 70), (1, 0)),
    ((3, 40, 50), (0, 2, 1)),
    ((2, 35, 6, 19), (0, 2, 3, 1)),
    ((2, 5, 37, 32), (0, 3, 1, 2)),
    ((20, 3, 18, 17), (3, 2, 1, 0)),
]


def module_of(shape: Sequence[int], order: Sequence[int], kind: str, *, symbolic: bool, more: bool) -> Module:
    """The transpose of x; with `more` scaled by the new last axis, and added to a number for each of another."""
    build = Builder()
    dims: list[Any] = [f"d{axis}" for axis in range(len(shape))] if symbolic else list(shape)
    x = build.tensor_parameter("x", kind, dims)
    y = build.add(Transpose(tuple(order)), x)
    if more:
        scale = build.tensor_parameter("scale", kind, [y.shape[-1]])
        each = build.tensor_parameter("b", kind, [y.shape[0]])
        other = build.add(Reshape((y.shape[0], *[1] * (len(shape) - 1))), each)
        y = build.pointwise(lambda y, s, b: (y * s + b).max(0.25), y, scale, other)
    return build.module({"y": y})


def numbers(kind: str, *shape: int) -> Any:
    return (RNG.standard_normal(shape) * 8).astype(dtype(kind).numpy)


@pytest.mark.parametrize(("shape", "order"), CASES)
@pytest.mark.parametrize("symbolic", [False, True], ids=["bound", "symbolic"])
def test_transposes(shape: Sequence[int], order: Sequence[int], symbolic: bool) -> None:
    module = module_of(shape, order, "float32", symbolic=symbolic, more=False)
    session = argosy.Session(argosy.compile(Program(module), targets=("cpu",), strict=True), device="cpu")
    x = numbers("float32", *shape)
    np.testing.assert_array_equal(session.run({"x": x})["y"], x.transpose(order))


@pytest.mark.parametrize(("shape", "order"), CASES)
@pytest.mark.parametrize("kind", ["float32", "float64", "float16"])
def test_what_is_computed_in_passing(shape: Sequence[int], order: Sequence[int], kind: str) -> None:
    module = module_of(shape, order, kind, symbolic=False, more=True)
    session = argosy.Session(argosy.compile(Program(module), targets=("cpu",), strict=True), device="cpu", threads=2)
    x = numbers(kind, *shape)
    turned = x.transpose(order)
    scale, b = numbers(kind, turned.shape[-1]), numbers(kind, turned.shape[0])
    wide = np.float64 if kind == "float64" else np.float32
    column = b.reshape(-1, *[1] * (x.ndim - 1)).astype(wide)
    wanted = np.maximum(turned.astype(wide) * scale.astype(wide) + column, 0.25).astype(x.dtype)
    np.testing.assert_array_equal(session.run({"x": x, "scale": scale, "b": b})["y"], wanted)


def test_float32_goes_by_blocks() -> None:
    """What the test above compares is what it is meant to."""
    text = elementwise_kernel(module_of((48, 40), (1, 0), "float32", symbolic=False, more=True)).text
    assert "turn_float32x16(rows)" in text


@pytest.mark.parametrize("level", LEVELS)
def test_blocks_are_turned_whole(level: str) -> None:
    export = '#define EXPORT __attribute__((visibility("default")))\n'
    loops = "for (int64 r = 0; r < 16; ++r) v[r] = load_float32x16(x + 16 * r); turn_float32x16(v);"
    store = "for (int64 r = 0; r < 16; ++r) store_float32x16(y + 16 * r, v[r]);"
    body = f"EXPORT void turn(const float32 *x, float32 *y) {{ float32x16 v[16]; {loops} {store} }}"
    x = np.arange(256, dtype=np.float32).reshape(16, 16)
    y = np.empty_like(x)
    library = library_of(f"{export}\n{scalar.prelude()}\n{crossing.TURN}\n{body}", level)
    library.turn(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data))
    np.testing.assert_array_equal(y, x.T)
