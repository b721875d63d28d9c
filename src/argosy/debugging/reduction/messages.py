"""From our types and arrays to the messages of the `onnx` package: values, tensors, their bytes beside the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import onnx
from onnx import numpy_helper

from argosy.debugging.reduction.nodes import graphs_of
from argosy.frontends.onnx.external_data import ExternalData
from argosy.frontends.onnx.protos import ELEMENT_TYPES, read_tensor
from argosy.ir.dim import lone_symbol
from argosy.ir.dtype import DType
from argosy.ir.types import MapType, OptionalType, SequenceType, TensorType, Type

__all__ = ["embed_tensors", "renamed", "tensor_message", "value_message"]

_NUMBERS: Final[dict[DType, int]] = {dtype: number for number, dtype in ELEMENT_TYPES.items()}


def value_message(name: str, kind: Type | None) -> onnx.ValueInfoProto:
    """The value `name` of a type, or of none where that is not known.

    A dim that is a symbol alone keeps its name; another one that is no number stays open.
    """
    message = onnx.ValueInfoProto(name=name)
    if kind is not None:
        _write(message.type, kind)
    return message


def _write(message: onnx.TypeProto, kind: Type) -> None:
    if isinstance(kind, SequenceType):
        _write(message.sequence_type.elem_type, kind.element)
    elif isinstance(kind, OptionalType):
        _write(message.optional_type.elem_type, kind.element)
    elif isinstance(kind, MapType):
        message.map_type.key_type = _NUMBERS[kind.key]
        _write(message.map_type.value_type, kind.value)
    else:
        _write_tensor(message.tensor_type, kind)


def _write_tensor(message: onnx.TypeProto.Tensor, kind: TensorType) -> None:
    message.elem_type = _NUMBERS[kind.dtype]
    if kind.dims is None:
        return
    message.shape.SetInParent()
    for dim in kind.dims:
        entry = message.shape.dim.add()
        symbol = lone_symbol(dim)
        if isinstance(dim, int):
            entry.dim_value = dim
        elif symbol is not None:
            entry.dim_param = symbol.name


def tensor_message(name: str, array: Any) -> onnx.TensorProto:
    """The tensor `name` with the elements of an array."""
    return numpy_helper.from_array(np.ascontiguousarray(array).reshape(np.shape(array)), name)


def embed_tensors(model: onnx.ModelProto, external: ExternalData) -> None:
    """Put the bytes of every tensor that lies in a file beside the model, or further on in its own, into the message.

    Raises ModelError where a file is missing or too short.
    """
    for tensor in _tensors(model):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raw = read_tensor(tensor, external, f"tensor {tensor.name!r}").stored
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
            tensor.raw_data = raw.view(np.uint8).tobytes()


def _tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    nodes: list[onnx.NodeProto] = [node for function in model.functions for node in function.node]
    graphs = [model.graph]
    while nodes or graphs:
        if graphs:
            graph = graphs.pop()
            yield from graph.initializer
            yield from (part for sparse in graph.sparse_initializer for part in (sparse.values, sparse.indices))
            nodes.extend(graph.node)
            continue
        node = nodes.pop()
        graphs.extend(graphs_of(node))
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)


def renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """The node with other names for what it reads and gives, in its bodies too."""
    copied = onnx.NodeProto()
    copied.CopyFrom(node)
    _rename(copied, names)
    return copied


def _rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    node.input[:] = [names.get(name, name) for name in node.input]
    node.output[:] = [names.get(name, name) for name in node.output]
    for body in graphs_of(node):
        own = {entry.name for entry in (*body.input, *body.initializer)}
        own.update(name for inner in body.node for name in inner.output)
        outer = {old: new for old, new in names.items() if old not in own}
        for inner in body.node:
            _rename(inner, outer)
        for entry in body.output:
            entry.name = outer.get(entry.name, entry.name)
