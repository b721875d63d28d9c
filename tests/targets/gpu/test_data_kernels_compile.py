"""Kernels of ops that data steers, by the real compiler, for an arch of each family: the interpreter forgives types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import argosy
from argosy.ir import Builder, Program, Symbol, TensorType, symbol_dim
from argosy.ir.dtype import BOOL, FLOAT32, INT64
from argosy.ops.index import Compress, NonZero
from argosy.ops.recurrent import Recurrent
from argosy.ops.reduce import Reduce
from argosy.ops.requirement import Require
from argosy.ops.resize import Resize
from argosy.ops.scan import Cumulative
from argosy.ops.scatter import ScatterElements, ScatterND
from argosy.ops.signal import Fourier
from argosy.ops.sort import NonMaxSuppression, TopK, Unique
from argosy.ops.view import Reshape, Slice, Squeeze

pytest.importorskip("triton")
ARCHS = ("sm_75", "sm_90", "gfx942", "gfx1100", "gfx1201")
X = TensorType(FLOAT32, (2, 50, 4))
TWO = TensorType(INT64, (2,))
ONE = TensorType(INT64, (1,))


def required(builder: Builder, good: Any, x: Any) -> Any:
    builder.add_all(Require(True, "it is not good"), good)
    return builder.pointwise("neg", x)


CASES: dict[str, tuple[list[TensorType], Callable[..., Any]]] = {
    "slice": ([X, TWO, TWO, TWO, TWO], lambda b, *a: b.add(Slice(), *a)),
    "reshape": ([X, TWO], lambda b, *a: b.add(Reshape(), *a)),
    "squeeze": ([TensorType(FLOAT32, (1, 3)), ONE], lambda b, *a: b.add(Squeeze(), *a)),
    "reduce": ([X, TWO], lambda b, *a: b.add(Reduce("mean", keep_dims=False), *a)),
    "nonzero": ([X], lambda b, *a: b.add(NonZero(), *a)),
    "compress": ([X, TensorType(BOOL, (50,))], lambda b, *a: b.add(Compress(1), *a)),
    "unique": ([X], lambda b, *a: b.add_all(Unique(1), *a)[0]),
    "unique by sorting": ([TensorType(FLOAT32, (3000, 2))], lambda b, *a: b.add_all(Unique(0, False), *a)[2]),
    "top-k": ([X], lambda b, x: b.add_all(TopK(1), x, b.constant(np.array([5])))[1]),
    "sort": ([TensorType(FLOAT32, (100_000,)), ONE], lambda b, *a: b.add_all(TopK(0), *a)[1]),
    "scatter": (
        [X, TensorType(INT64, (70, 2)), TensorType(FLOAT32, (70, 4))],
        lambda b, *a: b.add(ScatterND("add"), *a),
    ),
    "scatter added": (
        [TensorType(FLOAT32, (1000,)), TensorType(INT64, (70,)), TensorType(FLOAT32, (70,))],
        lambda b, *a: b.add(ScatterElements(0, "add"), *a),
    ),
    "fourier of the run": ([TensorType(FLOAT32, (2, 50, 2)), ONE], lambda b, *a: b.add(Fourier(None, 1), *a)),
    "recurrent rows": (
        [
            TensorType(FLOAT32, (symbol_dim(Symbol("T", 1)), 1, 8)),
            TensorType(FLOAT32, (1, 1200, 8)),
            TensorType(FLOAT32, (1, 1200, 300)),
        ],
        lambda b, *a: b.add_all(Recurrent("lstm", "forward", ("sigmoid", "tanh", "tanh"), (0.0,) * 3, (0.0,) * 3), *a)[
            0
        ],
    ),
    "fourier": ([TensorType(FLOAT32, (2, 1000, 1))], lambda b, *a: b.add(Fourier(1024, 1, onesided=True), *a)),
    "running sum": (
        [TensorType(FLOAT32, (1, 20_000))],
        lambda b, x: b.add(Cumulative("sum"), x, b.constant(np.array(1))),
    ),
    "recurrent launches": (
        [TensorType(FLOAT32, (3, 1, 8)), TensorType(FLOAT32, (1, 1536, 8)), TensorType(FLOAT32, (1, 1536, 512))],
        lambda b, *a: b.add_all(Recurrent("gru", "forward", ("sigmoid", "tanh"), (0.0, 0.0), (0.0, 0.0)), *a)[0],
    ),
    "top-k ranks": ([TensorType(INT64, (2, 50)), ONE], lambda b, *a: b.add_all(TopK(1), *a)[1]),
    "suppression": (
        [X, TensorType(FLOAT32, (2, 3, 50)), ONE, *[TensorType(FLOAT32, (1,))] * 2],
        lambda b, *a: b.add(NonMaxSuppression(), *a),
    ),
    "resize": ([X, TensorType(FLOAT32, (3,))], lambda b, x, s: b.add(Resize(mode="cubic", antialias=True), x, None, s)),
    "require": ([TensorType(BOOL, (1,)), X], required),
}


@pytest.mark.nightly
@pytest.mark.parametrize("case", CASES)
def test_every_family_of_archs_takes_them(case: str) -> None:
    kinds, build = CASES[case]
    builder = Builder()
    values = [builder.parameter(f"x{place}", kind) for place, kind in enumerate(kinds)]
    program = Program(builder.module({"y": build(builder, *values)}))
    artifact = argosy.compile(program, targets=ARCHS, strict=True)
    assert {variant.arch for variant in artifact.variants} == set(ARCHS)
