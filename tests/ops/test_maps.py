"""Maps: the order of entries, types, sizes that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.errors import ModelError
from argosy.ir import MapType, SequenceType
from argosy.ir.dtype import FLOAT32, INT64, STRING
from argosy.ops.maps import MapConstruct, MapEntries
from tests.ops.agreement import infer, tensor

NUMBERS = MapType(INT64, tensor("float32"))


def test_entries_come_in_the_order_of_their_keys() -> None:
    keys, values = MapEntries(INT64, FLOAT32).evaluate({3: np.float32(1), -1: np.float32(2), 0: np.float32(3)})
    assert (keys.dtype, values.dtype) == (np.int64, np.float32)
    assert (keys.tolist(), values.tolist()) == ([-1, 0, 3], [2, 3, 1])
    texts = MapEntries(STRING, STRING).evaluate({"b": "x", "B": "y"})
    assert [part.tolist() for part in texts] == [["B", "b"], ["y", "x"]]
    assert [part.dtype for part in MapEntries(STRING, FLOAT32).evaluate({})] == [object, np.float32]


def test_types_of_entries() -> None:
    keys, values = infer(MapEntries(INT64, FLOAT32), NUMBERS)
    assert (str(keys), str(values)) == (
        "int64[map_entries_entries0]",
        "float32[map_entries_entries0]",
    )


@pytest.mark.parametrize(
    ("op", "kind", "message"),
    [
        (
            MapEntries(STRING, FLOAT32),
            NUMBERS,
            r"found map\(int64, float32\[\]\), expected a map from string to float32",
        ),
        (MapEntries(INT64, FLOAT32), tensor("float32", 2), r"found float32\[2\], expected a map"),
        (MapEntries(INT64, FLOAT32), MapType(INT64, tensor("float32", 2)), "expected a map from int64 to float32"),
        (MapEntries(STRING, FLOAT32, 3), MapType(STRING, tensor("float32")), "the keys are string, expected integers"),
    ],
)
def test_maps_that_have_no_such_entries(op: MapEntries, kind: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        infer(op, kind)


def test_keys_beyond_the_limit() -> None:
    limited = MapEntries(INT64, FLOAT32, 3)
    assert limited.evaluate({2: np.float32(1)})[0].tolist() == [2]
    for key in (3, -1):
        with pytest.raises(ModelError, match=f"keys from {key} to {key}, expected 0 to 2"):
            limited.evaluate({key: np.float32(1)})


def test_a_map_for_each_row() -> None:
    (kind,) = infer(MapConstruct(), np.array(["a", "b"], object), tensor("float32", "n", 2))
    assert kind == SequenceType(MapType(STRING, tensor("float32")))
    (found,) = MapConstruct().evaluate(np.array(["a", "b"], object), np.array([[1, 2], [3, 4]], np.float32))
    assert found == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    assert {type(value) for value in found[0].values()} == {np.float32}
    assert MapConstruct().evaluate(np.array([5, 5]), np.array([1, 2], np.float32)) == ([{5: 2}],)
    assert MapConstruct().evaluate(np.array([5, 6]), np.zeros((0, 2), np.float32)) == ([],)
    with pytest.raises(ModelError, match="2 keys are given for 3 values in a row"):
        infer(MapConstruct(), np.array([1, 2]), tensor("float32", "n", 3))
    with pytest.raises(ModelError, match=r"expected \[n\] and \[rows, n\]"):
        infer(MapConstruct(), np.array([1, 2]), tensor("float32", 1, "n", 2))
