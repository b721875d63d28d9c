"""Dot products against Python's integers and exact fractions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.emulation.semantics.table import OPERATIONS
from tests.emulation.floats import agree, fused, values
from tests.emulation.text import ENGINES, registers_after


def of_bytes(first: NDArray[Any], second: NDArray[Any], third: NDArray[Any], kinds: tuple[Any, Any]) -> Any:
    """Four products and a summand; 32 bits of the sum remain."""
    rows = [each.view(kind).reshape(-1, 4) for each, kind in zip((first, second), kinds, strict=True)]
    found = [
        sum(int(x) * int(y) for x, y in zip(left, right, strict=True)) + int(start)
        for left, right, start in zip(*rows, third, strict=True)
    ]
    return np.array([each & 0xFFFFFFFF for each in found], np.uint32).view(np.int32)


def of_halves(first: NDArray[Any], second: NDArray[Any], third: NDArray[Any]) -> Any:
    """The low product is added first, then the high one, each sum rounded to float32; products are exact."""
    left, right = (each.view(np.float16).reshape(-1, 2).astype(np.float64) for each in (first, second))
    found = []
    for a, b, start in zip(left, right, third, strict=True):
        total = start
        for x, y in zip(a, b, strict=True):
            total = fused(float(x), float(y), float(total), np.float32)
        found.append(total)
    return np.array(found, np.float32)


_SIGNED, _UNSIGNED = np.int8, np.uint8
EXPECTED: dict[str, Callable[..., Any]] = {
    "v_dot2_f32_f16": of_halves,
    "v_dot2c_f32_f16": of_halves,
    "v_dot4_i32_i8": partial(of_bytes, kinds=(_SIGNED, _SIGNED)),
    "v_dot4c_i32_i8": partial(of_bytes, kinds=(_SIGNED, _SIGNED)),
    "v_dot4_u32_u8": partial(of_bytes, kinds=(_UNSIGNED, _UNSIGNED)),
}
for _first, _a in enumerate((_UNSIGNED, _SIGNED)):
    for _second, _b in enumerate((_UNSIGNED, _SIGNED)):
        EXPECTED[f"v_dot4_i32_iu8@{_first}{_second}"] = partial(of_bytes, kinds=(_a, _b))


def test_all_are_there() -> None:
    assert set(EXPECTED) == {name for name in OPERATIONS if name.startswith("v_dot")}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_dots(name: str) -> None:
    agree(name, EXPECTED[name])


@pytest.mark.parametrize("name", ["v_dot2_f32_f16", "v_dot2c_f32_f16"])
def test_dots_of_halves(name: str) -> None:
    """Of numbers, and with what cancels, so that the order of sums shows."""
    random = np.random.default_rng(3)
    first, second = (random.standard_normal(800).astype(np.float16) for _ in range(2))
    first[:400:2] *= np.float16(100)
    agree(name, EXPECTED[name], [first.view(np.uint32), second.view(np.uint32), values("f32", 8)])


@pytest.mark.parametrize("engine", ENGINES)
def test_neg_lo_says_which_factors_are_signed(engine: Any) -> None:
    words = np.random.default_rng(4).integers(0, 2**32, (3, 32), dtype=np.uint32)
    signs = ["00", "01", "10", "11"]
    lines = [f"v_dot4_i32_iu8 v{8 + at}, v4, v5, v6 neg_lo:[{each[0]},{each[1]},0]" for at, each in enumerate(signs)]
    found = registers_after(lines, engine, dict(zip((4, 5, 6), words, strict=True)), range(8, 12), arch="gfx1100")
    for one, each in zip(found, signs, strict=True):
        expected = EXPECTED[f"v_dot4_i32_iu8@{each}"](*words[:2], words[2].view(np.int32))
        np.testing.assert_array_equal(one.view(np.int32), expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_sums_go_on_in_a_register(engine: Any) -> None:
    words = np.random.default_rng(5).integers(0, 2**32, (3, 64), dtype=np.uint32)
    given = dict(zip((4, 5, 6), words, strict=True))
    (found,) = registers_after(["v_dot4c_i32_i8_e32 v6, v4, v5"], engine, given, [6], arch="gfx90a")
    expected = EXPECTED["v_dot4c_i32_i8"](*words[:2], words[2].view(np.int32))
    np.testing.assert_array_equal(found.view(np.int32), expected)
