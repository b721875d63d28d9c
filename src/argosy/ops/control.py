"""Control flow: if, loop and scan. Their bodies are closed modules; what these read from outside are operands.

The values of outer symbols hold inside; those that a body defines hold for one run of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.errors import InternalError, ModelError
from argosy.ir import dim as dims
from argosy.ir.dim import Dim, DimLike
from argosy.ir.dtype import BOOL, Array
from argosy.ir.interpreter import run_module
from argosy.ir.module import Module, Value
from argosy.ir.op import Env, Op, fresh, register
from argosy.ir.types import TensorType, Type
from argosy.ops.border import Border, fits, symbol_names
from argosy.ops.demands import differ
from argosy.ops.operands import number, present
from argosy.ops.shapes import normalize_axis

__all__ = ["If", "Loop", "Scan"]


def _types(module: Module) -> tuple[Type, ...]:
    return tuple(value.type for value in module.results)


def _border(operands: Sequence[Value | None]) -> Border:
    return Border(symbol_names(operand.type for operand in operands if operand is not None))


def _merged(border: Border, index: int, first: Type, second: Type) -> Type:
    """The type of result `index` of an If."""
    try:
        return border.type(first, second)
    except ModelError:
        found = f"{first} in then_branch and {second} in else_branch"
        raise ModelError(f"result {index} is {found}, expected one type", hint="give one of them a Cast") from None


def _truth(value: Any) -> bool:
    array = np.asarray(value)
    if array.size != 1:
        raise ModelError(f"a condition has the shape {list(array.shape)}, expected one element")
    return bool(array.reshape(())[()])


def _stack(parts: Sequence[Array], axis: int, kind: Type, env: Env) -> Array:
    """The scan outputs of all iterations along a new axis; without an iteration, an empty tensor of the right rank."""
    if not isinstance(kind, TensorType):
        raise ModelError(f"a scan output is {kind}, expected a tensor")
    if parts:
        if any(part.shape != parts[0].shape for part in parts):
            raise ModelError(f"a scan output changes its shape from {list(parts[0].shape)} between iterations")
        return np.stack(parts, axis)
    # What only an iteration could tell counts as empty.
    sizes = [dims.substitute(dim, env.symbols) for dim in kind.dims or ()]
    shape = [0 if isinstance(size, Dim) else size for size in sizes]
    place = normalize_axis(axis, len(shape) + 1)
    return np.empty([*shape[:place], 0, *shape[place:]], kind.dtype.numpy)


@register
@dataclass(frozen=True, slots=True)
class If(Op):
    """The results of one of two modules. Operands: condition, captures of the one, captures of the other."""

    name = "if"
    then_branch: Module
    else_branch: Module

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        first, second = _types(self.then_branch), _types(self.else_branch)
        if len(first) != len(second):
            found = f"{len(first)} and {len(second)} results"
            raise ModelError(f"the branches give {found}, expected as many", hint="let both give the same values")
        expected = 1 + len(self.then_branch.parameters) + len(self.else_branch.parameters)
        if len(operands) != expected:
            raise InternalError(f"if has {len(operands)} operands, expected {expected}")
        condition = present(operands[0])
        if condition.dtype.kind != "bool":
            raise ModelError(f"the condition is {condition.type}, expected a bool")
        border = _border(operands)
        if condition.known is not None and condition.known.size == 1:
            # The other branch is never taken, whatever its types are.
            return tuple(border.type(kind) for kind in (first if condition.known.reshape(-1)[0] else second))
        return tuple(_merged(border, index, *pair) for index, pair in enumerate(zip(first, second, strict=True)))

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        return self.evaluate_in(Env(), *values)

    def evaluate_in(self, env: Env, *values: Any) -> tuple[Any, ...]:
        condition, *captures = values
        split = len(self.then_branch.parameters)
        if _truth(condition):
            return run_module(self.then_branch, captures[:split], env.inner())
        return run_module(self.else_branch, captures[split:], env.inner())

    def modules(self) -> tuple[Module, ...]:
        return (self.then_branch, self.else_branch)


@register
@dataclass(frozen=True, slots=True)
class Loop(Op):
    """The body again and again, at most `trip` times and while the condition holds: ONNX Loop.

    Operands: [trip], [condition], the carried values, the captures. Parameters of the body: iteration,
    condition, carried values, captures; its results: condition, carried values, scan outputs. Results: the
    last carried values, then the scan outputs of all iterations stacked along a new first axis.

    A carried value has one type for all iterations, that of the body's parameter.
    """

    name = "loop"
    body: Module
    carried: int

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        self._check(operands)
        again = self.body.results[0].type
        if not (isinstance(again, TensorType) and again.dtype is BOOL):
            hint = "its results are the condition, the carried values, the scan outputs"
            raise ModelError(f"the body gives the condition {again}, expected one bool", hint=hint)
        border = _border(operands)
        results = _types(self.body)
        kinds = [border.type(p.types[0]) for p in self.body.parameters[2 : 2 + self.carried]]
        trips = self._trips(operands[0], operands[1])
        for kind in results[1 + self.carried :]:
            if not isinstance(kind, TensorType):
                raise ModelError(f"a scan output is {kind}, expected a tensor")
            element = border.type(kind)
            shape = element.dims if isinstance(element, TensorType) else None
            kinds.append(TensorType(kind.dtype, None if shape is None else (trips, *shape)))
        return tuple(kinds)

    def _check(self, operands: Sequence[Value | None]) -> None:
        if len(operands) != len(self.body.parameters) or len(self.body.results) <= self.carried:
            raise InternalError(f"loop has {len(operands)} operands for {len(self.body.parameters)} parameters")
        for index in range(self.carried):
            initial, kind = present(operands[2 + index]).type, self.body.parameters[2 + index].types[0]
            given = self.body.results[1 + index].type
            for other in (initial, given):
                if not fits(kind, other):
                    found = f"{initial} before the loop and {given} after an iteration"
                    raise ModelError(f"carried value {index} is {found}, expected one type")

    def _trips(self, trip: Value | None, condition: Value | None) -> DimLike:
        """Number of iterations: the trip count where the condition can't end the loop and the count is known."""
        again = self.body.results[0]
        constant = again.constant
        kept = again.instruction is self.body.parameters[1] or (constant is not None and _truth(constant.array()))
        begins = condition is None or (condition.known is not None and bool(np.all(condition.known)))
        if kept and begins and trip is not None and trip.known is not None:
            return dims.dim_max(trip.known.reshape(-1)[0], 0)
        return fresh("trips")

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        return self.evaluate_in(Env(), *values)

    def evaluate_in(self, env: Env, *values: Any) -> tuple[Any, ...]:
        trip, condition = values[0], values[1]
        carried = list(values[2 : 2 + self.carried])
        captures = values[2 + self.carried :]
        count = None if trip is None else int(number(trip, "the trip count"))
        again = condition is None or _truth(condition)
        kinds = _types(self.body)[1 + self.carried :]
        scans: list[list[Array]] = [[] for _ in kinds]
        for iteration in itertools.count():
            if not again or (count is not None and iteration >= count):
                break
            head = (self._shaped(0, iteration, np.int64), self._shaped(1, again, np.bool_))
            results = run_module(self.body, (*head, *carried, *captures), env.iteration(iteration))
            again = _truth(results[0])
            carried = list(results[1 : 1 + self.carried])
            for parts, result in zip(scans, results[1 + self.carried :], strict=True):
                parts.append(np.asarray(result))
        stacked = (_stack(parts, 0, kind, env) for parts, kind in zip(scans, kinds, strict=True))
        return (*carried, *stacked)

    def _shaped(self, index: int, value: int, kind: type[np.generic]) -> Array:
        """The iteration number or the condition, in the rank (0, or 1 in some files) that the body declares."""
        declared = self.body.parameters[index].types[0]
        rank = len(declared.dims or ()) if isinstance(declared, TensorType) else 0
        return np.full((1,) * rank, value, kind)

    def modules(self) -> tuple[Module, ...]:
        return (self.body,)


@register
@dataclass(frozen=True, slots=True)
class Scan(Op):
    """The body once for each element along an axis of the scanned operands: ONNX Scan (opset 9).

    Operands: `states` initial states, the scanned tensors (one for each of `input_axes`), the captures; the
    same are the body's parameters, with a scanned tensor's axis gone. Results: the last states, then the
    body's other results of all iterations stacked along `output_axes`. A reversed one runs from the end.
    """

    name = "scan"
    body: Module
    states: int
    input_axes: tuple[int, ...]
    input_reversed: tuple[bool, ...]
    output_axes: tuple[int, ...]
    output_reversed: tuple[bool, ...]

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        if len(operands) != len(self.body.parameters):
            raise InternalError(f"scan has {len(operands)} operands for {len(self.body.parameters)} parameters")
        border = _border(operands)
        length = self._length(operands)
        kinds = [border.type(parameter.types[0]) for parameter in self.body.parameters[: self.states]]
        for kind, axis in zip(_types(self.body)[self.states :], self.output_axes, strict=True):
            element = border.type(kind)
            if not isinstance(element, TensorType):
                raise ModelError(f"a scan output is {kind}, expected a tensor")
            if element.dims is not None:
                place = normalize_axis(axis, len(element.dims) + 1)
                element = element.with_dims((*element.dims[:place], length, *element.dims[place:]))
            kinds.append(element)
        return tuple(kinds)

    def _length(self, operands: Sequence[Value | None]) -> DimLike:
        """The number of iterations, in which the scanned operands must agree."""
        found: DimLike | None = None
        for operand, axis in zip(operands[self.states :], self.input_axes, strict=False):
            tensor = present(operand).tensor
            if tensor.dims is None:
                continue
            size = tensor.dims[normalize_axis(axis, tensor.rank)]
            if found is not None and differ(found, size):
                raise ModelError(f"the scanned inputs have the lengths {found} and {size}, expected one")
            found = size if found is None or isinstance(size, int) else found
        return fresh("steps") if found is None else found

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        return self.evaluate_in(Env(), *values)

    def evaluate_in(self, env: Env, *values: Any) -> tuple[Any, ...]:
        states = list(values[: self.states])
        scanned = [
            np.moveaxis(np.asarray(value), axis, 0)[:: -1 if backwards else 1]
            for value, axis, backwards in zip(values[self.states :], self.input_axes, self.input_reversed, strict=False)
        ]
        captures = values[self.states + len(scanned) :]
        lengths = {len(value) for value in scanned}
        if len(lengths) != 1:
            raise ModelError(f"the scanned inputs have the lengths {sorted(lengths)}, expected one")
        kinds = _types(self.body)[self.states :]
        outputs: list[list[Array]] = [[] for _ in kinds]
        for step in range(lengths.pop()):
            elements = [value[step, ...] for value in scanned]
            results = run_module(self.body, (*states, *elements, *captures), env.iteration(step))
            states = list(results[: self.states])
            for parts, result in zip(outputs, results[self.states :], strict=True):
                parts.append(np.asarray(result))
        stacked = (
            _stack(parts[:: -1 if backwards else 1], axis, kind, env)
            for parts, axis, kind, backwards in zip(outputs, self.output_axes, kinds, self.output_reversed, strict=True)
        )
        return (*states, *stacked)

    def modules(self) -> tuple[Module, ...]:
        return (self.body,)
