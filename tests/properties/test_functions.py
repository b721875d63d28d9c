"""Every function of one variable that ONNX has, on edge values, against its definition in a wider type.

float32 and short floats are compared with 80-bit arithmetic where numpy has it. The error is counted in units in
the last place of the result; where a definition subtracts almost equal numbers (Gelu, Mish far below zero), the
rounding of what is subtracted is allowed too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest

from argosy.ir.dtype import Array
from tests.frontends.onnx.one_node import run

Wide = Any  # an array of numpy.longdouble
ONE: Final = np.longdouble(1)
TINY: Final = float(np.finfo(np.float32).tiny)
EDGES: Final = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 0.1, -0.1, 1.5, -1.5, 2.5, -2.5, math.pi, -math.pi),
    *(1e-3, -1e-3, 1e-7, -1e-7, 1e-20, -1e-20, TINY, -TINY, TINY / 8, 1 - 2**-24, 1 + 2**-23, -1 + 2**-24, -1 - 2**-23),
    *(
        5.0,
        -5.0,
        10.0,
        -10.0,
        20.0,
        -20.0,
        50.0,
        -50.0,
        87.0,
        -87.0,
        88.5,
        -88.5,
        89.0,
        -89.0,
        103.0,
        -103.9,
        1e3,
        -1e3,
    ),
    *(1e10, -1e10, 3e38, -3e38, math.inf, -math.inf, math.nan),
]


@dataclass(frozen=True, slots=True)
class Function:
    """An op, its meaning in a wide type, and how far a result may be off, in ulps.

    `loss` adds that many roundings of the largest number on the way, `scale(x)`; `opset` is the first with the op.
    """

    meaning: Callable[[Wide], Wide]
    ulps: float = 4
    loss: float = 0
    attributes: dict[str, Any] = field(default_factory=dict)
    opset: int = 22
    domain: str = ""


def erf(x: Wide) -> Wide:
    return np.array([np.longdouble(math.erf(float(value))) for value in x])


def softplus(x: Wide) -> Wide:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def sigmoid(x: Wide) -> Wide:
    return np.where(x >= 0, ONE / (ONE + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (ONE + np.exp(-np.abs(x))))


def gelu(x: Wide) -> Wide:
    half = np.array([np.longdouble(math.erfc(-float(value) / math.sqrt(2))) for value in x])
    return np.where(x == -np.inf, np.nan, x * half / 2)  # -inf * 0


def gelu_tanh(x: Wide) -> Wide:
    return x / 2 * (ONE + np.tanh(np.sqrt(2 / np.pi * ONE) * (x + np.longdouble(0.044715) * x**3)))


def selu(x: Wide, alpha: Wide, gamma: Wide) -> Wide:
    return np.where(x > 0, gamma * x, gamma * alpha * np.expm1(x))


def f32(value: float) -> Wide:
    """An attribute as ONNX holds it, a float32."""
    return np.longdouble(np.float32(value))


FUNCTIONS: Final[dict[str, Function]] = {
    "Abs": Function(np.abs, 0),
    "Neg": Function(np.negative, 0),
    "Relu": Function(lambda x: np.where(np.isnan(x), x, np.maximum(x, 0)), 0),
    "Sign": Function(np.sign, 0),
    "Floor": Function(np.floor, 0),
    "Ceil": Function(np.ceil, 0),
    "Round": Function(np.round, 0),
    "Reciprocal": Function(lambda x: ONE / x, 1),
    "Sqrt": Function(np.sqrt, 1),
    "Exp": Function(np.exp, 2),
    "Log": Function(np.log, 2),
    "Sin": Function(np.sin, 2),
    "Cos": Function(np.cos, 2),
    "Tan": Function(np.tan, 4),
    "Asin": Function(np.arcsin),
    "Acos": Function(np.arccos),
    "Atan": Function(np.arctan),
    "Sinh": Function(np.sinh),
    "Cosh": Function(np.cosh),
    "Tanh": Function(np.tanh),
    "Asinh": Function(np.arcsinh),
    "Acosh": Function(np.arccosh),
    "Atanh": Function(np.arctanh),
    "Erf": Function(erf),
    "Sigmoid": Function(sigmoid),
    "Softplus": Function(softplus),
    "Softsign": Function(lambda x: x / (ONE + np.abs(x))),
    "Elu": Function(lambda x: np.where(x > 0, x, f32(0.3) * np.expm1(x)), 4, attributes={"alpha": 0.3}),
    "Celu": Function(
        lambda x: np.maximum(x, 0) + np.minimum(0, f32(2.0) * np.expm1(x / f32(2.0))),
        4,
        attributes={"alpha": 2.0},
        opset=28,
    ),
    "Selu": Function(lambda x: selu(x, f32(1.67326319217681884765625), f32(1.05070102214813232421875))),
    "LeakyRelu": Function(lambda x: np.where(x < 0, f32(0.01) * x, x)),
    "ThresholdedRelu": Function(lambda x: np.where(x > 1, x, np.where(np.isnan(x), 0, 0)), 0),
    "HardSigmoid": Function(lambda x: _clip(f32(0.2) * x + f32(0.5)), 4, 1),
    "HardSwish": Function(lambda x: x * _clip(x / 6 + ONE / 2), 4, 1),
    "Shrink": Function(lambda x: np.where(x < -0.5, x, np.where(x > 0.5, x, 0 * ONE)), 0),
    "Mish": Function(lambda x: x * np.tanh(softplus(x)), 8, 1),
    "Gelu": Function(gelu, 8, 1),
    "Swish": Function(lambda x: x * sigmoid(x), 4, opset=24),
}
TANH_GELU: Final = Function(gelu_tanh, 8, 2, {"approximate": "tanh"})


def _clip(x: Wide) -> Wide:
    return np.where(np.isnan(x), x, np.minimum(np.maximum(x, 0), ONE))


def check(op: str, function: Function, kind: Any) -> None:
    with np.errstate(all="ignore"):
        x = np.array(EDGES).astype(kind)
        found = run(op, x, opset=function.opset, **function.attributes)
        wide = x.astype(np.float32).astype(np.longdouble)
        expected = np.asarray(function.meaning(wide), np.longdouble)
        rounded = expected.astype(np.float32).astype(kind).astype(np.float32)
    assert found.dtype == kind
    result = found.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(rounded), f"{op}: where NaN is, of {x}")
    for value, have, want, near in zip(wide, result, expected, rounded, strict=True):
        if np.isnan(want) or have == near:
            continue
        info: Any = ml_dtypes.finfo(kind)  # type: ignore[no-untyped-call]
        if abs(want) > float(info.max):
            assert abs(have) >= float(info.max) * (1 - float(info.eps)), f"{op}({value}) is {have}, expected {want}"
            continue
        step = max(float(np.abs(want)) * float(info.eps), float(info.smallest_subnormal))
        lost = abs(float(value)) * float(np.finfo(np.float32).smallest_subnormal) if np.isfinite(value) else 0.0
        if function.loss and np.isfinite(value):
            lost += function.loss * float(np.finfo(np.float32).eps) * max(1.0, abs(float(value)))
        allowed = max(function.ulps if kind is np.float32 else 1, 1 if step else 0) * step + lost
        assert abs(float(have) - float(want)) <= allowed, f"{op}({value}) is {have}, expected {want}, ± {allowed}"


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="numpy has no wider type than float64 here")
@pytest.mark.parametrize("kind", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("op", FUNCTIONS)
def test_functions(op: str, kind: Any) -> None:
    check(op, FUNCTIONS[op], kind)


def test_gelu_by_tanh() -> None:
    check("Gelu", TANH_GELU, np.float32)


ROWS: Final = [
    np.array([1.0, 2.0, 3.0], np.float32),
    np.array([1e4, 1e4 - 1, -1e4], np.float32),
    np.array([-1e4, -1e4 - 5, -3e38], np.float32),
    np.array([3e38, 3e38, 0], np.float32),
    np.array([-np.inf, 0.0, 1.0], np.float32),
    np.array([1e-30, 2e-30, -1e-30], np.float32),
    np.array([88.0, 89.0, 90.0], np.float32),
    np.array([0.0], np.float32),
]


def log_sum_exp(x: Wide) -> Wide:
    top = np.max(x)
    return top + np.log(np.sum(np.exp(x - top)))


def softmax(x: Wide) -> Wide:
    shifted = np.exp(x - np.max(x))
    return shifted / np.sum(shifted)


ROW_FUNCTIONS: Final[dict[str, Callable[[Wide], Wide]]] = {
    "Softmax": softmax,
    "LogSoftmax": lambda x: (x - np.max(x)) - np.log(np.sum(np.exp(x - np.max(x)))),
    "ReduceLogSumExp": lambda x: np.array([log_sum_exp(x)]),
    "ReduceL1": lambda x: np.array([np.sum(np.abs(x))]),
    "ReduceMean": lambda x: np.array([np.sum(x) / len(x)]),
    "ReduceSum": lambda x: np.array([np.sum(x)]),
    # By its definition the squares are numbers of the input's type, which may overflow.
    "ReduceL2": lambda x: np.array([np.sqrt(np.sum((x * x).astype(np.float32).astype(np.longdouble)))]),
}


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="numpy has no wider type than float64 here")
@pytest.mark.parametrize("op", ROW_FUNCTIONS)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_functions_of_rows(op: str, row: Array) -> None:
    with np.errstate(all="ignore"):
        expected = ROW_FUNCTIONS[op](row.astype(np.longdouble)).astype(np.float32)
        found = run(op, row, opset=22)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-37)
