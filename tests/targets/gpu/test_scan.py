"""Running sums and products of few long lines on GPUs against numpy: several tiles, both directions, any place."""

from __future__ import annotations

import numpy as np
import pytest

from argosy.ir import Builder, Program, TensorType
from argosy.ir.dtype import DTYPES
from argosy.ops.scan import Cumulative
from argosy.options import CompileOptions
from argosy.targets.gpu.solutions.scan import CumulativeScans, CumulativeTiles

interpreted_run = pytest.importorskip("tests.targets.gpu.interpreted").interpreted_run


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argosy.targets.gpu.solutions.scan._LONG", 0)
    monkeypatch.setattr(CumulativeTiles, "configs", lambda *_: [8])
    monkeypatch.setattr(CumulativeScans, "applies", lambda *_: "one program goes along a line")


@pytest.mark.parametrize("dtype", ["int32", "float32", "float16", "int64"])
@pytest.mark.parametrize(("exclusive", "reverse"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(("shape", "axis"), [((1, 17), 1), ((9, 3), 0), ((2, 8, 1), -2)])
def test_tiles_of_long_lines(dtype: str, shape: tuple[int, ...], axis: int, exclusive: bool, reverse: bool) -> None:
    kind = "prod" if dtype == "int64" else "sum"
    builder = Builder()
    x = builder.parameter("x", TensorType(DTYPES[dtype], shape))
    op = Cumulative(kind, exclusive=exclusive, reverse=reverse)
    y = builder.add(op, x, builder.constant(np.array(axis)))
    run = interpreted_run(Program(builder.module({"y": y})), options=CompileOptions(strict=True))
    values = np.random.default_rng(3).integers(-3, 4, shape).astype(dtype)
    given = np.flip(values, axis) if reverse else values
    expected = (np.cumsum if kind == "sum" else np.cumprod)(given, axis, dtype=dtype)
    if exclusive:
        shifted = np.roll(expected, 1, axis)
        np.moveaxis(shifted, axis, 0)[0] = int(kind == "prod")
        expected = shifted
    np.testing.assert_array_equal(
        run({"x": values})["y"], np.flip(expected, axis) if reverse else expected, strict=True
    )
