"""Functions: those that a model brings along, and the bodies that the standard gives for its own ops.

A standard body is used only where there is no handler. Bodies are inlined, with the attributes of the call
put in place of the references to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from argosy.errors import ModelError
from argosy.frontends.onnx.domains import Opsets, canonical_domain
from argosy.frontends.onnx.node import node_label
from argosy.frontends.onnx.protos import ELEMENT_TYPES
from argosy.ir.dtype import BOOL, FLOAT32, FLOAT64, INT64, DType
from argosy.ir.module import Value
from argosy.ir.types import SequenceType, TensorType, Type

if TYPE_CHECKING:
    import onnx

__all__ = ["Functions"]

Body: TypeAlias = Callable[[Sequence[Value | None]], "onnx.FunctionProto"]
Visit: TypeAlias = Callable[["onnx.NodeProto", str, Opsets], None]
_NUMBERS: dict[DType, int] = {dtype: number for number, dtype in ELEMENT_TYPES.items()}


class Functions:
    """The functions that one model can call."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        self._proto = proto
        self._local = {
            (canonical_domain(function.domain), function.name, getattr(function, "overload", "")): function
            for function in proto.functions
        }

    def find(self, node: onnx.NodeProto, domain: str, version: int) -> Body | None:
        """How to get the body for a call of `node`, or None where there is none."""
        local = self._local.get((domain, node.op_type, getattr(node, "overload", "")))
        if local is not None:
            return lambda _inputs: local
        return _standard_body(node, domain, version)

    def visit_nodes(self, opsets: Opsets, visit: Visit) -> None:
        """Call `visit` on every node of the model: graph, subgraphs, and the functions that the model brings along."""
        _visit_graph(self._proto.graph.node, opsets, "", visit)
        for function in self._proto.functions:
            _visit_graph(function.node, opsets.for_function(function.opset_import), f"{function.name}/", visit)

    def bind_attributes(self, body: onnx.FunctionProto, call: onnx.NodeProto, given: set[str]) -> list[onnx.NodeProto]:
        """The body's nodes with references to the function's attributes replaced by the values of the call.

        Inputs of the function that the call leaves out (`given` has those that it gives) become absent.
        """
        values = {attribute.name: attribute for attribute in body.attribute_proto}
        values.update({attribute.name: attribute for attribute in call.attribute})
        known = set(body.attribute) | {attribute.name for attribute in body.attribute_proto}
        unknown = [a.name for a in call.attribute if a.name not in known and (body.attribute or body.attribute_proto)]
        if unknown and (canonical_domain(body.domain), body.name, getattr(body, "overload", "")) in self._local:
            hint = f"it has {', '.join(sorted(known))}"
            raise ModelError(f"attribute {unknown[0]!r} is not one of the function {body.name}", hint=hint)
        absent = set(body.input) - given
        return [_bind_node(node, values, absent) for node in body.node]


def _visit_graph(nodes: Iterable[onnx.NodeProto], opsets: Opsets, prefix: str, visit: Visit) -> None:
    for index, node in enumerate(nodes):
        label = node_label(node, index, prefix)
        visit(node, label, opsets)
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs) if attribute.type in (5, 10) else ():
                _visit_graph(graph.node, opsets, f"{label}/{attribute.name}/", visit)


def _bind_node(node: onnx.NodeProto, values: dict[str, onnx.AttributeProto], absent: set[str]) -> onnx.NodeProto:
    bound = type(node)()
    bound.CopyFrom(node)
    del bound.attribute[:]
    for position, name in enumerate(bound.input):
        if name in absent:
            bound.input[position] = ""
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            copy = bound.attribute.add()
            copy.CopyFrom(attribute)
            for graph in (copy.g, *copy.graphs) if copy.type in (5, 10) else ():
                inner = [_bind_node(entry, values, absent) for entry in graph.node]
                del graph.node[:]
                graph.node.extend(inner)
        elif attribute.ref_attr_name in values:
            copy = bound.attribute.add()
            copy.CopyFrom(values[attribute.ref_attr_name])
            copy.name = attribute.name
    return bound


def _standard_body(node: onnx.NodeProto, domain: str, version: int) -> Body | None:
    import onnx  # noqa: PLC0415 - an optional extra

    if not onnx.defs.has(node.op_type, domain):
        return None
    try:
        schema: Any = onnx.defs.get_schema(node.op_type, version, domain)  # its stubs lack the function bodies
    except onnx.defs.SchemaError:
        return None
    if schema.has_function:
        versions = [found for found in schema.function_opset_versions if found <= version]
        if versions:
            body = onnx.FunctionProto.FromString(schema.get_function_with_opset_version(max(versions)))
            # The body refers to attributes that the call may leave out; their defaults stand in the schema only.
            body.attribute_proto.extend(
                entry.default_value for entry in schema.attributes.values() if entry.default_value.name
            )
            return lambda _inputs: body
    if schema.has_context_dependent_function:
        versions = [found for found in schema.context_dependent_function_opset_versions if found <= version]
        if versions:
            return lambda inputs: _context_body(schema, max(versions), node, inputs)
    return None


def _context_body(
    schema: Any, version: int, node: onnx.NodeProto, inputs: Sequence[Value | None]
) -> onnx.FunctionProto:
    import onnx  # noqa: PLC0415

    types = [onnx.TypeProto() if value is None else _type_message(value.type) for value in inputs]
    inside, outside = _bridged(node.op_type, [kind.tensor_type.elem_type for kind in types])
    for index, element in inside.items():
        types[index].tensor_type.elem_type = element
    messages = [kind.SerializeToString() for kind in types]
    text = schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), messages)
    body = onnx.FunctionProto.FromString(text)
    if not body.node:
        raise ModelError(f"the standard gives no body of {node.op_type} for these inputs")
    for index, element in inside.items():
        _cast_input(body, index, element)
    for index, element in outside.items():
        _cast_output(body, index, element)
    return body


def _bridged(op: str, elements: list[int]) -> tuple[dict[int, int], dict[int, int]]:
    """The element types to cast inputs to, and outputs from, where the body that ONNX makes is wrong for those given.

    CenterCropPad mixes a shape of int32 with int64. Attention multiplies queries and keys of one type with values of
    another, and puts minus infinity into a mask of integers. Elements are numbers of TensorProto, 0 for an absent one.
    """
    if op == "CenterCropPad":
        return ({1: _NUMBERS[INT64]} if elements[1] != _NUMBERS[INT64] else {}), {}
    if op != "Attention" or len(elements) < 3:
        return {}, {}
    like = {0: 0, 1: 0, 2: 2, 4: 0, 5: 2}  # queries, keys, values, past keys and values
    given = {index: elements[index] for index in like if index < len(elements) and elements[index]}
    if any(element != elements[like[index]] for index, element in given.items()):
        return {}, {}  # an error, which the body finds
    inside, outside = {}, {}
    wide = elements[0]
    if elements[0] != elements[2]:
        wide = _NUMBERS[FLOAT64 if _NUMBERS[FLOAT64] in given.values() else FLOAT32]
        inside = dict.fromkeys(given, wide)
        outside = {0: elements[0], 1: elements[0], 2: elements[2], 3: elements[0]}
    if elements[3:4] and elements[3] not in (0, _NUMBERS[BOOL], wide):
        inside[3] = wide
    return inside, outside


def _cast_input(body: onnx.FunctionProto, index: int, element: int) -> None:
    """Let the body take input `index` in any type, and cast it to the one that it was made for."""
    from onnx import helper  # noqa: PLC0415

    name = body.input[index]
    body.input[index] = f"{name}_given"
    nodes = [helper.make_node("Cast", [body.input[index]], [name], to=element), *body.node]
    del body.node[:]
    body.node.extend(nodes)


def _cast_output(body: onnx.FunctionProto, index: int, element: int) -> None:
    """Cast output `index` of the body to a type, where the body gives it."""
    from onnx import helper  # noqa: PLC0415

    if index >= len(body.output) or not any(body.output[index] in entry.output for entry in body.node):
        return
    name, inner = body.output[index], f"{body.output[index]}_computed"
    for entry in body.node:
        for names in (entry.input, entry.output):
            for position, found in enumerate(names):
                if found == name:
                    names[position] = inner
    body.node.append(helper.make_node("Cast", [inner], [name], to=element))


def _type_message(kind: Type) -> onnx.TypeProto:
    """One of our types as a TypeProto; symbolic dims stay without a value."""
    import onnx  # noqa: PLC0415

    message = onnx.TypeProto()
    if isinstance(kind, TensorType):
        message.tensor_type.elem_type = _NUMBERS[kind.dtype]
        if kind.dims is not None:
            message.tensor_type.shape.SetInParent()
            for dim in kind.dims:
                entry = message.tensor_type.shape.dim.add()
                if isinstance(dim, int):
                    entry.dim_value = dim
    elif isinstance(kind, SequenceType):
        message.sequence_type.elem_type.CopyFrom(_type_message(kind.element))
    else:
        raise ModelError(f"no function body can be made for an input of type {kind}")
    return message
