"""Every pass lets values through that are no tensors of known rank: maps, sequences, optionals, strings, no rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.ir import Builder, Env, MapType, Module, OptionalType, SequenceType, TensorType
from argosy.ir.dtype import FLOAT32, INT64, STRING
from argosy.ir.interpreter import Interpreter
from argosy.ir.validate import validate
from argosy.ops.maps import MapConstruct, MapEntries
from argosy.ops.sequence import MakeOptional, OptionalGetElement, SequenceAt, SequenceConstruct, SequenceInsert
from argosy.ops.strings import FormatNumbers, MapLabels
from argosy.passes.manager import PassManager, Phase, make_pass, pass_names


def program() -> Module:
    """Each kind of value as a parameter, as an operand and as a result."""
    build = Builder()
    scalars = TensorType(FLOAT32, ())
    table = build.parameter("table", MapType(STRING, scalars))
    pieces = build.parameter("pieces", SequenceType(TensorType(FLOAT32, None)))
    perhaps = build.parameter("perhaps", OptionalType(TensorType(FLOAT32, (2,))))
    free = build.parameter("free", TensorType(FLOAT32, None))
    words = build.parameter("words", TensorType(STRING, (2,)))
    keys, values = build.add_all(MapEntries(STRING, FLOAT32), table)
    labels = build.add(MapLabels(), words, keys, values, build.constant(np.float32(-1)))
    given = build.add(OptionalGetElement(), perhaps)
    first = build.add(SequenceAt(), pieces, build.constant(0, INT64))
    total = build.pointwise("add", build.pointwise("add", labels, given), build.pointwise("neg", free))
    longer = build.add(SequenceInsert(), pieces, first)
    again = build.add(SequenceConstruct(), total, first)
    return build.module(
        {
            "labels": labels,
            "total": total,
            "longer": longer,
            "again": again,
            "perhaps": build.add(MakeOptional(), total),
            "texts": build.add(FormatNumbers(), total),
            "maps": build.add(MapConstruct(), words, total),
        }
    )


ARGUMENTS: list[Any] = [
    {"b": np.float32(2), "a": np.float32(1)},
    [np.array([5], np.float32)],
    np.array([1, 2], np.float32),
    np.array([0.5, 0.25], np.float32),
    np.array(["a", "c"], object),
]


@pytest.mark.parametrize("name", pass_names())
def test_every_pass_lets_them_through(name: str) -> None:
    module = program()
    after = PassManager((Phase("one", (make_pass(name),)),)).run(module)
    validate(after)
    before, found = (Interpreter(one).run(list(ARGUMENTS), Env()) for one in (module, after))
    assert str(before) == str(found)
