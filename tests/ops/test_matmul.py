"""Matrix products against numpy: ranks, symbolic dims, element types, exact integer sums."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from argosy.errors import ModelError
from argosy.ir.dtype import DTYPES, INT32
from argosy.ops.matmul import Dot
from tests.ops.agreement import apply, infer, tensor

SHAPES = [
    ((4,), (4,)),
    ((4,), (4, 3)),
    ((2, 4), (4,)),
    ((2, 4), (4, 3)),
    ((5, 1, 2, 4), (6, 4, 3)),
    ((5, 2, 4), (4,)),
    ((0, 4), (4, 3)),
    ((2, 0), (0, 3)),
]


@pytest.mark.parametrize(("left", "right"), SHAPES, ids=str)
def test_ranks_and_broadcasting(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(left).astype(np.float32), rng.standard_normal(right).astype(np.float32)
    kinds = [tensor("float32", *shape) for shape in (left, right)]
    (found,) = apply(Dot(), *kinds, feeds=[a, b])
    np.testing.assert_allclose(found, np.matmul(a.astype(np.float64), b.astype(np.float64)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [1, 7])
def test_symbolic_dims(size: int) -> None:
    a = np.ones((size, 3, 4), np.float32)
    b = np.ones((4, 2 * size), np.float32)
    (found,) = apply(Dot(), tensor("float32", "n", 3, 4), tensor("float32", 4, "m"), feeds=[a, b])
    assert found.shape == (size, 3, 2 * size)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_short_floats_sum_in_float32_and_round_once(dtype: Any) -> None:
    # Summed in the short type, 2048 + 1 + 1 + … would never leave 2048.
    a = np.concatenate([[2048.0], np.ones(512)]).astype(dtype)
    name = np.dtype(dtype).name
    (found,) = apply(Dot(), tensor(name, 513), tensor(name, 513), feeds=[a, np.ones(513, dtype)])
    assert float(found) == float(np.asarray(2560.0, dtype))


def test_int32_products_of_bytes_are_exact() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 256, (3, 5000), np.uint8), rng.integers(-128, 128, (5000, 2), np.int8)
    (found,) = apply(Dot(INT32), tensor("uint8", 3, 5000), tensor("int8", 5000, 2), feeds=[a, b])
    np.testing.assert_array_equal(found, a.astype(np.int64) @ b.astype(np.int64))


def test_integer_sums_wrap() -> None:
    a = np.full((1, 4), 2**30, np.int32)
    (found,) = apply(Dot(), tensor("int32", 1, 4), tensor("int32", 4, 1), feeds=[a, a.T])
    np.testing.assert_array_equal(found, a @ a.T)
    big = np.full((1, 2), 2**62, np.int64)
    (found,) = apply(Dot(), tensor("int64", 1, 2), tensor("int64", 2, 1), feeds=[big, big.T + 1])
    np.testing.assert_array_equal(found, big @ (big.T + 1))


def test_a_float32_result_of_float16_operands_is_not_rounded() -> None:
    a = np.array([[1.0, 2.0**-11]], np.float16)
    (found,) = apply(
        Dot(DTYPES["float32"]), tensor("float16", 1, 2), tensor("float16", 2), feeds=[a, np.ones(2, np.float16)]
    )
    assert float(found[0]) == 1.0 + 2.0**-11


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        (tensor("float32", 2, 3), tensor("float32", 4, 5), r"\[2, 3\] and \[4, 5\] do not fit"),
        (tensor("float32", 2, 3), tensor("float64", 3, 5), "float32 and float64"),
        (tensor("float32"), tensor("float32", 3, 5), "rank 1 or more"),
        (tensor("bool", 2, 3), tensor("bool", 3, 5), "bool"),
        (tensor("float32", 2, 2, 3), tensor("float32", 3, 3, 5), "2 and 3 do not broadcast"),
    ],
)
def test_contradictions_are_named(left: Any, right: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        infer(Dot(), left, right)
