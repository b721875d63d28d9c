"""An op with operands of every kind, and the check that what `infer` says of it is what `evaluate` gives.

A generator (see `generators`) draws a `Sample`: an op and its operands, whose dims may be symbols. The check
builds it three ways (symbolic dims, the numbers of one binding, one operand without a rank) and runs it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from argosy.errors import ArgosyError
from argosy.ir import Builder, Env, Symbol, TensorType, Type, Value, symbol_dim
from argosy.ir import dim as dims
from argosy.ir.dim import Dim, DimLike
from argosy.ir.dtype import DTYPES, STRING, Array, DType
from argosy.ir.interpreter import Interpreter
from argosy.ir.op import Op, op_class
from argosy.ir.types import MapType, OptionalType, SequenceType

__all__ = ["Binding", "Draw", "Made", "Operand", "Sample", "check", "op"]

Binding: TypeAlias = Mapping[str, int]
Fill: TypeAlias = Callable[[np.random.Generator, tuple[int, ...], Binding], Any]
_FLOATS = np.array([0.0, 1.0, -1.0, 0.5, -2.25, 3.0, 7.5])


def op(name: str, **attributes: Any) -> Op:
    """An op by its name in the registry."""
    return op_class(name)(**attributes)


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor: its type, how its values are made, and whether they are known while compiling.

    `known` holds the elements (numbers and dims) of an operand that the program computes from dims.
    """

    dtype: DType
    dims: tuple[DimLike, ...]
    fill: Fill
    constant: bool = False
    known: tuple[DimLike, ...] | None = None
    unranked: bool = False

    def array(self, binding: Binding) -> Array:
        """The value under a binding, read-only; the same for the same binding."""
        shape = tuple(dims.evaluate(dim, binding) for dim in self.dims)
        value = np.asarray(self.fill(np.random.default_rng(len(shape)), shape, binding))
        value = value.astype(self.dtype.numpy) if value.dtype != object else value.copy()
        assert value.shape == shape, f"{self}: the fill made {value.shape}, expected {shape}"
        value.flags.writeable = False
        return value

    def build(self, builder: Builder, position: str) -> Value:
        """The operand as a value of a module: a parameter, a constant or the values of dims."""
        if self.known is not None:
            return builder.add(op("dims", values=self.known, scalar=not self.dims))
        if self.constant:
            return builder.constant(self.array({}))
        return builder.parameter(position, TensorType(self.dtype, None if self.unranked else self.dims))


@dataclass(frozen=True, slots=True)
class Made:
    """An operand that another op makes: sequences and optionals."""

    by: Op
    parts: tuple[Operand | Made | None, ...]

    def build(self, builder: Builder, position: str) -> Value:
        """Its parts, and the op."""
        return builder.add(self.by, *_build(builder, self.parts, f"{position}_"))


@dataclass(frozen=True, slots=True)
class Sample:
    """An op, its operands and the sizes of the symbols: `bindings` has two."""

    op: Op
    operands: tuple[Operand | Made | None, ...]
    bindings: tuple[Binding, ...] = ({},)


class Draw:
    """Draws sizes, types and values, and keeps the symbols that it handed out."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._symbols: dict[str, int] = {}  # with the least size that each may have

    def one(self, *choices: Any) -> Any:
        """One of the choices."""
        return self.rng.choice(choices)

    def flag(self, share: float = 0.5) -> bool:
        """True in this share of the cases."""
        return self.rng.random() < share

    def size(self, least: int = 0) -> DimLike:
        """A dim: a number or a symbol."""
        if self.flag(0.4):
            return self.symbol(least)
        return self.rng.choice([size for size in (0, 1, 2, 3, 4) if size >= least] or [least])

    def symbol(self, least: int = 0) -> DimLike:
        """A symbol, a new one or one that is there."""
        name = self.rng.choice(("N", "M", "K"))
        self._symbols[name] = max(self._symbols.get(name, 0), least)
        return symbol_dim(Symbol(name))

    def shape(self, rank: int, least: int = 0) -> tuple[DimLike, ...]:
        """So many dims."""
        return tuple(self.size(least) for _ in range(rank))

    def dtype(self, *names: str) -> DType:
        """One of the element types."""
        return DTYPES[self.rng.choice(names)]

    def tensor(self, dtype: DType | str, shape: Sequence[DimLike], fill: Fill | None = None) -> Operand:
        """A tensor operand, sometimes a constant where its dims are numbers."""
        kind = DTYPES[dtype] if isinstance(dtype, str) else dtype
        constant = all(isinstance(dim, int) for dim in shape) and fill is None and self.flag(0.2)
        return Operand(kind, tuple(shape), fill or _random(kind), constant)

    def numbers(self, *values: DimLike, dtype: str = "int64", scalar: bool = False) -> Operand:
        """A small operand with these values: a constant, the values of dims, or known in the run only."""
        shape = () if scalar else (len(values),)

        def fill(_rng: np.random.Generator, shape: tuple[int, ...], binding: Binding) -> Array:
            return np.array([dims.evaluate(value, binding) for value in values], np.int64).reshape(shape)

        way = self.rng.randrange(3)
        symbolic = any(isinstance(value, Dim) for value in values)
        if way == 0 and dtype == "int64":
            return Operand(DTYPES[dtype], shape, fill, known=values)
        return Operand(DTYPES[dtype], shape, fill, constant=way == 1 and not symbolic)

    def steered(self, *values: DimLike, attribute: bool = True) -> tuple[tuple[DimLike, ...] | None, Operand | None]:
        """Numbers as an attribute, or else as an operand."""
        if attribute and self.flag():
            return values, None
        return None, self.numbers(*values)

    def sample(self, made: Op, *operands: Operand | Made | None) -> Sample:
        """The sample, with two bindings of the symbols and perhaps absent operands at the end left off."""
        bindings = tuple(
            {name: self.rng.choice([size for size in (least, 1, 2, 3, 5) if size >= least])
             for name, least in self._symbols.items()}
            for _ in range(2)
        )  # fmt: skip
        return Sample(made, operands, bindings)


def _random(dtype: DType) -> Fill:
    def fill(rng: np.random.Generator, shape: tuple[int, ...], _binding: Binding) -> Any:
        if dtype.name == "string":
            return rng.choice(np.array(["a", "", "b c", "Ä"], object), shape)
        if dtype.kind == "bool":
            return rng.integers(0, 2, shape)
        if dtype.kind in ("int", "uint"):
            return rng.integers(0 if dtype.kind == "uint" else -2, 2, shape)
        values = rng.choice(_FLOATS, shape)
        return values + 1j * rng.choice(_FLOATS, shape) if dtype.kind == "complex" else values

    return fill


def check(sample: Sample, rng: random.Random) -> None:
    """Every way of building the sample gives types, dims and known values that its results have."""
    for binding in sample.bindings:
        expected = _run(sample, binding, "symbolic dims")
        bound = replace(sample, operands=tuple(_bind(operand, binding) for operand in sample.operands))
        bound = replace(bound, op=sample.op.bind(binding))
        _same(expected, _run(bound, binding, "dims in numbers"))
    places = [index for index, operand in enumerate(sample.operands) if _may_be_unranked(operand)]
    if places:
        place = rng.choice(places)
        operands = list(sample.operands)
        operands[place] = replace(operands[place], unranked=True)  # type: ignore[type-var]
        _same(expected, _run(replace(sample, operands=tuple(operands)), binding, f"operand {place} without a rank"))


def _may_be_unranked(operand: Operand | Made | None) -> bool:
    return isinstance(operand, Operand) and not operand.constant and operand.known is None


def _bind(operand: Operand | Made | None, binding: Binding) -> Operand | Made | None:
    if isinstance(operand, Made):
        return replace(operand, parts=tuple(_bind(part, binding) for part in operand.parts))
    if operand is None:
        return None
    known = operand.known and tuple(dims.evaluate(value, binding) for value in operand.known)
    return replace(operand, dims=tuple(dims.evaluate(dim, binding) for dim in operand.dims), known=known)


def _build(builder: Builder, operands: Sequence[Operand | Made | None], prefix: str) -> list[Value | None]:
    return [
        None if operand is None else operand.build(builder, f"{prefix}{index}")
        for index, operand in enumerate(operands)
    ]


def _run(sample: Sample, binding: Binding, way: str) -> list[Any]:
    """Results of the op, after they were compared with what was inferred."""
    note = f"{way}: {sample.op}, {sample.operands}, {dict(binding)}"
    try:
        builder = Builder()
        results = builder.add_all(sample.op, *_build(builder, sample.operands, "x"))
        module = builder.module([(str(index), value) for index, value in enumerate(results)])
        env = Env(dict(binding))
        feeds = [operand.array(binding) for operand in _parameters(sample.operands)]
        values = list(Interpreter(module).run(feeds, env))
    except ArgosyError as error:
        raise AssertionError(f"{note}: {error}") from error
    for result, value in zip(results, values, strict=True):
        _agrees(result.type, value, env.symbols, f"{note}: inferred {result.type}")
        if result.known is not None:
            known = [dims.evaluate(item, env.symbols) if isinstance(item, Dim) else item for item in result.known.flat]
            assert result.known.shape == np.shape(value), f"{note}: known {result.known}, found {value}"
            np.testing.assert_array_equal(np.array(known).reshape(np.shape(value)), value, f"{note}: known")
    return values


def _parameters(operands: Sequence[Operand | Made | None]) -> list[Operand]:
    """The operands that are parameters, in the order in which `_build` makes them."""
    found: list[Operand] = []
    for operand in operands:
        if isinstance(operand, Made):
            found += _parameters(operand.parts)
        elif operand is not None and not operand.constant and operand.known is None:
            found.append(operand)
    return found


def _agrees(kind: Type, value: Any, symbols: Binding, note: str) -> None:
    """The value is of the type, under the symbols that are bound."""
    if isinstance(kind, OptionalType):
        if value is not None:
            _agrees(kind.element, value, symbols, note)
        return
    if isinstance(kind, SequenceType):
        assert isinstance(value, list), note
        for element in value:
            _agrees(kind.element, element, symbols, note)
        return
    if isinstance(kind, MapType):
        assert isinstance(value, dict), note
        for key, entry in value.items():
            assert isinstance(key, str if kind.key is STRING else int), note
            _agrees(kind.value, np.asarray(entry, object) if isinstance(entry, str) else entry, symbols, note)
        return
    assert isinstance(kind, TensorType), note
    assert isinstance(value, (np.ndarray, np.generic)), f"{note}, found {type(value)}"
    assert value.dtype == kind.dtype.numpy, f"{note}, found {value.dtype}"
    if kind.dims is None:
        return
    assert len(kind.dims) == value.ndim, f"{note}, found the shape {value.shape}"
    for dim, size in zip(kind.dims, value.shape, strict=True):
        low, high = dims.bounds(dim)
        within = (low is None or low <= size) and (high is None or size <= high)
        assert within, f"{note}, found the shape {value.shape}"
        if {symbol.name for symbol in dims.symbols_in(dim)} <= symbols.keys():
            assert dims.evaluate(dim, symbols) == size, f"{note}, found the shape {value.shape}"


def _same(left: Any, right: Any) -> None:
    """Two runs of one op on the same values give the same bits."""
    if isinstance(left, list):
        assert isinstance(right, list)
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            _same(one, other)
    elif isinstance(left, dict):
        assert list(left) == list(right)
        _same(list(left.values()), list(right.values()))
    elif left is None:
        assert right is None
    else:
        assert np.asarray(left).dtype == np.asarray(right).dtype
        assert np.asarray(left).shape == np.asarray(right).shape
        assert np.asarray(left).tobytes() == np.asarray(right).tobytes() or np.asarray(left).dtype == object
