"""Whether the texts of a model are texts: protobuf's Python API gives a string field that is not UTF-8 as bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from argosy.errors import ModelError

if TYPE_CHECKING:
    import onnx

__all__ = ["check_texts"]


def check_texts(model: onnx.ModelProto) -> None:
    """Raise ModelError for a name, domain or other text of the model that is not UTF-8."""
    _texts("the model", model.producer_name, model.producer_version, model.domain)
    _opsets(model.opset_import)
    _graph(model.graph)
    for function in model.functions:
        _texts("a function", function.name, function.domain, *function.input, *function.output, *function.attribute)
        _opsets(function.opset_import)
        _nodes(function.node)
        _attributes(function.attribute_proto)


def _opsets(imports: Iterable[onnx.OperatorSetIdProto]) -> None:
    for entry in imports:
        _texts("opset_import", entry.domain)


def _graph(graph: onnx.GraphProto) -> None:
    _texts("a graph", graph.name)
    for entry in (*graph.input, *graph.output):
        _texts("an input or output", entry.name)
        _dims(entry.type)
    for tensor in graph.initializer:
        _tensor(tensor)
    for sparse in graph.sparse_initializer:
        _tensor(sparse.values)
    _nodes(graph.node)


def _dims(kind: onnx.TypeProto) -> None:
    for dim in kind.tensor_type.shape.dim if kind.HasField("tensor_type") else ():
        _texts("a dim", dim.dim_param)
    if kind.HasField("sequence_type"):
        _dims(kind.sequence_type.elem_type)
    elif kind.HasField("optional_type"):
        _dims(kind.optional_type.elem_type)
    elif kind.HasField("map_type"):
        _dims(kind.map_type.value_type)


def _tensor(tensor: onnx.TensorProto) -> None:
    _texts("a tensor", tensor.name, *(text for entry in tensor.external_data for text in (entry.key, entry.value)))


def _nodes(nodes: Iterable[onnx.NodeProto]) -> None:
    for node in nodes:
        _texts("a node", node.name, node.op_type, node.domain, *node.input, *node.output)
        _attributes(node.attribute)


def _attributes(attributes: Iterable[onnx.AttributeProto]) -> None:
    for attribute in attributes:
        _texts("an attribute", attribute.name, attribute.ref_attr_name)
        if attribute.HasField("t"):
            _tensor(attribute.t)
        if attribute.HasField("g"):
            _graph(attribute.g)
        for graph in attribute.graphs:
            _graph(graph)


def _texts(where: str, *texts: Any) -> None:
    for text in texts:
        if isinstance(text, bytes):
            raise ModelError(f"the text {text!r} of {where} is not UTF-8", hint="the file is damaged")
