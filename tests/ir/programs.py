"""Hypothesis strategies for everything that a program is made of, up to whole programs."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
from hypothesis import strategies as st

from argosy.ir import (
    DTYPES,
    Builder,
    Formula,
    Literal,
    MapType,
    Module,
    OptionalType,
    Program,
    SequenceType,
    TensorType,
    Type,
    Value,
)
from argosy.ir.builder import Namer
from argosy.ir.dtype import DType
from argosy.ir.formula import Constant, Step
from argosy.ir.literal import pack_bits
from argosy.ir.scalar import PRIMITIVES
from tests.ir.dims import pairs
from tests.ir.ops import Anything, Bodies, Counted

__all__ = ["attributes", "formulas", "literals", "modules", "programs", "texts", "types"]

# Every character, lone surrogates and controls too.
texts = st.text(st.characters(exclude_categories=()), max_size=12)
names = st.one_of(
    st.from_regex(r"[A-Za-z_][\w.]{0,5}", fullmatch=True),
    st.sampled_from(["0", "1", "2", "3", "_", "x", "return"]),  # numbers are names to PyTorch's old exporter
    texts.filter(bool),
)
dims = pairs.map(lambda pair: pair[0])
dtypes = st.sampled_from(list(DTYPES.values()))

sizes = dims.map(lambda dim: abs(dim) if isinstance(dim, int) else dim)  # no result may have a negative size

tensor_types = st.builds(TensorType, dtypes, st.one_of(st.none(), st.lists(sizes, max_size=4).map(tuple)))
types: st.SearchStrategy[Type] = st.recursive(
    tensor_types,
    lambda inner: st.one_of(
        st.builds(SequenceType, inner), st.builds(OptionalType, inner), st.builds(MapType, dtypes, inner)
    ),
    max_leaves=4,
)


@st.composite
def literals(draw: st.DrawFn) -> Literal:
    """Random bits of any element type: NaNs of every payload, denormals, infinities."""
    dtype: DType = draw(dtypes)
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    splat = draw(st.booleans())
    count = 1 if splat else int(np.prod(shape, dtype=int))
    if dtype.kind == "string":
        elements = draw(st.lists(st.one_of(texts, st.binary(max_size=4)), min_size=count, max_size=count))
        data = np.empty(count, object)
        data[:] = elements
        return Literal(dtype, shape, data, is_splat=splat)
    size = dtype.numpy.itemsize * count
    raw = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), np.uint8)
    if dtype.kind == "bool":
        raw = np.asarray(raw & 1, np.uint8)
    if dtype.bits < 8:
        return Literal(dtype, shape, pack_bits(raw, dtype.bits), is_splat=splat)
    return Literal(dtype, shape, raw.view(dtype.numpy), is_splat=splat)


@st.composite
def formulas(draw: st.DrawFn) -> Formula:
    """Steps of any primitives, whatever their types."""
    arity = draw(st.integers(0, 3))
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, 4))):
        primitive = draw(st.sampled_from(list(PRIMITIVES.values())))
        constants = st.one_of(st.floats(), st.integers(), st.booleans()).map(Constant)
        count = arity + len(steps)
        refs = st.one_of(st.integers(0, count - 1), constants) if count else constants
        args = draw(st.lists(refs, min_size=primitive.arity, max_size=primitive.arity))
        target = draw(dtypes) if primitive.signature == "convert" else None
        steps.append(Step(primitive.name, tuple(args), target))
    return Formula(arity, tuple(steps))


leaf_attributes: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), texts, dims, dtypes, types, literals(), formulas()
)
attributes = st.recursive(leaf_attributes, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)


@st.composite
def modules(draw: st.DrawFn, depth: int = 2, namer: Namer | None = None) -> Module:
    """A module over the test ops, with bodies inside it down to `depth`."""
    builder = Builder(draw(names), namer=namer or Namer())
    values: list[Value] = [
        builder.parameter(name, draw(types)) for name in draw(st.lists(names, max_size=3, unique=True))
    ]
    for _ in range(draw(st.integers(0, 4))):
        operands = draw(st.lists(st.one_of(st.none(), st.sampled_from(values)), max_size=3)) if values else []
        kind = draw(st.sampled_from(["constant", "anything", "counted", "bodies"][: 4 if depth else 3]))
        if kind == "constant":
            values.append(builder.constant(draw(literals()), name=draw(st.one_of(st.just(""), names))))
            continue
        if kind == "anything":
            results = tuple(draw(st.lists(types, max_size=3)))
            op: Any = Anything(draw(attributes), results, draw(attributes))
        elif kind == "counted":
            op = Counted(draw(st.integers(2, 9)))
        else:
            inner = modules(depth=depth - 1, namer=builder.namer)
            op = Bodies(draw(inner), tuple(draw(st.lists(inner, max_size=2))))
        count = len(op.infer(*operands))
        called = (
            draw(st.lists(st.one_of(st.just(""), names), min_size=count, max_size=count)) if draw(st.booleans()) else []
        )
        values.extend(builder.add_all(op, *operands, names=called, source=draw(st.one_of(st.just(""), texts))))
    returned = st.tuples(names, st.sampled_from(values)) if values else st.nothing()
    return builder.module(draw(st.lists(returned, max_size=3 if values else 0, unique_by=lambda pair: pair[0])))


programs = st.builds(
    Program,
    modules(),
    st.dictionaries(texts, texts, max_size=2).map(MappingProxyType),
)
