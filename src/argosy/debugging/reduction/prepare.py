"""Makes a model fit to be taken apart: weights in the message, nodes in order, constants as initializers."""

from __future__ import annotations

import onnx
from onnx import helper

from argosy.debugging.reduction.messages import embed_tensors, tensor_message, value_message
from argosy.debugging.reduction.nodes import graphs_of
from argosy.frontends.onnx.external_data import ExternalData
from argosy.frontends.onnx.order import in_order
from argosy.frontends.onnx.protos import read_sparse, read_type
from argosy.ir.binding import bind_types
from argosy.options import Dimensions

__all__ = ["prepare", "put_constants_aside"]

_CONSTANTS = {
    "value_int": onnx.TensorProto.INT64,
    "value_ints": onnx.TensorProto.INT64,
    "value_float": onnx.TensorProto.FLOAT,
    "value_floats": onnx.TensorProto.FLOAT,
    "value_string": onnx.TensorProto.STRING,
    "value_strings": onnx.TensorProto.STRING,
}


def prepare(model: onnx.ModelProto, external: ExternalData, dims: Dimensions) -> onnx.ModelProto:
    """A model of its own that says the same with `dims` bound: nodes sorted, what a run needs in it, nothing else.

    Raises ModelError for a cycle, and for weights that are missing; UsageError for dims that it does not have.
    """
    prepared = onnx.ModelProto()
    prepared.CopyFrom(model)
    embed_tensors(prepared, external)
    graph = prepared.graph
    for field in ("value_info", "quantization_annotation", "metadata_props", "doc_string"):
        graph.ClearField(field)
    prepared.ir_version = max(prepared.ir_version, 4)  # from which on initializers need not be inputs too
    if not prepared.opset_import:
        prepared.opset_import.append(helper.make_opsetid("", 1))
    for sparse in graph.sparse_initializer:
        name = sparse.values.name
        graph.initializer.append(tensor_message(name, read_sparse(sparse, external, f"sparse initializer {name!r}")))
    graph.ClearField("sparse_initializer")
    held = {tensor.name for tensor in graph.initializer}
    inputs = [entry for entry in graph.input if entry.name not in held]
    types = {entry.name: read_type(entry.type, entry.name, f"input {entry.name!r}") for entry in inputs}
    graph.ClearField("input")
    graph.input.extend(value_message(name, kind) for name, kind in bind_types(types, dims).items())
    put_constants_aside(graph)
    _sort(graph)
    return prepared


def _sort(graph: onnx.GraphProto) -> None:
    given = {entry.name for entry in graph.input} | {tensor.name for tensor in graph.initializer}
    nodes = [node for _, node in in_order(graph.node, given, "")]
    graph.ClearField("node")
    graph.node.extend(nodes)
    for node in graph.node:
        for body in graphs_of(node):
            _sort(body)


def put_constants_aside(graph: onnx.GraphProto) -> None:
    """Make initializers of the Constant nodes of a graph: they aren't what fails, and go along with who reads them."""
    nodes = list(graph.node)
    graph.ClearField("node")
    for node in nodes:
        tensor = _constant(node) if node.op_type == "Constant" and node.domain in ("", "ai.onnx") else None
        if tensor is None:
            graph.node.append(node)
        else:
            graph.initializer.append(tensor)


def _constant(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """The tensor that a Constant gives; None for a form that stays a node."""
    if len(node.attribute) != 1 or len(node.output) != 1:
        return None
    attribute = node.attribute[0]
    if attribute.name == "value" and attribute.type == onnx.AttributeProto.TENSOR:
        tensor = onnx.TensorProto()
        tensor.CopyFrom(attribute.t)
        tensor.name = node.output[0]
        return tensor
    if attribute.name not in _CONSTANTS:
        return None
    value = helper.get_attribute_value(attribute)
    values = list(value) if attribute.name.endswith("s") else [value]
    dims = [len(values)] if attribute.name.endswith("s") else []
    return helper.make_tensor(node.output[0], _CONSTANTS[attribute.name], dims, values)
