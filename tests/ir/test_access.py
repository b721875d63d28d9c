"""Access maps: what they simplify to, with numbers and with symbols."""

from __future__ import annotations

import numpy as np
import pytest

from argosy.errors import InternalError
from argosy.ir import Symbol, access, symbol_dim
from argosy.ir.access import Access, axis_index
from argosy.ir.types import Dims

N, S = symbol_dim(Symbol("N")), symbol_dim(Symbol("S"))


def test_transposes_cancel() -> None:
    there = access.transpose((2, N, 4), (2, 0, 1))
    back = access.transpose(there.extents, (1, 2, 0))
    assert back.compose(there).is_identity
    assert not there.is_identity


@pytest.mark.parametrize(
    ("source", "between"),
    [
        ((6, 4), (24,)),
        ((N, S, 768), (N, S, 12, 64)),
        ((N, S), (N * S,)),
        ((N, 3, 8), (N, 24)),
        ((N, 1, S), (1, N, S)),
        ((N, S, 64), (N * S, 64)),
    ],
)
def test_reshape_there_and_back_is_the_identity(source: Dims, between: Dims) -> None:
    there, back = access.reshape(source, between), access.reshape(between, source)
    assert back.compose(there).is_identity


def test_split_heads_needs_no_division() -> None:
    heads = access.reshape((N, S, 768), (N, S, 12, 64))
    moved = access.transpose(heads.extents, (0, 2, 1, 3)).compose(heads)
    batch, head, place, element = (axis_index(axis, extent) for axis, extent in enumerate(moved.extents))
    assert moved.indices == (batch, place, 64 * head + element)


def test_merged_heads_divide_by_their_size_only() -> None:
    merged = access.reshape((N, S, 12, 64), (N, S, 768))
    assert merged.indices[:2] == (axis_index(0, N), axis_index(1, S))
    source = np.arange(2 * 3 * 768, dtype=np.int32).reshape(2, 3, 12, 64)
    np.testing.assert_array_equal(merged.apply(source, {"N": 2, "S": 3}), source.reshape(2, 3, 768))


def test_padding_adds_the_conditions_that_can_fail() -> None:
    padded = access.pad((3, 4), (5, 4), (1, 0))
    assert [condition.upper for condition in padded.conditions] == [3]
    inside = access.slice_by((5, 4), (3, 4), (1, 0), (1, 1))
    assert inside.compose(padded).is_identity, "a slice of the middle never sees the padding"


def test_padding_is_filled() -> None:
    padded = access.pad((2,), (5,), (1,))
    np.testing.assert_array_equal(padded.apply(np.array([7, 8]), fill=9), [9, 7, 8, 9, 9])


def test_a_symbolic_axis_that_may_be_1_has_no_broadcast_map() -> None:
    assert access.broadcast((N,), (S,)) is None
    repeated = access.broadcast((N, 1), (3, N, S))
    assert repeated is not None
    assert repeated.indices == (axis_index(1, N), 0)


def test_maps_must_fit() -> None:
    with pytest.raises(InternalError, match="composed"):
        access.identity((3,)).compose(access.identity((4,)))
    with pytest.raises(InternalError, match="rank"):
        Access((3,), (3,), ())
