"""Formulas: scalar expressions over the primitives, in single-assignment form.

A formula is traced from ordinary Python: `Formula.trace(lambda x: (x < 0).select(x * 0.1, x), 1)`. It
computes in the compute type of its storage types (float32 for the short floats; every other type in
itself) and rounds once, when the result is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, Union

import msgspec
import numpy as np

from argosy.errors import ModelError
from argosy.ir.dtype import BOOL, DType
from argosy.ir.scalar import PRIMITIVES

__all__ = ["Constant", "Expr", "Formula", "Ref", "Scalar", "Step", "Tracer"]

Scalar: TypeAlias = Union[float, int, bool]  # noqa: UP007 - evaluated at run time
_KINDS = {"float": "f", "int": "i", "uint": "i", "bool": "b", "complex": "c", "string": "s"}


class Constant(msgspec.Struct, frozen=True):
    """A number inside a formula; it takes the type of the operand beside it."""

    value: Scalar

    def __eq__(self, other: object) -> bool:
        # repr tells 1 from 1.0 and True, -0.0 from 0.0, and NaN equals itself
        return isinstance(other, Constant) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))


Ref: TypeAlias = int | Constant
"""An input or an earlier step, by number; or a constant."""


class Step(msgspec.Struct, frozen=True):
    """One primitive applied to references: inputs are 0..arity-1, the results of earlier steps follow."""

    primitive: str
    args: tuple[Ref, ...]
    dtype: DType | None = None


class Formula(msgspec.Struct, frozen=True):
    """A scalar function of `arity` inputs; its value is the last step's."""

    arity: int
    steps: tuple[Step, ...]

    @staticmethod
    def trace(function: Callable[..., Expr], arity: int) -> Formula:
        """The formula that `function` computes when it is called with `arity` expressions."""
        tracer = Tracer(arity)
        result = function(*(Expr(tracer, index) for index in range(arity)))
        if not tracer.steps or not isinstance(result.ref, int) or result.ref != arity + len(tracer.steps) - 1:
            raise ModelError("a formula must end with the step that computes its result")
        return Formula(arity, tuple(tracer.steps))

    @staticmethod
    def of(primitive: str, dtype: DType | None = None) -> Formula:
        """The formula of one primitive applied to its inputs in order."""
        arity = PRIMITIVES[primitive].arity
        return Formula(arity, (Step(primitive, tuple(range(arity)), dtype),))

    @property
    def primitive(self) -> str | None:
        """The primitive's name where the formula is just one, applied to its inputs in order; else None."""
        if len(self.steps) == 1 and self.steps[0].args == tuple(range(self.arity)):
            return self.steps[0].primitive
        return None

    def step_dtypes(self, inputs: Sequence[DType]) -> tuple[DType, ...]:
        """Storage type of every step's value; raises ModelError where types do not fit a primitive."""
        if len(inputs) != self.arity:
            raise ModelError(f"a formula of {self.arity} inputs is applied to {len(inputs)}")
        known: list[DType] = list(inputs)
        for step in self.steps:
            args = [known[ref] if isinstance(ref, int) else None for ref in step.args]
            known.append(_step_dtype(step, args))
        return tuple(known[self.arity :])

    def result_dtype(self, inputs: Sequence[DType]) -> DType:
        """Storage type of the result."""
        return self.step_dtypes(inputs)[-1]

    def __str__(self) -> str:
        """The text form: `|x0, x1| t0 = mul(x0, 2.0); add(t0, x1)`, inputs, steps, the last of them the result."""

        def name(ref: Ref) -> str:
            if isinstance(ref, Constant):
                value = ref.value
                return ("true" if value else "false") if isinstance(value, bool) else repr(value)
            return f"x{ref}" if ref < self.arity else f"t{ref - self.arity}"

        steps = []
        for index, step in enumerate(self.steps):
            target = "" if step.dtype is None else f"[{step.dtype}]"
            left = "" if index == len(self.steps) - 1 else f"t{index} = "
            steps.append(f"{left}{step.primitive}{target}({', '.join([name(ref) for ref in step.args])})")
        return f"|{', '.join([f'x{index}' for index in range(self.arity)])}| {'; '.join(steps)}"


def _step_dtype(step: Step, args: Sequence[DType | None]) -> DType:
    primitive = PRIMITIVES[step.primitive]
    typed = list(args)
    refs = step.args
    if primitive.signature == "select":
        if typed[0] is not None and typed[0] is not BOOL:
            raise ModelError(f"select needs a bool condition, found {typed[0]}")
        typed, refs = typed[1:], refs[1:]
    if primitive.signature == "power":
        typed, refs = typed[:1], refs[:1]
    present = [kind for kind in typed if kind is not None]
    if not present:
        raise ModelError(f"{step.primitive} has constant arguments only, so its type is unknown")
    first = present[0]
    if any(kind is not first for kind in present):
        raise ModelError(
            f"{step.primitive} needs arguments of one element type, found {', '.join(map(str, present))}",
            hint="convert them to one type, in ONNX with Cast",
        )
    if _KINDS[first.kind] not in primitive.domain:
        raise ModelError(f"{step.primitive} is not defined for {first}", hint=_expected(primitive.domain))
    for ref in refs:
        if isinstance(ref, Constant) and not _fits(ref.value, first):
            raise ModelError(f"the constant {ref.value} beside {first} is no {first}")
    if primitive.signature in ("compare", "test"):
        return BOOL
    if primitive.signature == "convert":
        if step.dtype is None:
            raise ModelError("convert needs a target type")
        return step.dtype
    return first


def _expected(domain: str) -> str:
    words = {letter: word for word, letter in _KINDS.items() if word != "uint"}
    return f"it takes {' or '.join(words[letter] for letter in domain)}: convert its operands, in ONNX with Cast"


def _fits(value: Scalar, dtype: DType) -> bool:
    """Whether a constant keeps its value in an element type; floats may round it."""
    if dtype.kind == "bool":
        return value in (0, 1)
    if not dtype.is_integer:
        return True
    low = -(1 << (dtype.bits - 1)) if dtype.kind == "int" else 0
    return low <= value < low + (1 << dtype.bits) and value == int(value)


class Tracer:
    """Collects steps while a formula is traced; equal steps are shared."""

    def __init__(self, arity: int) -> None:
        self.arity = arity
        self.steps: list[Step] = []
        self._seen: dict[Step, int] = {}

    def add(self, step: Step) -> int:
        """The reference to the value of `step`."""
        if step not in self._seen:
            self.steps.append(step)
            self._seen[step] = self.arity + len(self.steps) - 1
        return self._seen[step]


Operand: TypeAlias = Union["Expr", Scalar]


def _plain(number: Scalar) -> Scalar:
    """A numpy scalar as Python's, which it may pass for: constants are compared and written by their repr."""
    return number.item() if isinstance(number, np.generic) else number


class Expr:
    """A value inside a formula that is being traced: supports Python's operators and the primitives by name."""

    __slots__ = ("_tracer", "ref")
    __hash__ = None  # type: ignore[assignment]  # == builds a step, so an Expr can't be a key

    def __init__(self, tracer: Tracer, ref: Ref) -> None:
        self._tracer = tracer
        self.ref = ref

    def apply(self, primitive: str, *others: Operand, dtype: DType | None = None) -> Expr:
        """`primitive(self, *others)` as a new step."""
        refs = tuple(other.ref if isinstance(other, Expr) else Constant(_plain(other)) for other in (self, *others))
        return Expr(self._tracer, self._tracer.add(Step(primitive, refs, dtype)))

    def _swapped(self, primitive: str, left: Scalar) -> Expr:
        return Expr(self._tracer, self._tracer.add(Step(primitive, (Constant(_plain(left)), self.ref))))

    def __getattr__(self, name: str) -> Callable[..., Expr]:
        key = name.rstrip("_")  # and_, or_, not_ are spelt so in Python
        if key not in PRIMITIVES:
            raise AttributeError(name)
        return lambda *others: self.apply(key, *others)

    def convert(self, dtype: DType) -> Expr:
        """This value rounded to `dtype`."""
        return self.apply("convert", dtype=dtype)

    def __add__(self, other: Operand) -> Expr:
        return self.apply("add", other)

    def __sub__(self, other: Operand) -> Expr:
        return self.apply("sub", other)

    def __mul__(self, other: Operand) -> Expr:
        return self.apply("mul", other)

    def __truediv__(self, other: Operand) -> Expr:
        return self.apply("div", other)

    def __radd__(self, other: Scalar) -> Expr:
        return self._swapped("add", other)

    def __rsub__(self, other: Scalar) -> Expr:
        return self._swapped("sub", other)

    def __rmul__(self, other: Scalar) -> Expr:
        return self._swapped("mul", other)

    def __rtruediv__(self, other: Scalar) -> Expr:
        return self._swapped("div", other)

    def __neg__(self) -> Expr:
        return self.apply("neg")

    def __lt__(self, other: Operand) -> Expr:
        return self.apply("lt", other)

    def __le__(self, other: Operand) -> Expr:
        return self.apply("le", other)

    def __gt__(self, other: Operand) -> Expr:
        return other.apply("lt", self) if isinstance(other, Expr) else self._swapped("lt", other)

    def __ge__(self, other: Operand) -> Expr:
        return other.apply("le", self) if isinstance(other, Expr) else self._swapped("le", other)

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        if not isinstance(other, (Expr, int, float, bool)):
            raise TypeError(f"an expression compared with {type(other).__name__}")
        return self.apply("eq", other)
