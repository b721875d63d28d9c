"""Hypothesis strategies for dims: each with what Python's integers say it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hypothesis import assume
from hypothesis import strategies as st

from argosy.errors import ModelError
from argosy.ir.dim import DimLike, Symbol, ceildiv, dim_max, dim_min, floordiv, mod, symbol_dim

__all__ = ["BY_NAME", "SYMBOLS", "Evaluator", "Pair", "assignments", "pairs", "polynomials"]

SYMBOLS = (
    Symbol("N"),
    Symbol("L", 1, 16),
    Symbol("K", -5, 5),
    Symbol("M", -3),
    Symbol("a b", 2, 9),
    Symbol("max", 0, 3),
)
BY_NAME = {symbol.name: symbol for symbol in SYMBOLS}

Evaluator = Callable[[Mapping[str, int]], int]
Pair = tuple[DimLike, Evaluator]

# Each operation on dims beside what Python's integers say; a zero divisor raises ZeroDivisionError there.
OPERATIONS: tuple[tuple[Callable[[DimLike, DimLike], DimLike], Callable[[int, int], int]], ...] = (
    (lambda a, b: a + b, lambda a, b: a + b),
    (lambda a, b: a - b, lambda a, b: a - b),
    (lambda a, b: a * b, lambda a, b: a * b),
    (floordiv, lambda a, b: a // b),
    (ceildiv, lambda a, b: -(-a // b)),
    (mod, lambda a, b: a % b),
    (dim_min, min),
    (dim_max, max),
)


def leaves() -> st.SearchStrategy[Pair]:
    numbers = st.integers(-6, 6).map(lambda n: (n, lambda _values: n))
    symbols = st.sampled_from(SYMBOLS).map(lambda s: (symbol_dim(s), lambda values: values[s.name]))
    return st.one_of(numbers, symbols)


@st.composite
def combined(draw: st.DrawFn, children: st.SearchStrategy[Pair]) -> Pair:
    (left, left_value), (right, right_value) = draw(children), draw(children)
    on_dims, on_ints = draw(st.sampled_from(OPERATIONS))
    try:
        dim = on_dims(left, right)
    except ModelError:
        assume(condition=False)  # a divisor that is zero whatever the symbols are
    return dim, lambda values: on_ints(left_value(values), right_value(values))


pairs = st.recursive(leaves(), combined, max_leaves=8)
assignments = st.fixed_dictionaries(
    {s.name: st.integers(s.lower, s.upper if s.upper is not None else s.lower + 20) for s in SYMBOLS}
)

polynomials = st.recursive(
    st.one_of(st.integers(-6, 6), st.sampled_from(SYMBOLS).map(symbol_dim)),
    lambda inner: st.builds(
        lambda a, b, op: op(a, b),
        inner,
        inner,
        st.sampled_from([lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b]),
    ),
    max_leaves=5,
)
