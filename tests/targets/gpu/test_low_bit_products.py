"""Products of codes and of 8-bit floats, as the kernels' text means them: against the interpreter of the IR, numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.ir import Builder, Env, Module, Value
from argosy.ir.dtype import DTYPES, FLOAT32, INT32, dtype
from argosy.ir.interpreter import Interpreter
from argosy.ir.program import Program
from argosy.ops.convolution import Conv
from argosy.ops.matmul import Dot
from argosy.ops.quantize import Dequantize, Quantize
from argosy.ops.reduce import Softmax
from argosy.ops.view import Transpose
from argosy.options import CompileOptions
from argosy.targets.gpu.arch import find_gpu
from argosy.targets.gpu.codegen.operands import matrix_way
from tests.targets.gpu.interpreted import interpreted_run

STRICT = CompileOptions(strict=True)


def _codes(seed: int, shape: tuple[int, ...], kind: str) -> Any:
    limits = np.iinfo(kind)
    values = np.random.default_rng(seed).integers(limits.min, limits.max, shape, endpoint=True).astype(kind)
    values.flat[0], values.flat[-1] = limits.min, limits.max
    return values


def _both(module: Module, feeds: dict[str, Any], arch: str) -> tuple[Any, Any]:
    """The first result of the kernels, and that of the interpreter; there are no host steps."""
    run = interpreted_run(Program(module), arch, STRICT)
    found = run(feeds)[module.result_names[0]]
    expected = Interpreter(module).run(list(feeds.values()), Env())[0]
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    return found, expected


def _centred(build: Builder, value: Value, zero: Any) -> Value:
    zeros = build.constant(zero)
    return build.pointwise(lambda x, z: x.convert(INT32) - z.convert(INT32), value, zeros)


@pytest.mark.parametrize(
    ("arch", "left", "right", "weight"),
    [("sm_90", "uint8", "int8", True), ("gfx942", "uint8", "uint8", False), ("sm_75", "int8", "uint8", True),
     ("gfx1201", "int8", "int8", False)],
)  # fmt: skip
def test_integer_products_of_odd_sizes_and_batches(arch: str, left: str, right: str, weight: bool) -> None:
    a, b = _codes(0, (2, 5, 37), left), _codes(1, (37, 19) if weight else (2, 37, 19), right)
    build = Builder()
    x = build.tensor_parameter("x", left, a.shape)
    w = build.constant(b) if weight else build.tensor_parameter("w", right, b.shape)
    y = build.add(Dot(INT32), _centred(build, x, np.array(7, left)), _centred(build, w, np.array(3, right)))
    found, _ = _both(build.module({"y": y}), {"x": a} if weight else {"x": a, "w": b}, arch)
    np.testing.assert_array_equal(found, (a.astype(np.int64) - 7) @ (b.astype(np.int64) - 3))


def _dequantized(build: Builder, value: Value, scale: Any, zero: Any = None, axis: int = 1) -> Value:
    rest = [] if zero is None else [build.constant(zero)]
    return build.add(Dequantize(FLOAT32, axis), value, build.constant(np.asarray(scale, np.float32)), *rest)


@pytest.mark.parametrize(("arch", "turned"), [("sm_90", ""), ("gfx942", "left"), ("sm_75", "right")])
def test_quantised_products_are_requantised_in_the_same_kernel(arch: str, turned: str) -> None:
    a, b = _codes(0, (77, 21) if turned == "left" else (21, 77), "uint8"), _codes(1, (77, 35), "int8")
    b = np.ascontiguousarray(b.T) if turned == "right" else b
    build = Builder()
    x = _dequantized(build, build.tensor_parameter("x", "uint8", a.shape), 0.02, np.uint8(100))
    x = build.add(Transpose((1, 0)), x) if turned == "left" else x
    scales = np.random.default_rng(2).uniform(0.01, 0.02, 35)
    w = _dequantized(build, build.constant(b), scales, None, 0 if turned == "right" else 1)
    w = build.add(Transpose((1, 0)), w) if turned == "right" else w
    real = build.pointwise("max", build.add(Dot(), x, w), build.constant(np.float32(0)))
    y = build.add(Quantize(dtype("uint8")), real, build.constant(np.float32(0.25)), build.constant(np.uint8(5)))
    module = build.module({"y": y})
    found, expected = _both(module, {"x": a}, arch)
    assert np.ptp(found) > 50
    assert np.abs(found.astype(int) - expected.astype(int)).max() <= 1


def test_a_product_of_codes_with_symbolic_sizes() -> None:
    build = Builder()
    x = build.tensor_parameter("x", "uint8", ("rows", 40))
    b = _codes(1, (40, 33), "int8")
    w = _dequantized(build, build.constant(b), 0.01)
    module = build.module({"y": build.add(Dot(), _dequantized(build, x, 0.02, np.uint8(9)), w)})
    run = interpreted_run(Program(module), options=STRICT)
    for rows in (1, 37):
        a = _codes(rows, (rows, 40), "uint8")
        expected = (a.astype(np.float64) - 9) @ b * 0.0002
        np.testing.assert_allclose(run({"x": a})["y"], expected, 1e-4, 1e-4)


@pytest.mark.parametrize(
    ("arch", "channels", "outputs", "group"),
    [("sm_90", 3, 20, 1), ("sm_75", 20, 24, 1), ("gfx942", 34, 40, 2), ("gfx1201", 6, 6, 6)],
)
def test_convolutions_of_codes(arch: str, channels: int, outputs: int, group: int) -> None:
    a, b = _codes(0, (1, channels, 5, 4), "uint8"), _codes(1, (outputs, channels // group, 3, 3), "int8")
    build = Builder()
    x = _dequantized(build, build.tensor_parameter("x", "uint8", a.shape), 0.02, np.uint8(31))
    w = _dequantized(build, build.constant(b), np.random.default_rng(2).uniform(0.01, 0.02, outputs), None, 0)
    bias = build.constant(np.random.default_rng(3).standard_normal(outputs).astype(np.float32))
    y = build.add(Conv((2, 1), (1, 0, 1, 2), (1, 1), group), x, w, bias)
    found, expected = _both(build.module({"y": y}), {"x": a}, arch)
    np.testing.assert_allclose(found, expected, 1e-4, 1e-3)


def test_rows_of_codes_are_one_kernel_between_products_that_end_in_codes() -> None:
    """Dynamic quantised attention: the scores, their softmax and what they weigh are int8 in memory."""
    a, b = _codes(0, (2, 9, 40), "uint8"), _codes(1, (2, 9, 40), "uint8")
    build = Builder()
    x = _dequantized(build, build.tensor_parameter("x", "uint8", a.shape), 0.01, np.uint8(120))
    w = _dequantized(build, build.tensor_parameter("w", "uint8", b.shape), 0.01, np.uint8(131))
    scale = build.constant(np.float32(1 / 255))
    scores = build.add(Dot(), x, build.add(Transpose((0, 2, 1)), w))
    weights = build.add(Quantize(dtype("uint8")), build.add(Softmax(2), scores), scale, build.constant(np.uint8(0)))
    mixed = build.add(Dot(), build.add(Dequantize(FLOAT32), weights, scale), w)
    coded = build.add(Quantize(dtype("int8")), mixed, build.constant(np.float32(0.02)), build.constant(np.int8(3)))
    y = build.add(Transpose((1, 0, 2)), build.pointwise("neg", _dequantized(build, coded, 0.02, np.int8(3))))
    module = build.module({"y": y})
    run = interpreted_run(Program(module), options=STRICT)
    found, expected = run({"x": a, "w": b})["y"], Interpreter(module).run([a, b], Env())[0]
    np.testing.assert_allclose(found, expected, atol=0.0401)  # 2 steps of the last codes, whose own came rounded
    assert np.abs(found - expected).mean() < 0.004


FLOATS = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")


@pytest.mark.parametrize(
    ("arch", "left", "right"),
    [("sm_90", *FLOATS[:2]), ("gfx942", *FLOATS[:2]), ("gfx942", *FLOATS[2:]), ("sm_75", FLOATS[0], FLOATS[3])],
)
def test_products_of_8_bit_floats(arch: str, left: str, right: str) -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((19, 70)).astype(DTYPES[left].numpy)
    b = rng.standard_normal((70, 35)).astype(DTYPES[right].numpy)
    build = Builder()
    x = _dequantized(build, build.tensor_parameter("x", left, a.shape), 0.5)
    w = _dequantized(build, build.constant(b), rng.uniform(0.5, 2, 35))
    found, expected = _both(build.module({"y": build.add(Dot(), x, w)}), {"x": a}, arch)
    np.testing.assert_allclose(found, expected, 1e-4, 1e-4)


@pytest.mark.parametrize("kind", FLOATS)
def test_every_8_bit_float_is_multiplied_as_what_it_is(kind: str) -> None:
    """All codes of a type, by 1, where no instruction takes it: NaN, infinities and the least ones too.

    Where one does, Triton's interpreter reads them roughly.
    """
    codes = np.arange(256, dtype=np.uint8).view(DTYPES[kind].numpy).reshape(256, 1)
    one = np.ones((1, 1), DTYPES[kind].numpy)
    build = Builder()
    x, w = build.tensor_parameter("x", kind, codes.shape), build.tensor_parameter("w", kind, one.shape)
    module = build.module({"y": build.add(Dot(FLOAT32), x, w)})
    arch = "sm_90" if kind.endswith("fnuz") else "gfx942"
    found = interpreted_run(Program(module), arch, STRICT)({"x": codes, "w": one})["y"]
    np.testing.assert_array_equal(found, codes.astype(np.float32))


def test_operands_come_in_the_shortest_type_that_holds_both() -> None:
    def way(left: str, right: str, result: str, arch: str) -> str:
        row = find_gpu(arch)
        assert row is not None
        found = matrix_way(DTYPES[left], DTYPES[right], DTYPES[result], row)
        return found.kind if found else ""

    assert way("int8", "int4", "int32", "mi300x") == "int8"
    assert way("uint8", "int8", "int32", "mi300x") == ""
    assert way("int8", "int8", "int64", "mi300x") == ""
    assert way("float8_e4m3fn", "float8_e5m2", "float32", "h100") == "fp8"
    assert way("float8_e4m3fn", "float8_e5m2", "float32", "mi300x") == "fp16"
    assert way("float8_e4m3fnuz", "float8_e5m2fnuz", "float32", "mi300x") == "fp8"
    assert way("float16", "float8_e5m2", "float32", "h100") == "fp16"
    assert way("bfloat16", "float8_e5m2", "float32", "h100") == "bf16"
    assert way("bfloat16", "float16", "float32", "h100") == "fp32"
    assert way("float4_e2m1fn", "float8_e4m3fn", "float32", "h100") == "fp16"
    assert way("float64", "float64", "float64", "h100") == ""
