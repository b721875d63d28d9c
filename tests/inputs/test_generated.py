"""Generated inputs: repeatable, within their ranges, of every element type."""

from __future__ import annotations

import numpy as np
import pytest

from argosy.errors import UsageError
from argosy.inputs import generate
from argosy.ir.dtype import DTYPES, STRING, DType, dtype
from argosy.ir.types import MapType, OptionalType, SequenceType, TensorType

SHAPE = (40, 5)


def tensor(element: DType) -> TensorType:
    return TensorType(element, SHAPE)


@pytest.mark.parametrize("element", DTYPES.values(), ids=str)
def test_values_have_the_type_and_repeat(element: DType) -> None:
    one, again = (generate("x", tensor(element), SHAPE, seed=3) for _ in range(2))
    assert one.dtype == element.numpy
    assert one.shape == SHAPE
    assert one.tolist() == again.tolist()
    other_name = generate("y", tensor(element), SHAPE, seed=3)
    other_seed = generate("x", tensor(element), SHAPE, seed=4)
    assert one.tolist() != other_name.tolist()
    assert one.tolist() != other_seed.tolist()


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16"])
def test_floats_fill_their_range(name: str) -> None:
    values = generate("x", tensor(dtype(name)), (1000,)).astype(np.float64)
    assert values.min() >= -1
    assert values.max() <= 1
    assert values.min() < -0.9
    assert values.max() > 0.9
    bounded = generate("x", tensor(dtype(name)), (1000,), bounds=(2, 3)).astype(np.float64)
    assert bounded.min() >= 2
    assert bounded.max() <= 3


@pytest.mark.parametrize("name", ["int64", "int8", "uint8", "int4", "uint4", "uint64"])
def test_integers_are_0_or_1_unless_a_range_is_given(name: str) -> None:
    assert set(generate("x", tensor(dtype(name)), (100,)).astype(np.int64).tolist()) == {0, 1}
    bounded = generate("x", tensor(dtype(name)), (300,), bounds=(0, 5)).astype(np.int64)
    assert set(bounded.tolist()) == {0, 1, 2, 3, 4, 5}


def test_the_whole_range_of_an_integer_type_can_be_asked_for() -> None:
    top = (1 << 64) - 1
    assert generate("x", tensor(dtype("uint64")), (4,), bounds=(0, float(1 << 63))).dtype == np.uint64
    assert generate("x", tensor(dtype("int8")), (500,), bounds=(-128, 127)).min() < -100
    with pytest.raises(UsageError, match="does not fit uint64"):
        generate("x", tensor(dtype("uint64")), (4,), bounds=(-1, top))


@pytest.mark.parametrize(("name", "bounds"), [("int8", (0, 128)), ("uint8", (-1, 1)), ("int32", (0.5, 2))])
def test_ranges_that_do_not_fit_are_refused(name: str, bounds: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="does not fit"):
        generate("x", tensor(dtype(name)), SHAPE, bounds=bounds)


def test_fills() -> None:
    assert generate("x", tensor(dtype("float32")), (2,), fill=1).tolist() == [1.0, 1.0]
    assert generate("x", tensor(dtype("bool")), (2,), fill=0).tolist() == [False, False]
    assert generate("x", tensor(dtype("int4")), (2,), fill=1).astype(int).tolist() == [1, 1]


def test_strings_sequences_and_optionals() -> None:
    assert all(isinstance(text, str) for text in generate("x", tensor(STRING), (3,)))
    items = generate("x", SequenceType(tensor(dtype("float32"))), SHAPE)
    assert [item.shape for item in items] == [SHAPE, SHAPE]
    assert not np.array_equal(items[0], items[1])
    assert generate("x", OptionalType(tensor(dtype("int64"))), SHAPE).shape == SHAPE
    with pytest.raises(UsageError, match="can't be generated") as caught:
        generate("x", MapType(dtype("int64"), tensor(dtype("float32"))), ())
    assert "give --input x=FILE.npz that holds x.keys and x.values" in caught.value.hint
