"""The rules about sequences against their evaluation: random programs that make sequences and take them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from argosy.errors import ArgosyError
from argosy.ir import Builder, Literal, Module, Value
from argosy.ir.dim import Symbol, symbol_dim
from argosy.ir.dtype import FLOAT32
from argosy.ir.interpreter import Interpreter
from argosy.ir.op import Env
from argosy.ir.types import SequenceType, TensorType
from argosy.ir.validate import validate
from argosy.ops import sequence as ops
from argosy.rewrite import Trace, rewrite
from argosy.rewrite.rules import sequences

SHAPE = (5, 2, 3)


def ints(build: Builder, values: Any) -> Value:
    return build.constant(Literal.of(np.array(values, np.int64)))


def position(build: Builder, random: Random, count: int) -> Value:
    return ints(build, random.randrange(-count, count))


def chain(random: Random) -> tuple[Module, list[Any]]:
    """A module that makes one sequence in several steps, then asks it something."""
    build = Builder()
    source = build.parameter("x", TensorType(FLOAT32, SHAPE))
    arguments = [np.arange(30, dtype=np.float32).reshape(SHAPE)]
    axis = random.randrange(-3, 3)
    size = SHAPE[axis]
    kind = random.choice(("made", "singly", "equally", "sizes"))
    if kind == "made":
        made = [build.pointwise("neg", source) for _ in range(random.randint(0, 3))]
        element = None if made else TensorType(FLOAT32, None)
        value, count = build.add(ops.SequenceConstruct(element), *made), len(made)
    elif kind == "singly":
        value, count = build.add(ops.SequenceSplit(axis, keep_dims=bool(random.getrandbits(1))), source), size
    elif kind == "equally":
        each = random.randint(1, size + 1)
        value, count = build.add(ops.SequenceSplit(axis), source, ints(build, each)), -(-size // each)
    else:
        cut = random.randint(0, size)
        value, count = build.add(ops.SequenceSplit(axis), source, ints(build, [cut, 0, size - cut])), 3
    for _ in range(random.randint(0, 4)):
        if random.random() < 0.6:
            put = build.parameter(f"x{len(arguments)}", TensorType(FLOAT32, SHAPE))
            arguments.append(np.full(SHAPE, len(arguments), np.float32))
            given = [position(build, random, count + 1)] if random.random() < 0.7 and count else []
            if given and given[0].known is not None and given[0].known < -count:
                given = []
            value, count = build.add(ops.SequenceInsert(), value, put, *given), count + 1
        elif count:
            given = [position(build, random, count)] if random.random() < 0.7 else []
            value, count = build.add(ops.SequenceErase(), value, *given), count - 1
    asked = random.choice(("at", "length", "join", "stack"))
    if asked == "at":
        result = build.add(ops.SequenceAt(), value, position(build, random, max(count, 1)))
    elif asked == "length":
        result = build.add(ops.SequenceLength(), value)
    else:
        result = build.add(ops.SequenceConcat(random.randrange(-3, 3), new_axis=asked == "stack"), value)
    return build.module({"y": result}), arguments


def test_chains_keep_their_values() -> None:
    fired: Counter[str] = Counter()
    for seed in range(1500):
        try:
            module, arguments = chain(Random(seed))
        except ArgosyError:
            continue  # the chain has no meaning
        trace = Trace()
        after = rewrite(module, sequences.RULES, trace=trace)
        validate(after)
        try:
            (expected,) = Interpreter(module).run(arguments, Env())
        except ArgosyError:
            assert not trace.fired, f"seed {seed}: an error is gone"
            continue
        (found,) = Interpreter(after).run(arguments, Env())
        np.testing.assert_array_equal(found, expected, strict=True)
        fired.update(event.rule for event in trace.fired)
        if trace.fired:
            assert not any(isinstance(kind, SequenceType) for each in after.walk() for kind in each.types)
    assert set(fired) == {"element_at", "length_of_elements", "concat_of_elements"}
    assert min(fired.values()) > 100


Make = Callable[[Builder, Value], Value]

DECLINED: dict[str, tuple[Make, str]] = {
    "from elsewhere": (
        lambda build, _x: build.add(
            ops.SequenceLength(), build.parameter("s", SequenceType(TensorType(FLOAT32, (2,))))
        ),
        "the sequence comes from elsewhere",
    ),
    "outside": (
        lambda build, x: build.add(ops.SequenceAt(), build.add(ops.SequenceConstruct(), x), ints(build, 1)),
        "a position is outside the sequence",
    ),
    "empty": (
        lambda build, _x: build.add(
            ops.SequenceLength(),
            build.add(ops.SequenceErase(), build.add(ops.SequenceConstruct(TensorType(FLOAT32, (2,))))),
        ),
        "an element is taken out of an empty sequence",
    ),
    "unknown position": (
        lambda build, x: build.add(
            ops.SequenceLength(),
            build.add(
                ops.SequenceErase(), build.add(ops.SequenceConstruct(), x), build.tensor_parameter("i", "int64", ())
            ),
        ),
        "a position is not known",
    ),
    "wrong sizes": (
        lambda build, x: build.add(ops.SequenceLength(), build.add(ops.SequenceSplit(1), x, ints(build, [1, 2]))),
        "the sizes don't add up to that of the axis",
    ),
    "no size": (
        lambda build, x: build.add(ops.SequenceLength(), build.add(ops.SequenceSplit(1), x, ints(build, -1))),
        "the size of the pieces is not positive",
    ),
    "unknown sizes": (
        lambda build, x: build.add(
            ops.SequenceLength(),
            build.add(ops.SequenceSplit(1), x, build.tensor_parameter("sizes", "int64", (2,))),
        ),
        "the sizes are not known",
    ),
    "symbolic axis": (
        lambda build, x: build.add(ops.SequenceLength(), build.add(ops.SequenceSplit(0), x)),
        "the size of the axis is not known",
    ),
    "nothing to join": (
        lambda build, _x: build.add(ops.SequenceConcat(0), build.add(ops.SequenceConstruct(TensorType(FLOAT32, (2,))))),
        "there are no elements, or ones of unknown rank",
    ),
    "other shapes": (
        lambda build, x: build.add(
            ops.SequenceConcat(0), build.add(ops.SequenceConstruct(), x, build.tensor_parameter("z", "float32", (2, 4)))
        ),
        "the elements have other shapes",
    ),
}


@pytest.mark.parametrize("what", DECLINED)
def test_what_a_run_must_tell_is_left_to_it(what: str) -> None:
    make, why = DECLINED[what]
    build = Builder()
    module = build.module({"y": make(build, build.parameter("x", TensorType(FLOAT32, (symbol_dim(Symbol("N")), 5))))})
    trace = Trace()
    assert rewrite(module, sequences.RULES, trace=trace) is module
    assert [event.reason for event in trace.declined] == [why]


def test_optionals_made_here() -> None:
    build = Builder()
    x = build.parameter("x", TensorType(FLOAT32, (2,)))
    made, absent = build.add(ops.MakeOptional(), x), build.add(ops.MakeOptional(x.type))
    there = [build.add(ops.OptionalHasElement(), value) for value in (made, absent)]
    module = build.module({"y": build.add(ops.OptionalGetElement(), made), "yes": there[0], "no": there[1]})
    after = rewrite(module, sequences.RULES)
    assert after.results[0] == after.parameters[0].result()
    assert [bool(value.known) for value in after.results[1:]] == [True, False]
    assert len(after.instructions) == 2
