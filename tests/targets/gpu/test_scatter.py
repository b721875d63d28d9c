"""Scatters of many updates on GPUs against numpy: duplicates, several blocks, slices, any element type."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argosy.errors import ArgosyError
from argosy.ir import Builder, Env, Program, Symbol, TensorType, symbol_dim
from argosy.ir.dtype import DTYPES, INT64
from argosy.ir.interpreter import Interpreter
from argosy.ops.scatter import ScatterElements, ScatterND
from argosy.options import CompileOptions
from argosy.targets.base import make_target
from argosy.targets.gpu.solutions.scatter import ScatterAdded, ScatterSearch, ScatterSorted

interpreted_run = pytest.importorskip("tests.targets.gpu.interpreted").interpreted_run


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks so small that few updates fill several; nothing may fall back to looking at all updates."""
    monkeypatch.setattr("argosy.targets.gpu.solutions.scatter._FEW", -1)
    monkeypatch.setattr(ScatterSorted, "configs", lambda *_: [(16, 4)])
    monkeypatch.setattr(ScatterSearch, "applies", lambda *_: "it looks at all updates")


@pytest.fixture(params=["added", "sorted"])
def adding(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to add."""
    if request.param == "sorted":
        monkeypatch.setattr(ScatterAdded, "applies", lambda *_: "updates are sorted")


def check(op: Any, x: Any, indices: Any, updates: Any, *, symbolic: bool = False) -> None:
    arguments = [x, indices, updates]
    builder = Builder()
    values = []
    for place, array in enumerate(arguments):
        names = [symbol_dim(Symbol(f"N{place}_{axis}")) for axis in range(array.ndim)]
        dims = names if symbolic else array.shape
        if symbolic and isinstance(op, ScatterND) and place == 1:
            dims = (*names[:-1], array.shape[-1])
        values.append(builder.parameter(f"x{place}", TensorType(DTYPES[str(array.dtype)], tuple(dims))))
    module = builder.module({"y": builder.add(op, *values)})
    run = interpreted_run(Program(module), options=CompileOptions(strict=True))
    found = run(dict(zip(module.parameter_names, arguments, strict=True)))["y"]
    (expected,) = Interpreter(module).run(arguments, Env())
    assert found.dtype == expected.dtype
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        again = run(dict(zip(module.parameter_names, arguments, strict=True)))["y"]
        assert found.tobytes() == again.tobytes()
    else:
        np.testing.assert_array_equal(found, expected)


def numbers(seed: int, dtype: str, shape: tuple[int, ...]) -> Any:
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return (1 + random.standard_normal(shape) / 8).astype(dtype)
    return random.integers(0, 7, shape).astype(dtype)


@pytest.mark.usefixtures("adding")
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    count=st.sampled_from([1, 3, 4, 5, 15, 16, 17, 33, 40]),
    slots=st.integers(1, 9),
    reduction=st.sampled_from(["add", "mul", "min", "max"]),
    dtype=st.sampled_from(["float32", "int8", "int64", "uint8", "float64"]),
    seed=st.integers(0, 99),
)
def test_updates_of_one_axis(count: int, slots: int, reduction: str, dtype: str, seed: int) -> None:
    indices = np.random.default_rng(seed).integers(-slots, slots, (count,))
    check(ScatterElements(0, reduction), numbers(seed, dtype, (slots,)), indices, numbers(seed + 1, dtype, (count,)))


@pytest.mark.usefixtures("adding")
def test_one_element_takes_all() -> None:
    updates = numbers(2, "float32", (300,))
    check(ScatterElements(0, "add"), numbers(1, "float32", (3,)), np.full(300, 1), updates)


def test_one_slot_takes_all() -> None:
    x, updates = numbers(1, "float32", (3, 2)), numbers(2, "float32", (37, 2))
    check(ScatterND("add"), x, np.full((37, 1), 1), updates)


def test_sizes_that_only_the_run_knows() -> None:
    random = np.random.default_rng(5)
    x, updates = numbers(1, "float32", (3, 4, 2)), numbers(2, "float32", (5, 7, 2))
    indices = np.stack([random.integers(0, 3, (5, 7)), random.integers(-4, 4, (5, 7))], -1)
    check(ScatterND("max"), x, indices, updates, symbolic=True)
    check(ScatterND("none"), x[:, :1], indices * [1, 0] % 3 * [1, 0], updates * 0 + 5, symbolic=True)
    check(ScatterElements(1, "add"), x[0], random.integers(0, 2, (4, 9)), numbers(2, "float32", (4, 9)), symbolic=True)


def test_no_updates_at_all() -> None:
    check(ScatterND("add"), numbers(1, "float32", (4,)), np.zeros((0, 1), np.int64), np.zeros(0, np.float32))


def added(x: Any, indices: Any, updates: Any) -> Any:
    """What `ScatterElements` adds along one axis."""
    builder = Builder()
    arrays = {"x": x, "i": indices, "u": updates}
    values = [builder.parameter(name, TensorType(DTYPES[str(a.dtype)], a.shape)) for name, a in arrays.items()]
    module = builder.module({"y": builder.add(ScatterElements(0, "add"), *values)})
    return interpreted_run(Program(module), options=CompileOptions(strict=True))(arrays)["y"]


def test_any_order_of_the_updates_gives_the_same_bits() -> None:
    random = np.random.default_rng(9)
    x = random.standard_normal(7).astype(np.float32)
    indices = random.integers(0, 7, 600)
    updates = (random.standard_normal(600) * 10.0 ** random.integers(-30, 30, 600)).astype(np.float32)
    found = added(x, indices, updates)
    exact = [math.fsum([x[slot], *updates[indices == slot].tolist()]) for slot in range(7)]
    # half a unit of the result, and of each update half of 2^-52 of the largest one
    largest = [np.abs(updates[indices == slot]).max() for slot in range(7)]
    np.testing.assert_array_less(np.abs(found - exact), np.abs(exact) * 2.0**-23 + np.array(largest) * 600 * 2.0**-52)
    for _ in range(3):
        order = random.permutation(600)
        assert added(x, indices[order], updates[order]).tobytes() == found.tobytes()


def test_each_element_has_a_unit_of_its_own_and_its_infinities() -> None:
    inf, nan, tiny = np.inf, np.nan, np.float32(1e-45)
    indices = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 5, 7])
    updates = np.array([3e38, 3e37, tiny, tiny, inf, 1, inf, -inf, nan, -inf, -2, -0.0], np.float32)
    x = np.array([0, 0, 1, 1, 1, 1, -0.0, 5], np.float32)
    found = added(x, indices, updates)
    expected = np.array([3.3e38, 2 * tiny, inf, nan, nan, -inf, -0.0, 5], np.float32)
    np.testing.assert_array_equal(found, expected)
    assert np.signbit(found[6])


def test_an_index_outside_is_a_fault() -> None:
    builder = Builder()
    kinds = {"x": (DTYPES["float32"], (4,)), "i": (INT64, (5, 1)), "u": (DTYPES["float32"], (5,))}
    values = [builder.parameter(name, TensorType(kind, dims)) for name, (kind, dims) in kinds.items()]
    module = builder.module({"y": builder.add(ScatterND("add"), *values)})
    run = interpreted_run(Program(module), options=CompileOptions(strict=True))
    given_ = {"x": np.ones(4, np.float32), "i": np.array([[0], [3], [4], [1], [1]]), "u": np.ones(5, np.float32)}
    with pytest.raises(ArgosyError, match="4"):
        run(given_)


def test_indices_of_unknown_depth_are_declined() -> None:
    """How many axes they index only the run knows; no kernel can be made without."""
    build = Builder()
    x = build.tensor_parameter("x", "float32", [4])
    indices = build.tensor_parameter("i", "int64", [2, "K"])
    updates = build.tensor_parameter("u", "float32", [2])
    target = make_target("gpu", gpu_arch="gfx942")
    module = build.module({"y": build.add(ScatterND(), x, indices, updates)})
    (choice,) = target.outline(module, CompileOptions()).choices
    assert choice.solution == "host"
    assert any("the depth of the indices is known only when the program runs" in why for why in choice.declined)
