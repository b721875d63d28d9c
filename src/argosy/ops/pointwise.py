"""Pointwise computation: a formula applied element by element, with broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from argosy.errors import InternalError
from argosy.ir import dim as dims
from argosy.ir.dim import Dim
from argosy.ir.dtype import DTYPES, Array, DType, dtype_of
from argosy.ir.formula import Constant, Formula, Step
from argosy.ir.module import Value
from argosy.ir.op import Known, Op, register
from argosy.ir.types import TensorType, Type
from argosy.ops.numpy_scalar import NUMPY, convert
from argosy.ops.shapes import broadcast

__all__ = ["Pointwise"]


@register
@dataclass(frozen=True, slots=True)
class Pointwise(Op):
    """`result[i] = formula(operand0[i], operand1[i], …)` over the broadcast of the operands."""

    name = "pointwise"
    formula: Formula

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        tensors = [_present(operand).tensor for operand in operands]
        result = self.formula.result_dtype([tensor.dtype for tensor in tensors])
        return (TensorType(result, broadcast(*(tensor.shape for tensor in tensors))),)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(self.formula.result_dtype([_present(operand).dtype for operand in operands]), None),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        return (evaluate_formula(self.formula, [np.asarray(value) for value in values]),)

    def known(self, *operands: Value | None) -> tuple[Known | None, ...] | None:
        arrays = [_present(operand).known for operand in operands]
        if any(array is None for array in arrays):
            return None
        types = [_present(operand).dtype for operand in operands]
        if not any(isinstance(item, Dim) for array in arrays if array is not None for item in array.flat):
            plain = [
                np.array(array.tolist(), dtype=kind.numpy).reshape(array.shape)  # of an empty one, tolist drops axes
                for array, kind in zip(arrays, types, strict=True)
                if array is not None
            ]
            return (evaluate_formula(self.formula, plain).astype(object),)
        return _known_dims(self.formula, arrays, types)


def _present(operand: Value | None) -> Value:
    if operand is None:
        raise InternalError("a pointwise operand is absent")
    return operand


@np.errstate(all="ignore")  # overflow, NaN and division by zero have their rules
def evaluate_formula(formula: Formula, values: list[Array]) -> Array:
    """The formula in numpy: computed in the compute types, rounded once to the result's storage type."""
    storage: list[DType] = [dtype_of(value.dtype) for value in values]
    storage.extend(formula.step_dtypes(storage))
    computed: list[Array] = [
        value.astype(kind.compute.numpy) if kind.compute is not kind else value
        for value, kind in zip(values, storage, strict=False)
    ]
    for step, kind in zip(formula.steps, storage[formula.arity :], strict=True):
        computed.append(_evaluate_step(step, kind, storage, computed))
    result = computed[-1]
    target = storage[-1]
    shape = np.broadcast_shapes(*(value.shape for value in values))
    if result.shape != shape:
        result = np.broadcast_to(result, shape)
    return np.asarray(convert(np.asarray(result), target))


def _evaluate_step(step: Step, kind: DType, storage: list[DType], computed: list[Array]) -> Array:
    if step.primitive == "convert":
        source = step.args[0]
        value = computed[source] if isinstance(source, int) else np.asarray(source.value)
        rounded = convert(value, kind)
        return rounded.astype(kind.compute.numpy) if kind.compute is not kind else rounded
    typed = [storage[ref] for ref in step.args if isinstance(ref, int) and storage[ref].name != "bool"]
    neighbour = typed[0].compute if typed else DTYPES["bool"]
    # A constant takes the type of the operand beside it, but an exponent of integers may be a fraction.
    own = step.primitive == "pow" and neighbour.is_integer
    args = [
        np.asarray(ref.value, dtype=None if own else neighbour.numpy) if isinstance(ref, Constant) else computed[ref]
        for ref in step.args
    ]
    result = np.asarray(NUMPY[step.primitive](*args))
    return result if result.dtype == kind.compute.numpy else result.astype(kind.compute.numpy)


_ON_DIMS: Final[dict[str, Callable[..., Any]]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: 0 - a,
    "min": dims.dim_min,
    "max": dims.dim_max,
    "mod": dims.mod,
    "eq": dims.equal,
}


def _known_dims(formula: Formula, arrays: list[Known | None], types: list[DType]) -> tuple[Known | None, ...] | None:
    """The formula over numbers and dims, where every step has a meaning on dims and every answer is certain."""
    kinds = [*types, *formula.step_dtypes(types)]
    results: list[Any] = list(arrays)
    for step in formula.steps:
        args = [np.asarray(ref.value, dtype=object) if isinstance(ref, Constant) else results[ref] for ref in step.args]
        done = _dims_step(step, args, kinds)
        if done is None:
            return None
        results.append(done)
    return (np.asarray(results[-1], dtype=object),)


def _dims_step(step: Step, args: list[Any], kinds: list[DType]) -> Known | None:
    if step.primitive == "convert":
        # Shapes are far below the limits of the integer types; into anything else a dim has no exact value.
        if step.dtype is None or step.dtype.name not in ("int64", "int32"):
            return None
        return np.asarray(
            np.frompyfunc(lambda item: item if isinstance(item, Dim) else int(item), 1, 1)(args[0]), object
        )
    if step.primitive == "select":
        return np.where(args[0].astype(bool), args[1], args[2]).astype(object)
    if step.primitive == "div":
        return _dims_div(args)
    function = _ON_DIMS.get(step.primitive)
    if function is None or any(isinstance(ref, int) and not kinds[ref].is_integer for ref in step.args):
        return None
    found = np.frompyfunc(function, len(args), 1)(*args)
    array = np.asarray(found, dtype=object)
    return None if any(item is None for item in array.flat) else array


def _dims_div(args: list[Any]) -> Known | None:
    """Truncating division equals floor division where neither side can be negative and the divisor not zero."""
    for left in np.asarray(args[0], dtype=object).flat:
        low = dims.bounds(left)[0]
        if low is None or low < 0:
            return None
    for right in np.asarray(args[1], dtype=object).flat:
        low = dims.bounds(right)[0]
        if low is None or low < 1:
            return None
    return np.asarray(np.frompyfunc(dims.floordiv, 2, 1)(*args), dtype=object)
