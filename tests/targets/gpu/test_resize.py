"""Resize on GPUs against the definition in numpy: modes, rules, types, and what only the run knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.ir import Builder, Env, Program, Symbol, TensorType, symbol_dim
from argosy.ir.dtype import DTYPES, FLOAT32
from argosy.ir.interpreter import Interpreter
from argosy.ops.resize import Resize
from argosy.options import CompileOptions

interpreted_run = pytest.importorskip("tests.targets.gpu.interpreted").interpreted_run
RANDOM = np.random.default_rng(7)
CASES: dict[str, tuple[Resize, str]] = {
    "linear": (Resize(mode="linear", scales=(2.0, 0.6), axes=(1, 2)), "float32"),
    "cubic": (Resize(mode="cubic", scales=(1.5, 1.0), axes=(1, 2), exclude_outside=True), "float64"),
    "antialias": (Resize(mode="linear", sizes=(3, 4), axes=(1, 2), antialias=True), "float16"),
    "codes": (Resize(mode="linear", scales=(1.7, 1.2), axes=(-1, 1)), "uint8"),
    "nearest": (Resize(mode="nearest", scales=(0.8, 1.3), axes=(1, 2), nearest="floor"), "int32"),
    "crop": (
        Resize(
            mode="linear", sizes=(5, 6), axes=(1, 2), coordinates="tf_crop_and_resize", roi=(-0.2, 0.4, 0.7, 1.3),
            extrapolation=7.0,
        ),
        "float32",
    ),
}  # fmt: skip


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_elements_are_those_of_the_definition(case: str, symbolic: bool) -> None:
    op, dtype = CASES[case]
    shape = (2, 5, 7)
    dims = tuple(symbol_dim(Symbol(name)) for name in "NHW") if symbolic else shape
    builder = Builder()
    x = builder.parameter("x", TensorType(DTYPES[dtype], dims))
    check(builder, builder.add(op, x), [(RANDOM.random(shape) * 200).astype(dtype)])


@pytest.mark.parametrize("scales", [(1.0, 2.0, 0.5), (1.0, 1 / 3, 1.0), (1.0, 1.0, 1.2345)])
def test_scales_that_only_the_run_knows(scales: tuple[float, ...]) -> None:
    builder = Builder()
    x, given = builder.parameter("x", TensorType(FLOAT32, (2, 6, 5))), builder.parameter("s", TensorType(FLOAT32, (3,)))
    made = builder.add(Resize(mode="linear"), x, None, given)
    check(builder, made, [RANDOM.random((2, 6, 5), np.float32), np.array(scales, np.float32)])


def check(builder: Builder, made: Any, arguments: list[Any]) -> None:
    module = builder.module({"y": made})
    (expected,) = Interpreter(module).run(arguments, Env())
    run = interpreted_run(Program(module), options=CompileOptions(strict=True))
    found = run(dict(zip(module.parameter_names, arguments, strict=True)))["y"]
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    tolerance = 0 if expected.dtype.kind in "iu" else 2e-3 if expected.dtype == np.float16 else 1e-5
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), tolerance, tolerance)
