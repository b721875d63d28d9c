"""Sequences and optionals: what is known of elements, positions, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.errors import ModelError
from argosy.ir import Builder, Env, OptionalType, SequenceType, Value
from argosy.ir.interpreter import run_module
from argosy.ir.op import Op
from argosy.ops.sequence import (
    MakeOptional,
    OptionalGetElement,
    OptionalHasElement,
    SequenceAt,
    SequenceConcat,
    SequenceConstruct,
    SequenceErase,
    SequenceInsert,
    SequenceLength,
    SequenceSplit,
)
from tests.ops.agreement import apply, infer, tensor

A, B = np.ones((1, 2), np.float32), np.zeros((3, 2), np.float32)


def build(*steps: Op) -> tuple[Value, Any]:
    """Two tensors through SequenceConstruct and then each step; the last value and its result."""
    builder = Builder()
    x, y = builder.tensor_parameter("x", "float32", ("n", 2)), builder.tensor_parameter("y", "float32", ("m", 2))
    value = builder.add(SequenceConstruct(), x, y)
    for step in steps:
        value = builder.add(step, value)
    module = builder.module([("result", value)])
    return value, run_module(module, [A, B], Env())[0]


def test_elements_share_what_is_certain_of_all() -> None:
    value, result = build()
    assert isinstance(value.type, SequenceType)
    assert str(value.type).endswith(", 2])")
    assert [part.shape for part in result] == [(1, 2), (3, 2)]


def test_an_element_gets_dims_of_its_own() -> None:
    sequence = SequenceType(tensor("float32", "n", 2))
    first, second = infer(SequenceAt(), sequence, np.array(0)), infer(SequenceAt(), sequence, np.array(1))
    assert str(first[0]) == "float32[sequence_at_0_0, 2]"
    assert str(second[0]) != "float32[n, 2]"


@pytest.mark.parametrize(("position", "expected"), [(0, [9, 1, 2]), (2, [1, 2, 9]), (-1, [1, 9, 2]), (None, [1, 2, 9])])
def test_insert(position: int | None, expected: list[int]) -> None:
    sequence = [np.array(1), np.array(2)]
    given = (sequence, np.array(9)) if position is None else (sequence, np.array(9), np.array(position))
    assert SequenceInsert().evaluate(*given)[0] == expected
    assert sequence == [1, 2]


@pytest.mark.parametrize(("position", "expected"), [(0, [2]), (-1, [1]), (None, [1])])
def test_erase(position: int | None, expected: list[int]) -> None:
    given: tuple[Any, ...] = ([np.array(1), np.array(2)], *(() if position is None else (np.array(position),)))
    assert SequenceErase().evaluate(*given)[0] == expected


@pytest.mark.parametrize("op", [SequenceAt(), SequenceErase()])
@pytest.mark.parametrize("position", [2, -3])
def test_positions_outside(op: Op, position: int) -> None:
    with pytest.raises(ModelError, match=f"the position {position} is outside a sequence of 2 elements"):
        op.evaluate([np.array(1), np.array(2)], np.array(position))


def test_length_and_concat() -> None:
    assert build(SequenceLength())[1] == 2
    value, result = build(SequenceConcat(0))
    assert str(value.type) == "float32[sequence_concat_joined0, 2]"
    np.testing.assert_array_equal(result, np.concatenate([A, B]))
    with pytest.raises(ModelError, match=r"tensors of the shapes \[1, 2\], \[3, 2\] can't be joined along axis 0"):
        SequenceConcat(0, new_axis=True).evaluate([A, B])
    with pytest.raises(ModelError, match="an empty sequence can't be concatenated"):
        SequenceConcat(0).evaluate([])


def test_stacking_puts_in_an_axis() -> None:
    (kind,) = infer(SequenceConcat(-1, new_axis=True), SequenceType(tensor("int8", 4, "n")))
    assert str(kind) == "int8[4, sequence_concat_1_0, sequence_concat_joined0]"
    assert SequenceConcat(-1, new_axis=True).evaluate([np.zeros((4, 3))] * 2)[0].shape == (4, 3, 2)


@pytest.mark.parametrize(
    ("op", "sizes", "expected", "kind"),
    [
        (SequenceSplit(0), None, [(1, 3)] * 5, "sequence(int64[1, 3])"),
        (SequenceSplit(0, keep_dims=False), None, [(3,)] * 5, "sequence(int64[3])"),
        (SequenceSplit(0), np.array(2), [(2, 3), (2, 3), (1, 3)], "sequence(int64[sequence_split_piece0, 3])"),
        (SequenceSplit(0), np.array([1, 4]), [(1, 3), (4, 3)], "sequence(int64[sequence_split_piece0, 3])"),
        (SequenceSplit(-1, keep_dims=False), np.array(3), [(5, 3)], "sequence(int64[n, 3])"),
    ],
)
def test_split(op: Op, sizes: Any, expected: list[tuple[int, ...]], kind: str) -> None:
    x = np.arange(15).reshape(5, 3)
    operands = (tensor("int64", "n", 3),) if sizes is None else (tensor("int64", "n", 3), sizes)
    assert [str(found) for found in infer(op, *operands)] == [kind]
    (pieces,) = apply(op, *operands, feeds=[x])
    assert [piece.shape for piece in pieces] == expected


def test_split_sizes_that_do_not_add_up() -> None:
    with pytest.raises(ModelError, match=r"the sizes \[1, 2\] do not add up to the dim 5 of axis 0"):
        SequenceSplit(0).evaluate(np.zeros(5), np.array([1, 2]))


def test_optionals() -> None:
    held = OptionalType(tensor("float32", "n"))
    assert infer(MakeOptional(), tensor("float32", "n")) == (held,)
    assert infer(MakeOptional(tensor("float32", "n"))) == (held,)
    assert str(infer(OptionalGetElement(), held)[0]) == "float32[optional_get_element_0_0]"
    assert infer(OptionalGetElement(), tensor("float32", "n")) == (tensor("float32", "n"),)
    assert OptionalHasElement().evaluate(None)[0] == np.array(False)
    assert OptionalHasElement().evaluate()[0] == np.array(False)
    assert OptionalHasElement().evaluate([])[0] == np.array(True)  # an empty sequence is there
    with pytest.raises(ModelError, match="an element is taken from an absent optional"):
        OptionalGetElement().evaluate(None)


def test_what_is_no_sequence() -> None:
    with pytest.raises(ModelError, match=r"found float32\[2\], expected a sequence"):
        infer(SequenceLength(), tensor("float32", 2))
    with pytest.raises(ModelError, match=r"a sequence would hold float32\[2\] and int8\[2\]"):
        infer(SequenceConstruct(), tensor("float32", 2), tensor("int8", 2))
