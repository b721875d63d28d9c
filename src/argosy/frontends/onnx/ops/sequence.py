"""Sequence and optional ops. SequenceMap is a loop, as the standard's function body says."""

from __future__ import annotations

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.protos import read_type
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Value
from argosy.ir.types import OptionalType, TensorType
from argosy.ops.sequence import (
    MakeOptional,
    OptionalGetElement,
    OptionalHasElement,
    SequenceAt,
    SequenceConcat,
    SequenceConstruct,
    SequenceErase,
    SequenceInsert,
    SequenceLength,
    SequenceSplit,
)

__all__: list[str] = []


@onnx_op("SequenceEmpty", since=11)
def sequence_empty(node: Node) -> Value:
    """No elements; of their type only the element type is known, float32 unless `dtype` says otherwise."""
    return node.add(SequenceConstruct(TensorType(node.attr_dtype("dtype", FLOAT32), None)))


@onnx_op("SequenceConstruct", since=11)
def sequence_construct(node: Node) -> Value:
    """The inputs as elements."""
    return node.add(SequenceConstruct(), *(node.input(index) for index in range(max(1, len(node.inputs)))))


@onnx_op("SequenceInsert", since=11)
def sequence_insert(node: Node) -> Value:
    """Before a position, or at the end."""
    return node.add(SequenceInsert(), node.input(0), node.input(1), node.optional(2))


@onnx_op("SequenceErase", since=11)
def sequence_erase(node: Node) -> Value:
    """At a position, or at the end."""
    return node.add(SequenceErase(), node.input(0), node.optional(1))


@onnx_op("SequenceAt", since=11)
def sequence_at(node: Node) -> Value:
    """One element."""
    return node.add(SequenceAt(), node.input(0), node.input(1))


@onnx_op("SequenceLength", since=11)
def sequence_length(node: Node) -> Value:
    """The number of elements."""
    return node.add(SequenceLength(), node.input(0))


@onnx_op("ConcatFromSequence", since=11)
def concat_from_sequence(node: Node) -> Value:
    """Along `axis`, a new one where `new_axis` says so."""
    return node.add(SequenceConcat(node.attr_int("axis"), node.attr_flag("new_axis")), node.input(0))


@onnx_op("SplitToSequence", since=11)
def split_to_sequence(node: Node) -> Value:
    """`keepdims` matters only without sizes."""
    op = SequenceSplit(node.attr_int("axis", 0), node.attr_flag("keepdims", default=True))
    return node.add(op, node.input(0), node.optional(1))


@onnx_op("Optional", since=15)
def optional(node: Node) -> Value:
    """Holding the input, or absent with the element type of attribute `type`."""
    kind = node.raw_attribute("type")
    if node.optional(0) is not None:
        return node.add(MakeOptional(), node.input(0))
    if kind is None:
        node.fail("has neither an input nor the attribute 'type'")
    return node.add(MakeOptional(read_type(kind.tp, "optional", "attribute 'type'")))


@onnx_op("OptionalHasElement", since=15)
def optional_has_element(node: Node) -> Value:
    """Known while importing, unless the input is an optional."""
    value = node.optional(0)
    if value is None or not isinstance(value.type, OptionalType):
        return node.constant(value is not None)
    return node.add(OptionalHasElement(), value)


@onnx_op("OptionalGetElement", since=15)
def optional_get_element(node: Node) -> Value:
    """The input itself where it is no optional."""
    value = node.input(0)
    return node.add(OptionalGetElement(), value) if isinstance(value.type, OptionalType) else value
