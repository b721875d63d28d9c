"""Products of codes are those of what the codes stand for: integers to the bit, codes within one unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from argosy.ir import Builder, Env, Module, Value
from argosy.ir.dtype import FLOAT32, INT32, dtype, dtype_of
from argosy.ir.interpreter import Interpreter
from argosy.ops.convolution import Conv
from argosy.ops.matmul import Dot
from argosy.ops.quantize import Dequantize, Quantize
from argosy.ops.view import Transpose
from argosy.passes.lower_quantize import LowerQuantize
from argosy.passes.manager import PassManager, Phase

KINDS = ("uint8", "int8")
RANDOM = np.random.default_rng(11)


def codes(shape: Sequence[int], kind: str) -> Any:
    """Random codes, both extremes among them."""
    limits = np.iinfo(kind)
    values = RANDOM.integers(limits.min, limits.max, shape, endpoint=True).astype(kind)
    values.flat[0], values.flat[-1] = limits.min, limits.max
    return values


@pytest.fixture(params=[False, True], ids=["mixed", "signed"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test lowers for CPUs and for GPUs, whose products have codes with a sign alone."""
    monkeypatch.setattr(__name__ + ".SIGNED", request.param)


SIGNED = False


def lowered(module: Module) -> Module:
    """The module behind the pass; there must be a product of integers in it."""
    after = PassManager((Phase("precision", (LowerQuantize(signed=SIGNED),)),)).run(module)
    products = [i for i in after.instructions if i.op.name in ("dot", "conv")]
    assert products
    assert all(i.results[0].dtype is INT32 and i.operands[0].dtype.bits == 8 for i in products if i.operands[0])
    assert not SIGNED or all(v.dtype is dtype("int8") for i in products for v in i.operands[:2] if v is not None)
    return after


def both(module: Module, *arguments: Any) -> tuple[Any, Any]:
    """The first result before and behind the pass."""
    before, after = (Interpreter(m).run(list(arguments), Env())[0] for m in (module, lowered(module)))
    assert before.dtype == after.dtype
    assert before.shape == after.shape
    return before, after


def centred(build: Builder, value: Value, zero: Value | None) -> Value:
    """Codes less their zero, as integers."""
    if zero is None:
        return value
    return build.pointwise(lambda x, z: x.convert(INT32) - z.convert(INT32), value, zero)


@pytest.mark.parametrize("left", KINDS)
@pytest.mark.parametrize("right", KINDS)
@pytest.mark.parametrize("weight", [True, False], ids=["weight", "value"])
@pytest.mark.parametrize("zeros", ["none", "left", "right", "both", "rows and columns"])
def test_integer_products(left: str, right: str, weight: bool, zeros: str) -> None:
    a, b = codes((2, 5, 33), left), codes((33, 7), right)
    build = Builder()
    x = build.tensor_parameter("x", left, a.shape)
    w = build.constant(b) if weight else build.tensor_parameter("w", right, b.shape)
    shapes = {"left": ((), None), "right": (None, ()), "both": ((), ()), "rows and columns": ((5, 1), (7,))}
    za, zb = (
        None
        if shape is None
        else build.constant(codes((*shape, 2)[: len(shape)] if shape else (1,), kind).reshape(shape))
        for shape, kind in zip(shapes.get(zeros, (None, None)), (left, right), strict=True)
    )
    y = build.add(Dot(INT32), centred(build, x, za), centred(build, w, zb))
    module = build.module({"y": y})
    if zeros == "none" and not weight and not (SIGNED and "uint8" in (left, right)):
        return  # nothing to do
    before, after = both(module, a) if weight else both(module, a, b)
    np.testing.assert_array_equal(before, after)
    numbers = (a.astype(np.int64) - (0 if za is None else za.constant.array().astype(np.int64))) @ (  # type: ignore[union-attr]
        b.astype(np.int64) - (0 if zb is None else zb.constant.array().astype(np.int64))  # type: ignore[union-attr]
    )
    np.testing.assert_array_equal(after, numbers)


def dequantized(build: Builder, value: Value, scale: Any, zero: Any = None, axis: int = 1) -> Value:
    """A value by a scale and a zero."""
    rest = [] if zero is None else [build.constant(zero)]
    return build.add(Dequantize(FLOAT32, axis), value, build.constant(np.asarray(scale, np.float32)), *rest)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("turned", [False, True], ids=["as it is", "turned"])
@pytest.mark.parametrize("scales", [(), (9,)], ids=["a scale", "a scale for each column"])
def test_products_of_floats(kind: str, turned: bool, scales: tuple[int, ...]) -> None:
    a, b = codes((6, 40), kind), codes((9, 40) if turned else (40, 9), "int8")
    build = Builder()
    x = dequantized(build, build.tensor_parameter("x", kind, a.shape), 0.1, np.array(3, kind))
    by = RANDOM.uniform(0.01, 0.1, scales)
    w = dequantized(build, build.constant(b), by, None, 0 if turned else 1)
    w = build.add(Transpose((1, 0)), w) if turned else w
    real = build.add(Dot(), x, w)
    y = build.add(Quantize(dtype("int8")), real, build.constant(np.float32(2.0)), build.constant(np.int8(5)))
    before, after = both(build.module({"y": y}), a)
    assert np.abs(before.astype(int) - after.astype(int)).max() <= 1
    before, after = both(build.module({"real": real}), a)
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weight_zero", [None, 5], ids=["symmetric", "with a zero"])
@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("group", [1, 2])
def test_convolutions(kind: str, weight_zero: int | None, rank: int, group: int) -> None:
    a, b = codes((2, 4, *[7] * rank), kind), codes((6, 4 // group, *[3] * rank), "int8")
    zero = None if weight_zero is None else np.full((6,), weight_zero, np.int8)
    build = Builder()
    x = dequantized(build, build.tensor_parameter("x", kind, a.shape), 0.1, np.array(17, kind))
    w = dequantized(build, build.constant(b), RANDOM.uniform(0.01, 0.1, 6), zero, 0)
    bias = build.constant(RANDOM.standard_normal(6).astype(np.float32))
    y = build.add(Conv((2,) * rank, (1,) * 2 * rank, (1,) * rank, group), x, w, bias)
    module = build.module({"y": y})
    if zero is not None and group > 1:
        after = PassManager((Phase("precision", (LowerQuantize(),)),)).run(module)
        assert all(i.results[0].dtype is FLOAT32 for i in after.instructions if i.op.name == "conv")
        return
    before, found = both(module, a)
    np.testing.assert_allclose(found, before, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("axis", range(4))
def test_weights_of_which_a_size_is_known_to_the_run_alone(axis: int) -> None:
    a, b = codes((1, 2, 6, 6), "int8"), codes((3, 2, 2, 3), "int8")
    sizes: list[int | str] = [*b.shape]
    sizes[axis] = "n"
    build = Builder()
    x = build.tensor_parameter("x", "int8", a.shape)
    w = build.tensor_parameter("w", "int8", sizes)
    values = [centred(build, value, build.constant(np.int8(zero))) for value, zero in ((x, 3), (w, -5))]
    conv = Conv((1, 1), (1, 0, 0, 1), (1, 1), dtype=INT32)
    module = build.module({"y": build.add(conv, *values)})
    after = PassManager((Phase("precision", (LowerQuantize(signed=SIGNED),)),)).run(module)
    results = [Interpreter(each).run([a, b], Env())[0] for each in (module, after)]
    np.testing.assert_array_equal(*results)


def test_a_sum_that_may_not_fit_stays() -> None:
    build = Builder()
    depth = 33_026
    x = dequantized(build, build.tensor_parameter("x", "uint8", (1, depth)), 1.0)
    w = dequantized(build, build.tensor_parameter("w", "uint8", (depth, 1)), 1.0)
    module = build.module({"y": build.add(Dot(), x, w)})
    assert PassManager((Phase("precision", (LowerQuantize(),)),)).run(module) is module


def test_exact_divides() -> None:
    build = Builder()
    x = build.tensor_parameter("x", "float32", (4,))
    y = build.add(Quantize(dtype("uint8")), x, build.constant(np.float32(0.3)))
    module = build.module({"y": y})
    assert PassManager((Phase("precision", (LowerQuantize(exact=True),)),)).run(module) is module


def test_dynamic_scales() -> None:
    """Scales and zero points that only the run knows."""
    a, b = codes((3, 20), "uint8"), codes((20, 4), "int8")
    build = Builder()
    x = build.tensor_parameter("x", "uint8", a.shape)
    scale, zero = build.tensor_parameter("s", "float32", ()), build.tensor_parameter("z", "uint8", ())
    w = dequantized(build, build.constant(b), 0.5)
    y = build.add(Dot(), build.add(Dequantize(FLOAT32), x, scale, zero), w)
    before, after = both(build.module({"y": y}), a, np.float32(0.25), np.uint8(99))
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-4)
    assert dtype_of(after.dtype) is FLOAT32
