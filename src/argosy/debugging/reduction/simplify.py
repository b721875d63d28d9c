"""Simpler values: zeros, ones, 0 1 2 0 1 2 …, whole numbers, shorter lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import numpy_helper

from argosy.debugging.reduction.case import Case
from argosy.debugging.reduction.messages import tensor_message

__all__ = ["simplify_values"]

Holds: TypeAlias = Callable[[Case], bool]


def simplify_values(case: Case, holds: Holds, *, integers_only: bool = False) -> Case:
    """The case with each input and initializer as the first of these values with which it still holds."""
    for name in [*case.inputs, *(tensor.name for tensor in case.model.graph.initializer)]:
        for value in _simpler(_value(case, name), integers_only=integers_only):
            tried = _with_value(case, name, value)
            if holds(tried):
                case = tried
                break
    return case


def _simpler(value: Any, *, integers_only: bool) -> Iterator[Any]:
    """Simpler values of the same type and shape, the simplest first; nothing where it is as simple already."""
    if isinstance(value, list):
        yield from (value[:length] for length in (0, 1) if length < len(value))
        return
    if not isinstance(value, np.ndarray) or value.dtype.kind in "OUSc" or not value.size:
        return
    if integers_only and value.dtype.kind not in "iub":
        return
    counted = (np.arange(value.size) % 3).reshape(value.shape).astype(value.dtype)
    with np.errstate(all="ignore"):
        rounded = np.rint(value.astype(np.float64)).astype(value.dtype)
    for simple in (np.zeros_like(value), np.ones_like(value), counted, rounded):
        if np.array_equal(simple, value):
            return
        yield simple


def _value(case: Case, name: str) -> Any:
    if name in case.inputs:
        return case.inputs[name]
    return next(numpy_helper.to_array(tensor) for tensor in case.model.graph.initializer if tensor.name == name)


def _with_value(case: Case, name: str, value: Any) -> Case:
    if name in case.inputs:
        return Case(case.model, {**case.inputs, name: value})
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for tensor in model.graph.initializer:
        if tensor.name == name:
            tensor.CopyFrom(tensor_message(name, value))
    return Case(model, case.inputs)
