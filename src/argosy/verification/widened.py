"""`ref64`: a program with every float as float64, so that its results are the true values, but for 2^-53 or so.

Float16, bfloat16 and float32 become float64, and complex64 complex128, everywhere: inputs, constants, attributes, the
types that formulas convert to, bodies of control ops. What is shorter than 16 bits stays: a cast to float8, a
quantisation and its codes are what a quantised model means, and not how exactly it is computed. So do random numbers,
and whatever reads the bits or the text of a number: those ops compute in their own types, and only what leaves them
is widened.

The reference gives float64. What it is compared with has the types of the program, so `rounded` gives the same values
in those: by them types, and the positions of infinities, are judged, by the exact ones how far numbers are apart.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from argosy.ir.dtype import DTYPES, FLOAT64, DType
from argosy.ir.formula import Formula, Step
from argosy.ir.interpreter import Interpreter
from argosy.ir.module import Constant, Instruction, Module, Parameter, Value
from argosy.ir.op import Env, Op
from argosy.ir.program import Program
from argosy.ir.types import MapType, OptionalType, SequenceType, TensorType, Type
from argosy.ops.convolution import Conv, ConvTranspose
from argosy.ops.matmul import Dot
from argosy.ops.numpy_scalar import convert
from argosy.rewrite.rebuild import Rebuild, map_bodies, namer_of

__all__ = ["WideReference", "rounded", "wide_values", "widened"]

K = TypeVar("K")

_WIDE: Final[Mapping[str, DType]] = {
    **dict.fromkeys(("float16", "bfloat16", "float32"), FLOAT64),
    "complex64": DTYPES["complex128"],
}
_AS_THEY_ARE: Final = ("random", "bit_cast", "format_numbers", "parse_numbers", "map_labels", "count_ngrams", "unknown")
"""Ops that depend on the type of their floats, and not only on their values."""


class WideReference:
    """The program in float64, evaluated by numpy. Its answers are float64; see `rounded`."""

    name = "ref64"

    def __init__(self, program: Program) -> None:
        self._types = list(program.inputs.values())
        self._names = list(program.outputs)
        self._interpreter = Interpreter(widened(program.main))

    def answer(self, inputs: Mapping[str, Any], case: int) -> dict[str, Any]:
        """The outputs in float64."""
        values = [_cast(value, _wide_type(kind)) for value, kind in zip(inputs.values(), self._types, strict=True)]
        return dict(zip(self._names, self._interpreter.run(values, Env({}, case)), strict=True))


def rounded(values: Mapping[K, Any], types: Mapping[K, Type]) -> dict[K, Any]:
    """Values in float64, in the types that the program gives them."""
    return {key: _cast(value, types[key]) for key, value in values.items()}


def widened(module: Module) -> Module:
    """The module with its floats in float64."""
    return _Widening(module, namer_of(module)).run()


def wide_values(module: Module, arguments: Sequence[Any], env: Env) -> dict[Value, Any]:
    """What each value of a module is in float64."""
    walk = _Widening(module, namer_of(module))
    wide = walk.run()
    kinds = [parameter.types[0] for parameter in wide.parameters]
    given = [_cast(argument, kind) for argument, kind in zip(arguments, kinds, strict=True)]
    found = {parameter.result(): argument for parameter, argument in zip(wide.parameters, given, strict=True)}
    Interpreter(wide).run(given, env, lambda step, results: found.update(zip(step.results, results, strict=True)))
    values = [value for step in (*module.parameters, *module.instructions) for value in step.results]
    return {value: found[walk.value(value)] for value in values if walk.value(value) in found}


class _Widening(Rebuild):
    """One walk over a module in which every float is widened."""

    def adopt(self, parameter: Instruction) -> None:
        kind = _wide_type(parameter.types[0])
        if kind == parameter.types[0]:
            super().adopt(parameter)
            return
        wide = Instruction(Parameter(kind), (), (kind,), parameter.known, parameter.names, parameter.source)
        self.redirect([(parameter.result(), self.tape.adopt(wide))])

    def body(self, module: Module) -> Module:
        return _Widening(module, self.namer, self.substitution).run()

    def visit(self, instruction: Instruction) -> None:
        op = instruction.op
        if isinstance(op, Constant):
            kind = _WIDE.get(op.literal.dtype.name)
            if kind is None:
                self.keep(instruction)
            else:
                name = instruction.names[0] if instruction.names else ""
                wide = self.tape.constant(op.literal.array().astype(kind.numpy), kind, name=name)
                self.replace(instruction, [wide])
            return
        operands = [None if operand is None else self.value(operand) for operand in instruction.operands]
        if op.name in _AS_THEY_ARE:
            self.replace(instruction, self._as_it_is(instruction, operands))
            return
        if isinstance(op, (Dot, Conv, ConvTranspose)):
            operands = [self._multiplied(operand) for operand in operands]
        changed = _wide_op(map_bodies(op, self.body))
        if changed is op and tuple(operands) == instruction.operands:
            self.keep(instruction)
        else:
            self.replace(instruction, self.tape.redo(instruction, changed, operands))

    def _as_it_is(self, instruction: Instruction, operands: Sequence[Value | None]) -> list[Value]:
        """The results of an op in its own types, widened."""
        given = [
            new if new is None or old is None or new.type == old.type else self.tape.convert(new, old.dtype)
            for new, old in zip(operands, instruction.operands, strict=True)
        ]
        results = self.tape.redo(instruction, instruction.op, given)
        return [
            self.tape.convert(result, _WIDE[result.dtype.name])
            if isinstance(result.type, TensorType) and result.dtype.name in _WIDE
            else result
            for result in results
        ]

    def _multiplied(self, operand: Value | None) -> Value | None:
        """An operand of a product, which sums in the type of its operands: floats of 8 bits would be summed in 32."""
        if operand is None or not operand.dtype.is_float or operand.dtype is FLOAT64:
            return operand
        return self.tape.convert(operand, FLOAT64)


def _wide_op(op: Op) -> Op:
    """The op with wide types in its attributes; itself where it has none."""
    changed: dict[str, Any] = {}
    for name, value in op.attributes().items():
        new = _wide_attribute(value)
        if new is not value:
            changed[name] = new
    return dataclasses.replace(op, **changed) if changed else op  # type: ignore[type-var]


def _wide_attribute(value: Any) -> Any:
    if isinstance(value, DType):
        return _WIDE.get(value.name, value)
    if isinstance(value, (TensorType, SequenceType, OptionalType, MapType)):
        wide = _wide_type(value)
        return value if wide == value else wide
    if isinstance(value, Formula):
        steps = tuple(
            step if step.dtype is None else Step(step.primitive, step.args, _WIDE.get(step.dtype.name, step.dtype))
            for step in value.steps
        )
        return value if steps == value.steps else Formula(value.arity, steps)
    return value


def _wide_type(kind: Type) -> Type:
    if isinstance(kind, TensorType):
        return kind.with_dtype(_WIDE.get(kind.dtype.name, kind.dtype))
    if isinstance(kind, MapType):
        return MapType(kind.key, _wide_type(kind.value))
    return type(kind)(_wide_type(kind.element))


def _cast(value: Any, kind: Type) -> Any:
    """A value in the element types of `kind`, rounded once."""
    if isinstance(kind, OptionalType):
        return None if value is None else _cast(value, kind.element)
    if isinstance(kind, SequenceType):
        return [_cast(element, kind.element) for element in value]
    if isinstance(kind, MapType):
        return {key: _cast(element, kind.value) for key, element in value.items()}
    if value is None or kind.dtype.kind not in ("float", "complex"):
        return value
    with np.errstate(all="ignore"):
        cast = convert(np.asarray(value), kind.dtype)
    return cast if isinstance(value, np.ndarray) else cast[()]  # a map holds scalars
