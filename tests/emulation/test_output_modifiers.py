"""What is asked for behind an operation, on every type of floats: factors, and results between 0 and 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.emulation.refusal import NotEmulated
from tests.emulation.floats import FORMS, same, values
from tests.emulation.text import ENGINES, registers_after

_SUMS = {
    "f16": "v_add_f16_e64 v8, v4, v6",
    "f32": "v_add_f32_e64 v8, v4, v6",
    "f64": "v_add_f64 v[8:9], v[4:5], v[6:7]",
}


def words_of(numbers: NDArray[Any]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The low and the high word of each lane's number."""
    whole = numbers.view(FORMS[f"f{8 * numbers.itemsize}"][1]).astype(np.uint64)
    return (whole & 0xFFFFFFFF).astype(np.uint32), (whole >> np.uint64(32)).astype(np.uint32)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", list(_SUMS))
@pytest.mark.parametrize("clamped", [False, True])
@pytest.mark.parametrize(("ends", "factor"), [("mul:2", 2), ("mul:4", 4), ("div:2", 0.5), ("", 1)])
def test_results_are_finished(ends: str, factor: float, clamped: bool, kind: str, engine: Any) -> None:
    """Rounded before the factor; what is no number becomes 0 where results are held between 0 and 1."""
    first, second = values(kind, 1, 64), values(kind, 2, 64)
    first[:16], second[:16] = 0, np.linspace(-1, 2, 16)
    with np.errstate(all="ignore"):
        expected = (first + second) * first.dtype.type(factor)
        if clamped:
            expected = np.where(expected > 0, np.minimum(expected, 1), 0).astype(expected.dtype)
    line = f"{_SUMS[kind]}{' clamp' if clamped else ''} {ends}"
    given = dict(zip(range(4, 8), (*words_of(first), *words_of(second)), strict=True))
    low, high = registers_after([line], engine, given, [8, 9]).astype(np.uint64)
    found = (low | high << np.uint64(32) if kind == "f64" else low).astype(FORMS[kind][1]).view(FORMS[kind][0])
    same(found, expected)


@pytest.mark.parametrize("line", ["v_mul_u32_u24_e64 v3, v0, v0 clamp", "v_cvt_i32_f32_e64 v3, v0 mul:2"])
def test_integers_are_not_finished(line: str) -> None:
    with pytest.raises(NotEmulated, match=r"clamp|mul"):
        registers_after([line], "numpy", {4: np.zeros(64, np.uint32)}, [3])
