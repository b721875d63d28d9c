"""Maxima and minima on emulated GPUs: lanes that fold the same numbers in another order hold the same bits.

Waves store what they hold twice to one place of local memory. Of +0 and -0 each must take the same one, or
the waves race.
"""

from __future__ import annotations

import importlib.util
from typing import Final

import numpy as np
import pytest

import argosy
from argosy.emulation.c_engine.build import engine_reason
from argosy.ir import Builder, Program, TensorType
from argosy.ir.dtype import FLOAT32
from argosy.ops.reduce import Reduce, Softmax

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="the package triton (extra gpu) is missing"),
    pytest.mark.skipif(bool(engine_reason()), reason=engine_reason()),
]
SHAPE: Final = (17, 3, 5, 8)


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100", "gfx1250"])
def test_zeros_of_both_signs_and_nans_are_no_race(arch: str) -> None:
    given = np.random.default_rng(0).choice(np.array([0.0, -0.0, np.nan], np.float32), SHAPE, p=(0.48, 0.48, 0.04))
    build = Builder()
    x = build.parameter("x", TensorType(FLOAT32, SHAPE))
    folds = {kind: build.add(Reduce(kind, (1,), False), x) for kind in ("max", "min")}
    program = Program(build.module({**folds, "soft": build.add(Softmax(1), x)}))
    session = argosy.Session(argosy.compile(program, targets=[arch]), device=f"emulated:{arch}", checked=True)
    found = session.run({"x": given})
    for kind, fold in (("max", np.max), ("min", np.min)):
        np.testing.assert_array_equal(found[kind], fold(given, axis=1))
    alike = np.broadcast_to(np.where(np.isnan(given).any(1, keepdims=True), np.nan, 1 / 3), SHAPE)
    np.testing.assert_allclose(found["soft"], alike, rtol=1e-6)
