"""Random numbers of native code are those of the interpreter: by element, run, seed and node."""

from __future__ import annotations

import numpy as np
import pytest

import argosy
from argosy.ir import Builder, Program, Symbol, TensorType, symbol_dim
from argosy.ir.dtype import DTYPES, FLOAT32
from argosy.ops.random import Random

N = symbol_dim(Symbol("N"))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_the_numbers_of_three_runs(dtype: str) -> None:
    builder = Builder()
    x = builder.parameter("x", TensorType(FLOAT32, (N, 3)))
    kind = DTYPES[dtype]
    results = {
        "uniform": builder.add(Random("uniform", kind, -1.0, 2.0, 7, 1, None), x),
        "normal": builder.add(Random("normal", kind, 0.5, 3.0, 7, 2, None), x),
        "wide": builder.add(Random("normal", kind, 0.0, 1.0, 2**31, 3, (2, N)), None),
    }
    artifact = argosy.compile(Program(builder.module(results)), targets=("cpu",), strict=True)
    native, ref = (argosy.Session(artifact, device=device) for device in ("cpu", "ref"))
    for size in (5, 4000, 5):
        feeds = {"x": np.zeros((size, 3), np.float32)}
        found, expected = native.run(feeds), ref.run(feeds)
        np.testing.assert_array_equal(found["uniform"], expected["uniform"])
        for name in ("normal", "wide"):  # through log and cos, which two libraries round differently at times
            left, right = (values[name].astype(np.float64) for values in (found, expected))
            np.testing.assert_allclose(
                left, right, rtol={"float64": 1e-14, "float32": 2e-7}.get(dtype, 1e-2), atol=1e-15
            )
