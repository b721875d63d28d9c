"""Random programs: whole ones, and ones in which a given pattern occurs, with inputs full of edge cases."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from argosy.errors import ModelError
from argosy.ir import Builder, DType, Formula, Literal, Module, Value, dtype
from argosy.ir.dim import Dim, DimLike, Symbol, evaluate, symbol_dim
from argosy.ir.dtype import BOOL, FLOAT32, INT64, Array
from argosy.ir.interpreter import Interpreter
from argosy.ir.op import Env, Op
from argosy.ir.scalar import PRIMITIVES
from argosy.ir.types import TensorType
from argosy.ops.control import If, Loop
from argosy.ops.dim_values import Shape
from argosy.ops.index import Gather, NonZero
from argosy.ops.joining import Concat, Split, Tile
from argosy.ops.reduce import Reduce, Softmax
from argosy.ops.slicing import Pad, Slice
from argosy.ops.view import Broadcast, Reshape, Squeeze, Transpose, Unsqueeze
from argosy.rewrite.pattern import Alternative, AnyValue, ConstantValue, KnownValue, OpPattern, Pattern

__all__ = ["SIZES", "Program", "Sampler", "run", "same_bits"]

SIZES = {"A": 3, "B": 2}
"""Sizes that the symbols of random programs have when they run."""

DTYPES = tuple(
    map(dtype, ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "uint32", "bool"))
)
KINDS = {"float": "f", "int": "i", "uint": "i", "bool": "b"}
NUMBERS = (0, 1, -1, 2, 4, 0.5, -0.0, 3, -8, 0.25, float("nan"), float("inf"), 1e-3, 7)


class Discard(Exception):  # noqa: N818 - not an error: the sample can't be built
    """The sample asks for what has no meaning; another one is tried."""


@dataclass(frozen=True)
class Program:
    """A module and arguments for it."""

    module: Module
    arguments: tuple[Array, ...]


@dataclass
class Sampler:
    """Builds one random program; `symbolic` lets dims be symbols, `closed` makes inputs constants (in a body)."""

    random: Random
    symbolic: bool = False
    closed: bool = False
    build: Builder = field(default_factory=Builder)
    arguments: list[Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.symbolic and not self.closed:  # an input that defines every symbol
            self.leaf(FLOAT32, [symbol_dim(Symbol(name)) for name in SIZES])

    def program(self, result: Value, *others: Value) -> Program:
        """The program that returns `result`."""
        values = dict.fromkeys((result, *others))
        module = self.build.module([(f"y{index}", value) for index, value in enumerate(values)])
        return Program(module, tuple(self.arguments))

    # Leaves

    def dims(self, rank: int | None = None) -> tuple[DimLike, ...]:
        """Random dims of a leaf."""
        count = self.random.randint(0, 4) if rank is None else rank
        sizes: list[DimLike] = [1, 1, 2, 3, 4]
        if self.symbolic:
            sizes += [symbol_dim(Symbol(name)) for name in SIZES]
        return tuple(self.random.choice(sizes) for _ in range(count))

    def leaf(self, element: DType, dims: Sequence[DimLike]) -> Value:
        """A new input with edge cases among its elements."""
        if self.closed and not all(isinstance(dim, int) for dim in dims):
            raise Discard
        array = self.array(element, [evaluate(dim, SIZES) for dim in dims])
        if self.closed:
            return self.build.constant(Literal.of(array))
        value = self.build.parameter(f"x{len(self.arguments)}", TensorType(element, tuple(dims)))
        self.arguments.append(array)
        return value

    def array(self, element: DType, shape: Sequence[int]) -> Array:
        """Elements of which about half are edge cases."""
        count = math.prod(shape)
        seed = np.random.default_rng(self.random.getrandbits(32))
        if element.kind == "bool":
            return seed.integers(0, 2, shape).astype(np.bool_)
        if element.is_float:
            values = seed.standard_normal(count) * 10.0 ** seed.integers(-3, 4, count)
            edges = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 1e-30, 65504.0, 0.5, 1.5, 2.5]
        else:
            bits, low = element.bits, 0 if element.kind == "uint" else -(1 << (element.bits - 1))
            high = (1 << (bits - (element.kind == "int"))) - 1
            values = seed.integers(-20 if low else 0, 20, count)
            edges = [low, high, 0, 1, high - 1, -1 if low else 2]
        listed = [edges[seed.integers(len(edges))] if seed.random() < 0.5 else value for value in values.tolist()]
        with np.errstate(all="ignore"):
            return (
                np.array(listed, dtype=np.float64 if element.is_float else element.numpy)
                .astype(element.numpy)
                .reshape(shape)
            )

    def constant(self, element: DType, dims: Sequence[int] = (), *, uniform: bool = False) -> Value:
        """A constant of one of the numbers that rules ask for, or of any."""
        if not uniform and self.random.random() < 0.5:
            return self.build.constant(Literal.of(self.array(element, dims)))
        number: Any = self.random.choice(NUMBERS)
        if element.kind == "bool":
            number = bool(self.random.getrandbits(1))
        elif not element.is_float:
            number = int(number) if math.isfinite(number) else 0
            number = number % (1 << element.bits) if element.kind == "uint" else number
        if self.random.random() < 0.5:
            return self.build.constant(Literal.splat(number, element, dims))
        return self.build.constant(Literal.of(np.full(dims or (), number, element.numpy)))

    def ints(self, values: Sequence[DimLike]) -> Value:
        """An int64 operand that is known, where `values` are numbers."""
        if any(isinstance(value, Dim) for value in values):
            raise Discard
        return self.build.constant(Literal.of(np.array(values, np.int64)))

    # Ops with random attributes: each in the form with attributes or with operands

    def view(self, x: Value, kind: type[Op] | None = None) -> Value:
        """A random view of `x`, of the given kind of op."""
        kinds: list[type[Op]] = [
            Reshape,
            Transpose,
            Broadcast,
            Squeeze,
            Unsqueeze,
            Slice,
            Pad,
            Concat,
            Split,
            Gather,
            Tile,
        ]
        chosen = kind or self.random.choice(kinds)
        made = getattr(self, f"_{chosen.name}")(x)
        return self.random.choice(made) if isinstance(made, tuple) else made

    def _given(self, op: Op, x: Value, **steering: Sequence[DimLike] | None) -> Value:
        """The op with `steering` as attributes, or as operands in the order of the names."""
        if self.random.random() < 0.5:
            operands = [None if values is None else self.ints(values) for values in steering.values()]
            if operands and operands[0] is not None:
                return self.build.add(op, x, *operands)
        made: Any = dataclasses.replace(op, **{name: v if v is None else tuple(v) for name, v in steering.items()})  # type: ignore[type-var]
        return self.build.add(made, x)

    def _reshape(self, x: Value) -> Value:
        sizes = list(x.shape)
        if self.random.random() < 0.3:
            return self._given(Reshape(allow_zero=True), x, dims=sizes)
        for _ in range(self.random.randint(1, 3)):
            place = self.random.randrange(len(sizes) + 1)
            if self.random.random() < 0.4:
                sizes.insert(place, 1)
            elif len(sizes) > 1 and place < len(sizes) - 1:
                sizes[place : place + 2] = [sizes[place] * sizes[place + 1]]
            elif sizes and isinstance(sizes[-1], int) and sizes[-1] == 4:
                sizes[-1:] = [2, 2]
        dims: list[DimLike] = list(sizes)
        zero = self.random.random() < 0.5
        if dims and not zero and self.random.random() < 0.3:
            dims[self.random.randrange(len(dims))] = -1
        return self._given(Reshape(allow_zero=zero), x, dims=dims)

    def _transpose(self, x: Value) -> Value:
        order = list(range(x.rank))
        if self.random.random() < 0.8:
            self.random.shuffle(order)
        return self.build.add(Transpose(tuple(order) if self.random.random() < 0.9 else None), x)

    def _broadcast(self, x: Value) -> Value:
        grown = [self.random.choice([1, 2, 3]) if isinstance(dim, int) and dim == 1 else dim for dim in x.shape]
        dims = [*self.dims(self.random.randint(0, 4 - min(x.rank, 4))), *grown]
        return self._given(Broadcast(), x, dims=dims)

    def _squeeze(self, x: Value) -> Value:
        ones = [axis for axis, dim in enumerate(x.shape) if isinstance(dim, int) and dim == 1]
        if self.random.random() < 0.2 and all(isinstance(dim, int) for dim in x.shape):
            return self.build.add(Squeeze(), x)
        if not ones:
            return self.build.add(Squeeze(()), x)  # as an operand, no axes would mean all
        axes = self.random.sample(ones, self.random.randint(1, len(ones)))
        return self._given(Squeeze(), x, axes=self._signed(axes, x.rank))

    def _unsqueeze(self, x: Value) -> Value:
        rank = x.rank + self.random.randint(0, 2)
        return self._given(Unsqueeze(), x, axes=self._signed(self.random.sample(range(rank), rank - x.rank), rank))

    def _signed(self, axes: Sequence[int], rank: int) -> list[DimLike]:
        return [axis - rank if self.random.random() < 0.4 else axis for axis in axes]

    def _slice(self, x: Value) -> Value:
        axes = self.random.sample(range(x.rank), self.random.randint(0, x.rank))
        starts: list[DimLike] = [self.random.choice([0, 0, 0, 1, 2, -1, -2, 5]) for _ in axes]
        ends: list[DimLike] = [self.random.choice([1, 2, 3, 2**31 - 1, 2**63 - 1, -1, 0]) for _ in axes]
        steps: list[DimLike] = [self.random.choice([1, 1, 1, 1, 2, 3, -1]) for _ in axes]
        if not axes:
            return self.build.add(Slice((), (), (), ()), x)
        return self._given(Slice(), x, starts=starts, ends=ends, axes=self._signed(axes, x.rank), steps=steps)

    def _pad(self, x: Value) -> Value:
        mode = self.random.choice(["constant", "constant", "constant", "edge", "reflect"])
        amounts: list[DimLike] = [
            self.random.choice([0, 0, 1, 2] if mode == "constant" else [0, 1]) for _ in range(2 * x.rank)
        ]
        if self.random.random() < 0.3:
            amounts = [0] * (2 * x.rank)
        if self.random.random() < 0.5:
            return self.build.add(Pad(mode, tuple(amounts)), x)
        return self.build.add(
            Pad(mode), x, self.ints(amounts), self.leaf(x.dtype, ()) if self.random.random() < 0.5 else None
        )

    def _concat(self, x: Value) -> Value:
        if x.rank == 0:
            raise Discard
        axis = self.random.randrange(x.rank)
        choice = self.random.random()
        if choice < 0.2:
            pieces: Sequence[Value] = self._pieces(x, axis)
        elif choice < 0.4:
            inner = self.build.add(Concat(axis), x, self.leaf(x.dtype, x.shape))
            pieces = [inner, x]
        else:
            pieces = [x]
            for _ in range(self.random.randint(0, 2)):
                sizes = list(x.shape)
                sizes[axis] = self.random.choice([0, 1, 2, 3])
                pieces = [*pieces, self.leaf(x.dtype, sizes)]
        return self.build.add(Concat(axis - x.rank if self.random.random() < 0.3 else axis), *pieces)

    def _split(self, x: Value) -> tuple[Value, ...]:
        if x.rank == 0:
            raise Discard
        return self._pieces(x, self.random.randrange(x.rank))

    def _pieces(self, x: Value, axis: int) -> tuple[Value, ...]:
        size = x.shape[axis]
        count = self.random.randint(1, 3)
        place = axis - x.rank if self.random.random() < 0.3 else axis
        if isinstance(size, int) and self.random.random() < 0.7:
            first = self.random.randint(0, size)
            sizes = (first, size - first) if count > 1 else (size,)
            if self.random.random() < 0.5:
                return self.build.add_all(Split(place, len(sizes)), x, self.ints(sizes))
            return self.build.add_all(Split(place, len(sizes), sizes), x)
        return self.build.add_all(Split(axis, count), x)

    def _gather(self, x: Value) -> Value:
        if x.rank == 0:
            raise Discard
        axis = self.random.randrange(x.rank)
        indices = self.random.choice([0, -1, 1, [0], [1, 2], [-2, -1], [0, 1], [2, 0], [[0, 1]], [-1, 0]])
        return self.build.add(Gather(axis), x, self.build.constant(Literal.of(np.array(indices, np.int64))))

    def _tile(self, x: Value) -> Value:
        return self._given(Tile(), x, repeats=[self.random.choice([1, 1, 2, 3]) for _ in x.shape])

    def _reduce(self, x: Value) -> Value:
        axes = self._signed(self.random.sample(range(x.rank), self.random.randint(0, x.rank)), x.rank)
        keep, noop = self.random.random() < 0.5, self.random.random() < 0.3
        if x.dtype is BOOL:
            raise Discard
        return self._given(Reduce("max", None, keep, noop), x, axes=axes)

    def _softmax(self, x: Value) -> Value:
        if x.rank == 0 or not x.dtype.is_float:
            raise Discard
        return self.build.add(Softmax(-1 - self.random.randrange(x.rank)), x)

    def _pointwise(self, x: Value) -> Value:
        """A formula of one or two operands, the other one viewed like `x` or a scalar."""
        primitives = [
            name for name in ("neg", "abs", "not", "add", "mul", "max", "and") if self._defined(name, x.dtype)
        ]
        name = self.random.choice(primitives)
        if PRIMITIVES[name].arity == 1:
            return self.build.pointwise(name, x)
        return self.build.pointwise(name, x, self._beside(x))

    def _beside(self, x: Value) -> Value:
        """An operand that broadcasts with `x`."""
        maker = x.instruction
        choice = self.random.random()
        if (
            choice < 0.4
            and maker.operands
            and maker.operands[0] is not None
            and isinstance(maker.op, (Transpose, Reshape, Broadcast))
        ):
            twin = self.leaf(x.dtype, maker.operands[0].shape)
            return self.build.add(maker.op, twin, *maker.operands[1:])
        if choice < 0.6:
            return self.constant(x.dtype)
        return self.leaf(x.dtype, [1 if self.random.random() < 0.3 else dim for dim in x.shape])

    def _defined(self, primitive: str, element: DType) -> bool:
        return KINDS[element.kind] in PRIMITIVES[primitive].domain

    # Programs in which a pattern occurs

    def grow(self, pattern: Pattern, element: DType, dims: Sequence[DimLike], captures: dict[str, Value]) -> Value:
        """A value that fits `pattern`, of the given element type; dims are a wish."""
        if pattern.name in captures:
            return captures[pattern.name]
        value = self._grow(pattern, element, dims, captures)
        if pattern.name:
            captures[pattern.name] = value
        return value

    def _grow(self, pattern: Pattern, element: DType, dims: Sequence[DimLike], captures: dict[str, Value]) -> Value:
        match pattern:
            case Alternative():
                return self.grow(self.random.choice(pattern.choices), element, dims, captures)
            case ConstantValue():
                sizes = [evaluate(dim, SIZES) for dim in dims if isinstance(dim, int)]
                return self.constant(element, sizes if self.random.random() < 0.3 else (), uniform=pattern.uniform)
            case KnownValue():
                return self.build.constant(Literal.of(np.array(self.random.choice([0, 1, -1, [0, 1], [1]]), np.int64)))
            case AnyValue():
                return self.leaf(element, dims)
            case OpPattern():
                return self._grow_op(pattern, element, dims, captures)
        raise Discard

    def _grow_op(
        self, pattern: OpPattern, element: DType, dims: Sequence[DimLike], captures: dict[str, Value]
    ) -> Value:
        word = self.random.choice(sorted(pattern.op_heads))
        name, _, primitive = word.partition(":")
        if primitive:
            return self._grow_pointwise(primitive, pattern, element, dims, captures)
        if pattern.operands is None:
            x = self.leaf(element, dims)
            for _ in range(self.random.choice([0, 1, 1, 2])):
                x = self.view(x, self.random.choice([None, Transpose, Reshape, Broadcast]))
            made: Any = getattr(self, f"_{name}", None)
            if made is None:
                raise Discard
            found = made(x)
            return found[0] if isinstance(found, tuple) else found
        x = self.grow(pattern.operands[0], element, dims, captures)
        found = getattr(self, f"_{name}")(x)
        return found[pattern.index] if isinstance(found, tuple) else found

    def _grow_pointwise(
        self, primitive: str, pattern: OpPattern, element: DType, dims: Sequence[DimLike], captures: dict[str, Value]
    ) -> Value:
        signature = PRIMITIVES[primitive].signature
        patterns = pattern.operands or (AnyValue(),) * PRIMITIVES[primitive].arity
        other = self.random.choice(DTYPES)
        kinds = [element] * len(patterns)
        if signature in ("compare", "test"):
            kinds = [other] * len(patterns)
        elif signature == "select":
            kinds = [BOOL, element, element]
        elif signature == "power":
            kinds = [element, self.random.choice([element, other])]
        elif signature == "convert":
            kinds = [other]
        operands = [self.grow(p, kind, self._ragged(dims), captures) for p, kind in zip(patterns, kinds, strict=True)]
        if pattern.commutative and self.random.random() < 0.5:
            operands.reverse()
        return self.build.pointwise(Formula.of(primitive, element if signature == "convert" else None), *operands)

    def _ragged(self, dims: Sequence[DimLike]) -> list[DimLike]:
        """The same dims, or some that broadcast to them."""
        if self.random.random() < 0.7:
            return list(dims)
        return [1 if self.random.random() < 0.5 else dim for dim in dims]

    def matching(self, pattern: Pattern) -> Program:
        """A program whose result fits `pattern`, or nearly so."""
        element = self.random.choice(DTYPES) if self.random.random() < 0.8 else FLOAT32
        try:
            value = self.grow(pattern, element, self.dims(), {})
        except (ModelError, ZeroDivisionError) as error:
            raise Discard from error
        return self.program(*value.instruction.results)

    def anything(self, steps: int) -> Program:
        """A program of random views, arithmetic and reductions."""
        results: list[Value] = []
        values = [self.leaf(FLOAT32, self.dims()), self.leaf(self.random.choice(DTYPES), self.dims())]
        makers: list[Callable[[Value], Any]] = [
            self.view, self.view, self.view, self._pointwise, self._pointwise, self._reduce, self._softmax,
            self._shape_arithmetic, self._shape_arithmetic, self._conditional, self._loop, self._nonzero,
        ]  # fmt: skip
        for _ in range(steps):
            try:
                made = self.random.choice(makers)(self.random.choice(values[-4:]))
            except (Discard, ModelError, IndexError):
                continue
            if made.tensor.dims is None:
                results.append(made)
            elif all(not isinstance(dim, int) or dim < 50 for dim in made.shape) and made.rank < 7:
                values.append(made)
        return self.program(values[-1], *values[-3:-1], *results)

    def _body(self, name: str) -> Sampler:
        return Sampler(self.random, self.symbolic, closed=True, build=Builder(name, namer=self.build.namer))

    def _branch(self, name: str, x: Value) -> Module:
        """A body of one parameter like `x`."""
        inner = self._body(name)
        value = inner.build.parameter("a", x.type)
        for _ in range(self.random.randint(0, 3)):
            maker = self.random.choice([inner.view, inner._pointwise, inner._shape_arithmetic])
            try:
                value = maker(value)
            except (Discard, ModelError, IndexError):
                continue
        return inner.build.module({"r": value})

    def _conditional(self, x: Value) -> Value:
        known = self.random.random() < 0.5
        condition = self.build.constant(np.bool_(self.random.getrandbits(1))) if known else self.leaf(BOOL, ())
        return self.build.add(If(self._branch("then", x), self._branch("else", x)), condition, x, x)

    def _loop(self, x: Value) -> Value:
        inner = self._body("body")
        inner.build.tensor_parameter("i", "int64", ())
        again = inner.build.tensor_parameter("again", "bool", ())
        carried = inner.build.parameter("carried", x.type)
        seen = inner.view(carried) if self.random.random() < 0.7 else carried
        changed = inner.build.pointwise("not" if x.dtype is BOOL else "abs", carried)
        body = inner.build.module({"again": again, "carried": changed, "seen": seen})
        trip = self.build.constant(Literal.of(np.array(self.random.randint(0, 3), np.int64)))
        return self.random.choice(self.build.add_all(Loop(body, 1), trip, None, x))

    def _nonzero(self, x: Value) -> Value:
        if x.rank == 0:
            raise Discard
        return self.build.add(NonZero(), x)

    def _shape_arithmetic(self, x: Value) -> Value:
        """A reshape to [dims of x in one, kept], computed as exporters write it."""
        if x.rank == 0:
            raise Discard
        sizes = self.build.add(Shape(), x)
        last = self.build.add(Gather(0), sizes, self.build.constant(Literal.of(np.array([x.rank - 1], np.int64))))
        doubled = self.build.pointwise("mul", last, self.build.constant(Literal.of(np.array([1], np.int64))))
        whole = self.build.add(Concat(0), self.build.constant(Literal.of(np.array([-1], np.int64))), doubled)
        if whole.dtype is not INT64:
            raise Discard
        return self.build.add(Reshape(), x, whole)


def run(program: Program, module: Module | None = None) -> tuple[Array, ...]:
    """The results of a program (of another module with its arguments)."""
    with np.errstate(all="ignore"):
        results = Interpreter(module or program.module).run(program.arguments, Env(dict(SIZES)))
    return tuple(np.asarray(result) for result in results)


def same_bits(left: Array, right: Array) -> bool:
    """Equal types, shapes and bits, with any NaN equal to any other."""
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.dtype.kind in "iub":
        return bool(np.array_equal(left, right))
    wide = [side.astype(np.float64) for side in (left, right)]
    nan = [np.isnan(side) for side in wide]
    if not np.array_equal(nan[0], nan[1]):
        return False
    return bool(
        np.all((wide[0] == wide[1]) | nan[0])
        and np.array_equal(np.signbit(wide[0])[~nan[0]], np.signbit(wide[1])[~nan[0]])
    )
