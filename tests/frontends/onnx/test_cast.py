"""Cast: saturation of 8-bit floats, exponent-only floats, wrapping integers, strings; CastLike and BitCast."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

from argosy.errors import ModelError
from tests.frontends.onnx.one_node import program, run

TO = TensorProto
EXTREMES = np.array([0, -0.0, 1.06, np.nan, np.inf, -np.inf, 1e6, -1e6], np.float32)


@pytest.mark.parametrize(
    ("to", "dtype"),
    [
        (TO.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn),
        (TO.FLOAT8E4M3FNUZ, ml_dtypes.float8_e4m3fnuz),
        (TO.FLOAT8E5M2, ml_dtypes.float8_e5m2),
        (TO.FLOAT8E5M2FNUZ, ml_dtypes.float8_e5m2fnuz),
    ],
)
def test_8_bit_floats_saturate_unless_told_otherwise(to: int, dtype: Any) -> None:
    greatest = float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
    saturated = run("Cast", EXTREMES, to=to).astype(np.float32)
    np.testing.assert_array_equal(saturated[3:], [np.nan, greatest, -greatest, greatest, -greatest])
    plain = run("Cast", EXTREMES, to=to, saturate=0).astype(np.float32)
    infinity = np.inf if dtype is ml_dtypes.float8_e5m2 else np.nan
    np.testing.assert_array_equal(np.abs(plain[3:]), [np.nan] + [infinity] * 4)
    np.testing.assert_array_equal(saturated[:3], plain[:3])


@pytest.mark.parametrize("source", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(
    ("mode", "expected"), [("up", [1, 2, 2, 2, 4]), ("down", [1, 1, 1, 2, 2]), ("nearest", [1, 1, 2, 2, 2])]
)
def test_exponents_are_rounded_as_asked(source: Any, mode: str, expected: list[int]) -> None:
    x = np.array([1, 1.25, 1.5, 2, 2.75], source)
    found = run("Cast", x, to=TO.FLOAT8E8M0, round_mode=mode)
    np.testing.assert_array_equal(found.astype(np.float32), expected)


def test_exponents_of_what_does_not_fit() -> None:
    """The two columns of the standard's table."""
    x = np.array([0, np.nan, np.inf, 3e38, 1e-39], np.float32)
    saturated = run("Cast", x, to=TO.FLOAT8E8M0, round_mode="up", saturate=1).astype(np.float64)
    np.testing.assert_array_equal(saturated, [2.0**-127, np.nan, 2.0**127, 2.0**127, 2.0**-127])
    plain = run("Cast", x[:4], to=TO.FLOAT8E8M0, round_mode="nearest", saturate=0).astype(np.float64)
    np.testing.assert_array_equal(plain, [np.nan] * 4)


def test_integers_wrap_and_floats_truncate() -> None:
    np.testing.assert_array_equal(run("Cast", np.array([200, -129], np.int16), to=TO.INT8), [-56, 127])
    np.testing.assert_array_equal(run("Cast", np.array([-1.9, 2.9], np.float32), to=TO.INT32), [-1, 2])
    np.testing.assert_array_equal(run("Cast", np.array([0.0, -0.0, np.nan, 0.1], np.float32), to=TO.BOOL), [0, 0, 1, 1])
    np.testing.assert_array_equal(run("Cast", np.array([9, -9]), to=TO.INT4).astype(int), [-7, 7])


def test_opset_1_names_the_type() -> None:
    assert run("Cast", np.array([1.5], np.float32), opset=1, to="INT64").tolist() == [1]
    with pytest.raises(ModelError, match="'to' is 'int65', which is no element type"):
        program("Cast", [EXTREMES], opset=1, to="int65")


def test_strings() -> None:
    texts = run("Cast", np.array([1.5, -np.inf], np.float32), to=TO.STRING)
    assert texts.tolist() == ["1.5", "-inf"]
    np.testing.assert_array_equal(run("Cast", texts, to=TO.DOUBLE), [1.5, -np.inf])
    saturated = run("Cast", np.array(["1e9"], object), to=TO.FLOAT8E5M2)
    assert saturated.astype(np.float32).tolist() == [57344]


def test_cast_like_takes_the_type_only() -> None:
    made = program("CastLike", [EXTREMES, np.zeros((), np.float16)], shapes=[("n",), ()])
    assert str(*made.outputs.values()) == "float16[n]"


def test_bit_cast() -> None:
    x = np.array([1.0, -2.5], np.float32)
    np.testing.assert_array_equal(run("BitCast", x, to=TO.UINT32), x.view(np.uint32))
    assert run("BitCast", np.array(1.0), to=TO.INT64).shape == ()
    with pytest.raises(ModelError, match="the bits of float32 can't be read as int16: the widths differ"):
        program("BitCast", [x], to=TO.INT16)
