"""Generators of the ops on values that are no numeric tensors (strings, sequences, optionals), and of control ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from argosy.ir import Builder, Module, TensorType, Value
from argosy.ir.dim import DimLike
from argosy.ir.dtype import BOOL, DTYPES, INT64, DType
from argosy.ir.types import SequenceType
from tests.properties.generators.elements import NUMBERS
from tests.properties.generators.views import ANY
from tests.properties.sample import Binding, Draw, Fill, Made, Operand, Sample, op

__all__ = ["GENERATORS"]


def texts(*choices: str) -> Fill:
    """Strings out of the choices."""

    def fill(rng: np.random.Generator, shape: tuple[int, ...], _binding: Binding) -> Any:
        return rng.choice(np.array(choices, object), shape)

    return fill


# ---- strings


def string_concat(draw: Draw) -> Sample:
    shape = draw.shape(draw.one(0, 1, 2))
    other = [1 if draw.flag(0.3) else dim for dim in shape]
    return draw.sample(op("string_concat"), draw.tensor("string", shape), draw.tensor("string", other))


def string_normalize(draw: Draw) -> Sample:
    shape = [draw.size()] if draw.flag() else [1, draw.size()]
    x = draw.tensor("string", shape, texts("a", "B", "the"))
    words = draw.one((), ("the",), ("a", "B", "the"))
    made = op(
        "string_normalize", stopwords=words, case_change=draw.one("NONE", "LOWER", "UPPER"), case_sensitive=draw.flag()
    )
    return draw.sample(made, x)


def string_split(draw: Draw) -> Sample:
    made = op("string_split", delimiter=draw.one("", ",", " "), most=draw.one(None, 0, 1))
    return draw.sample(made, draw.tensor("string", draw.shape(draw.one(0, 1, 2)), texts("a b,c", "", " d ", "e")))


def regex_match(draw: Draw) -> Sample:
    x = draw.tensor("string", draw.shape(draw.one(0, 1, 2)))
    return draw.sample(op("regex_match", pattern=draw.one("[a-z]+", "", ".*")), x)


def format_numbers(draw: Draw) -> Sample:
    return draw.sample(op("format_numbers"), draw.tensor(draw.dtype(*NUMBERS, "bool"), draw.shape(draw.one(0, 1, 2))))


def parse_numbers(draw: Draw) -> Sample:
    x = draw.tensor("string", draw.shape(draw.one(0, 1, 2)), texts("1", "2.5", "3e1"))
    return draw.sample(op("parse_numbers", dtype=draw.dtype("float32", "float64", "int64", "int32")), x)


def map_labels(draw: Draw) -> Sample:
    key, value = draw.one("int64", "float32", "string"), draw.one("int64", "float32", "string")
    count = (draw.one(0, 1, 3),)
    x = draw.tensor(key, draw.shape(draw.one(0, 1, 2)))
    return draw.sample(op("map_labels"), x, draw.tensor(key, count), draw.tensor(value, count), draw.tensor(value, ()))


def count_ngrams(draw: Draw) -> Sample:
    tokens = draw.one("int64", "int32", "string")
    shape = draw.shape(draw.one(1, 2))
    pool = draw.tensor("string" if tokens == "string" else "int64", [4])
    columns = draw.numbers(0, 1, draw.one(2, 4))
    weights = draw.tensor("float32", [3]) if draw.flag() else None
    made = op(
        "count_ngrams", mode=draw.one("TF", "IDF", "TFIDF"), starts=(0, 2), shortest=1, longest=2, skips=draw.one(0, 1)
    )
    return draw.sample(made, draw.tensor(tokens, shape), pool, columns, weights)


def tree_ensemble(draw: Draw) -> Sample:
    """One tree: a branch on feature 0 at 0.5, and two leaves."""

    def column(kind: str, *values: float) -> Operand:
        return Operand(DTYPES[kind], (len(values),), lambda _rng, _shape, _binding: np.array(values), draw.flag(0.8))

    made = op(
        "tree_ensemble", aggregate=draw.one("sum", "average", "min", "max"), targets=draw.one(1, 2), depth=1,
        dtype=draw.dtype("float32", "float64"), columns=draw.one(0, 1),
    )  # fmt: skip
    nodes = [
        column("int64", 0, 0, 0), column("float32", 0.5, 0, 0), column("uint8", 0, 255, 255), column("int64", 1, 1, 2),
        column("int64", 2, 1, 2), column("bool", 0, 0, 0), column("int64", 0), column("int64", 0, 0, 1, 2),
        column("int64", 0, 0), column("float32", 1.5, -2.0),
    ]  # fmt: skip
    return draw.sample(made, draw.tensor(draw.one("float32", "float64", "int64"), [draw.size(), draw.size(1)]), *nodes)


# ---- maps


def map_construct(draw: Draw) -> Sample:
    count = draw.size()
    keys, values = draw.one("int64", "string"), draw.tensor(draw.one("float32", "int64"), (*draw.shape(1), count))
    return draw.sample(op("map_construct"), draw.tensor(keys, (count,)), values)


def map_entries(draw: Draw) -> Sample:
    key, value = draw.dtype("int64", "string"), draw.dtype("float32", "float64", "int64", "string")
    count = draw.size()

    def fill(_rng: np.random.Generator, shape: tuple[int, ...], _binding: Binding) -> Any:
        numbers = np.arange(shape[0])[::-1]
        return numbers.astype(str).astype(object) if key.name == "string" else numbers

    maps = Made(op("map_construct"), (draw.tensor(key, (count,), fill), draw.tensor(value, (1, count))))
    one = Made(op("sequence_at"), (maps, draw.numbers(0, scalar=True)))
    limit = draw.one(None, 5) if key.name == "int64" else None
    return draw.sample(op("map_entries", key=key, value=value, limit=limit), one)


# ---- sequences and optionals


def _sequence(draw: Draw, least: int = 1, kind: DType | None = None) -> Made:
    kind = kind or draw.dtype(*ANY)
    shape = draw.shape(draw.one(1, 2))
    parts = [
        draw.tensor(kind, shape if draw.flag() else draw.shape(len(shape)))
        for _ in range(draw.one(least, least + 1, 3))
    ]
    return Made(op("sequence_construct", element=None if parts else TensorType(kind, None)), tuple(parts))


def sequence_construct(draw: Draw) -> Sample:
    made = _sequence(draw, 0)
    return draw.sample(made.by, *made.parts)


def sequence_at(draw: Draw) -> Sample:
    sequence = _sequence(draw)
    return draw.sample(op("sequence_at"), sequence, draw.numbers(draw.one(0, -1), scalar=True))


def sequence_insert(draw: Draw) -> Sample:
    kind = draw.dtype(*ANY)
    value = draw.tensor(kind, draw.shape(draw.one(0, 1, 2)))
    place = draw.one(None, draw.numbers(draw.one(0, 1, -1), scalar=True))
    return draw.sample(op("sequence_insert"), _sequence(draw, 1, kind), value, place)


def sequence_erase(draw: Draw) -> Sample:
    return draw.sample(op("sequence_erase"), _sequence(draw), draw.one(None, draw.numbers(0, scalar=True)))


def sequence_length(draw: Draw) -> Sample:
    return draw.sample(op("sequence_length"), _sequence(draw, 0))


def sequence_concat(draw: Draw) -> Sample:
    new_axis = draw.flag()
    shape = draw.shape(draw.one(1, 2))
    axis = draw.rng.randrange(len(shape) + new_axis)
    kind = draw.dtype(*ANY)
    parts = tuple(
        draw.tensor(kind, [draw.size() if place == axis and not new_axis else dim for place, dim in enumerate(shape)])
        for _ in range(draw.one(1, 2))
    )
    return draw.sample(op("sequence_concat", axis=axis, new_axis=new_axis), Made(op("sequence_construct"), parts))


def sequence_split(draw: Draw) -> Sample:
    sizes = draw.shape(draw.one(1, 2))
    total: DimLike = 0
    for size in sizes:
        total = total + size
    way = draw.one("each", "sizes", "even")
    x = draw.tensor(draw.dtype(*ANY), [total, *draw.shape(draw.one(0, 1))])
    made = op("sequence_split", axis=0, keep_dims=draw.flag())
    if way == "each":
        return draw.sample(made, x)
    return draw.sample(made, x, draw.numbers(*sizes) if way == "sizes" else draw.numbers(2, scalar=True))


def optional(draw: Draw) -> Sample:
    if draw.flag(0.2):
        return draw.sample(op("optional", element=TensorType(draw.dtype(*ANY), draw.one(None, (2,)))))
    return draw.sample(op("optional"), draw.tensor(draw.dtype(*ANY), draw.shape(draw.one(0, 1, 2))))


def _optional(draw: Draw) -> Made:
    return Made(op("optional"), (draw.one(draw.tensor(draw.dtype(*ANY), draw.shape(1)), _sequence(draw)),))


def optional_has_element(draw: Draw) -> Sample:
    absent = Made(op("optional", element=SequenceType(TensorType(INT64, None))), ())
    return draw.sample(op("optional_has_element"), draw.one(None, absent, _optional(draw), draw.tensor("int64", (2,))))


def optional_get_element(draw: Draw) -> Sample:
    return draw.sample(op("optional_get_element"), draw.one(_optional(draw), draw.tensor("int64", draw.shape(1))))


# ---- modules


def _module(kinds: Sequence[TensorType], build: Callable[[Builder, list[Value]], list[Value]]) -> Module:
    builder = Builder("body")
    parameters = [builder.parameter(f"p{index}", kind) for index, kind in enumerate(kinds)]
    return builder.module([(f"r{index}", value) for index, value in enumerate(build(builder, parameters))])


def _kind(operand: Operand) -> TensorType:
    return TensorType(operand.dtype, operand.dims)


def if_(draw: Draw) -> Sample:
    x = draw.tensor("float32", draw.shape(draw.one(1, 2)))
    longer = draw.flag()
    then_branch = _module([_kind(x)], lambda b, p: [b.add(op("concat", axis=0), p[0], p[0]) if longer else p[0]])
    else_branch = _module([_kind(x)], lambda b, p: [b.pointwise("neg", p[0])])
    return draw.sample(op("if", then_branch=then_branch, else_branch=else_branch), draw.tensor("bool", ()), x, x)


def loop(draw: Draw) -> Sample:
    carried, captured = draw.tensor("float32", draw.shape(1)), draw.tensor("int64", draw.shape(1))
    kinds = [TensorType(INT64, ()), TensorType(BOOL, ()), _kind(carried), _kind(captured)]
    body = _module(kinds, lambda b, p: [p[1], b.pointwise("neg", p[2]), p[2], p[3], p[0]])
    trips = draw.numbers(draw.size(), scalar=True)
    condition = draw.one(None, draw.tensor("bool", ()))
    return draw.sample(op("loop", body=body, carried=1), trips, condition, carried, captured)


def scan(draw: Draw) -> Sample:
    state = draw.tensor("float32", draw.shape(1))
    shape = draw.shape(2)
    axis = draw.one(0, 1)
    element = TensorType(DTYPES["float32"], shape[:axis] + shape[axis + 1 :])
    body = _module([_kind(state), element], lambda b, p: [b.pointwise("neg", p[0]), p[1], p[0]])
    made = op(
        "scan", body=body, states=1, input_axes=(axis,), input_reversed=(draw.flag(),),
        output_axes=(draw.one(0, 1), draw.one(0, -1)), output_reversed=(draw.flag(), False),
    )  # fmt: skip
    return draw.sample(made, state, draw.tensor("float32", shape))


def fused(draw: Draw) -> Sample:
    x = draw.tensor("float32", draw.shape(draw.one(1, 2)))
    module = _module([_kind(x)], lambda b, p: [b.pointwise("exp", b.pointwise("neg", p[0]))])
    return draw.sample(op("fused", module=module), x)


GENERATORS: dict[str, Callable[[Draw], Sample]] = {
    "string_concat": string_concat,
    "string_normalize": string_normalize,
    "string_split": string_split,
    "regex_match": regex_match,
    "format_numbers": format_numbers,
    "parse_numbers": parse_numbers,
    "map_labels": map_labels,
    "map_construct": map_construct,
    "map_entries": map_entries,
    "count_ngrams": count_ngrams,
    "tree_ensemble": tree_ensemble,
    "sequence_construct": sequence_construct,
    "sequence_at": sequence_at,
    "sequence_insert": sequence_insert,
    "sequence_erase": sequence_erase,
    "sequence_length": sequence_length,
    "sequence_concat": sequence_concat,
    "sequence_split": sequence_split,
    "optional": optional,
    "optional_has_element": optional_has_element,
    "optional_get_element": optional_get_element,
    "if": if_,
    "loop": loop,
    "scan": scan,
    "fused": fused,
}
