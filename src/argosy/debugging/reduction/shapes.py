"""Smaller shapes: sizes that axes share shrink together, then each axis alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np
import onnx
from onnx import numpy_helper

from argosy.debugging.reduction.case import Case
from argosy.debugging.reduction.messages import tensor_message
from argosy.debugging.reduction.nodes import graphs_of, nodes_of

__all__ = ["fix_shapes", "shrink_shapes"]

Holds: TypeAlias = Callable[[Case], bool]
_Change: TypeAlias = Callable[[int], int]
_Size: TypeAlias = Callable[[str, int, int], int]
"""The new size of an axis: of which tensor, which axis, its size."""

_SHORT: Final = 64
"""Elements of a tensor of integers that may be sizes."""


def fix_shapes(case: Case) -> Case:
    """The case with the shapes of its inputs as its types."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for entry in model.graph.input:
        value = case.inputs[entry.name]
        if entry.type.HasField("tensor_type") and value is not None:
            shape = entry.type.tensor_type.shape
            shape.ClearField("dim")
            shape.SetInParent()
            for size in np.shape(value):
                shape.dim.add(dim_value=size)
    return Case(model, case.inputs)


def shrink_shapes(case: Case, holds: Holds) -> Case:
    """The case with every size that can be smaller as small as one of 1, 2 and repeated halves of it."""
    done: set[int] = set()
    while True:
        size = max((size for _, _, size in _axes(case) if size > 1 and size not in done), default=None)
        if size is None:
            break
        smaller = next((tried for tried in _everywhere(case, size) if holds(tried)), None)
        if smaller is None:
            done.add(size)
        case = smaller or case
    for name, axis, _ in list(_axes(case)):
        case = _shrink_axis(case, name, axis, holds)
    return case


def _shrink_axis(case: Case, name: str, axis: int, holds: Holds) -> Case:
    while True:
        sizes = {(other, at): size for other, at, size in _axes(case)}
        size = sizes[name, axis]
        if size <= 1 or list(sizes.values()).count(size) == 1:
            return case  # the only axis of a size was tried before
        for smaller in _targets(size):
            tried = _resized(case, _of_one_axis(name, axis, smaller))
            if holds(tried):
                case = tried
                break
        else:
            return case


def _axes(case: Case) -> Iterator[tuple[str, int, int]]:
    """Tensor, axis and size, of all inputs and initializers."""
    for name, value in case.inputs.items():
        if isinstance(value, np.ndarray):
            yield from ((name, axis, size) for axis, size in enumerate(value.shape))
    for tensor in case.model.graph.initializer:
        yield from ((tensor.name, axis, size) for axis, size in enumerate(tensor.dims))


def _targets(size: int) -> list[int]:
    return [smaller for smaller in dict.fromkeys((1, 2, size // 2)) if smaller < size]


def _everywhere(case: Case, size: int) -> Iterator[Case]:
    """The case with `size` smaller wherever it stands: in shapes with its multiples, in integers, in attributes."""
    for smaller in _targets(size):
        for change, attributes in itertools.product((_scaled(size, smaller), _exact(size, smaller)), (False, True)):
            yield _resized(case, _of_any_axis(change), change, attributes=attributes)


def _scaled(size: int, smaller: int) -> _Change:
    return lambda number: number // size * smaller if number > 0 and number % size == 0 else number


def _exact(size: int, smaller: int) -> _Change:
    return lambda number: smaller if number == size else number


def _of_any_axis(change: _Change) -> _Size:
    return lambda _name, _axis, size: change(size)


def _of_one_axis(name: str, axis: int, smaller: int) -> _Size:
    return lambda other, at, size: smaller if (other, at) == (name, axis) else size


def _resized(case: Case, size: _Size, numbers: _Change | None = None, *, attributes: bool = False) -> Case:
    """The case with the beginnings of its tensors, of other sizes; `numbers` changes what may be sizes among values."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    tensors = list(graph.initializer)
    graph.ClearField("initializer")
    for tensor in tensors:
        array = numpy_helper.to_array(tensor)
        smaller = _cut(tensor.name, array, size, numbers)
        graph.initializer.append(tensor if smaller is array else tensor_message(tensor.name, smaller))
    inputs = {
        name: _cut(name, value, size, numbers) if isinstance(value, np.ndarray) else value
        for name, value in case.inputs.items()
    }
    for entry in graph.input:
        for axis, dim in enumerate(entry.type.tensor_type.shape.dim):
            if dim.HasField("dim_value"):
                dim.dim_value = np.shape(inputs[entry.name])[axis]
    bodies = [body for node in nodes_of(graph) for body in graphs_of(node)]
    follow = [*graph.output, *(entry for body in bodies for entry in (*body.input, *body.output))]
    for entry in follow:  # the outputs' shapes are written when all is done
        for dim in entry.type.tensor_type.shape.dim:
            dim.Clear()
    if attributes and numbers is not None:
        for node in nodes_of(graph):
            _change_attributes(node, numbers)
    return Case(model, inputs)


def _cut(name: str, array: Any, size: _Size, numbers: _Change | None) -> Any:
    shape = tuple(size(name, axis, length) for axis, length in enumerate(array.shape))
    cut = array if shape == array.shape else array[tuple(slice(0, length) for length in shape)]
    if numbers is not None and array.ndim <= 1 and array.size <= _SHORT and array.dtype in (np.int32, np.int64):
        values = [numbers(int(number)) for number in cut.reshape(-1)]
        if values != cut.reshape(-1).tolist():
            cut = np.array(values, array.dtype).reshape(shape)
    return cut if cut is array else np.ascontiguousarray(cut).reshape(shape)


def _change_attributes(node: onnx.NodeProto, numbers: _Change) -> None:
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.INT:
            attribute.i = numbers(attribute.i)
        elif attribute.type == onnx.AttributeProto.INTS:
            attribute.ints[:] = [numbers(number) for number in attribute.ints]
