"""Tensors made from little: Constant, ConstantOfShape, Identity, Range, EyeLike, Trilu."""

from __future__ import annotations

import numpy as np

from argosy.frontends.onnx.advice import attributes_hint
from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.protos import read_sparse
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.dim import Dim
from argosy.ir.dtype import FLOAT32, INT64, STRING
from argosy.ir.literal import Literal
from argosy.ir.module import Value
from argosy.ops.index import Range, Triangle
from argosy.ops.view import Broadcast, Reshape, Shape, Squeeze

__all__ = ["counted"]


@onnx_op("Constant")
def constant(node: Node) -> Value:
    """The value of whichever attribute is given: a tensor, a sparse tensor, or a scalar or list of one type."""
    given = [entry.name for entry in node.proto.attribute]
    if len(given) > 1:
        node.fail(f"has the attributes {', '.join(given)}, expected one that gives the value", hint="leave one of them")
    if node.has("value"):
        return node.builder.constant(node.attr_tensor("value"))
    if node.has("value_float"):
        return node.constant(node.attr_float("value_float"), FLOAT32)
    if node.has("value_floats"):
        return node.constant(np.array(node.attr_floats("value_floats"), np.float32))
    if node.has("value_int"):
        return node.constant(node.attr_int("value_int"), INT64)
    if node.has("value_ints"):
        return node.constant(np.array(node.attr_ints("value_ints"), np.int64))
    if node.has("value_string"):
        return node.constant(node.attr_string("value_string"), STRING)
    if node.has("value_strings"):
        return node.constant(np.array(node.attr_strings("value_strings"), object))
    sparse = node.raw_attribute("sparse_value")
    if sparse is None:
        hint = attributes_hint(node.domain, "Constant", node.version)
        node.fail("has none of the attributes that give a constant its value", hint=hint)
    return node.constant(read_sparse(sparse.sparse_tensor, node.scope.model.external, "attribute 'sparse_value'"))


@onnx_op("ConstantOfShape")
def constant_of_shape(node: Node) -> Value:
    """One element repeated: a splat where the shape is known in numbers, else a broadcast scalar."""
    element = node.attr_tensor("value") if node.has("value") else Literal.of(np.zeros(1, np.float32))
    if element.size != 1:
        node.fail(f"attribute 'value' holds {element.size} elements, expected one")
    shape = node.known_ints(0)
    if shape is not None and not any(isinstance(dim, Dim) for dim in shape):
        sizes = [int(dim) for dim in shape]
        if any(size < 0 for size in sizes):
            node.fail(f"the shape {sizes} holds a negative size")
        return node.builder.constant(Literal.splat(element.item(), element.dtype, sizes))
    scalar = node.builder.constant(element.array().reshape(()))
    return node.add(Broadcast(), scalar, node.input(0))


@onnx_op("Identity")
def identity(node: Node) -> Value:
    """The operand itself."""
    return node.input(0)


@onnx_op("Range", since=11)
def range_(node: Node) -> Value:
    """From start to before limit by delta; short floats are computed in float32, as `stash_type` 1 asks."""
    if node.attr_int("stash_type", 1) != 1:
        node.unsupported("attribute 'stash_type' other than 1 (float32) is not supported")
    return node.add(Range(), node.input(0), node.input(1), node.input(2))


def counted(node: Node, x: Value, axis: int) -> Value:
    """0, 1, 2 … as many as `x` is long along `axis` (from the front), int64."""
    size = node.add(Squeeze((0,)), node.add(Shape(axis, axis + 1), x))
    return node.add(Range(), node.constant(0, INT64), size, node.constant(1, INT64))


@onnx_op("EyeLike", since=9)
def eye_like(node: Node) -> Value:
    """Ones on diagonal `k`: where column number equals row number plus k."""
    x, k = node.input(0), node.attr_int("k", 0)
    target = node.attr_dtype("dtype", x.dtype)
    if x.rank != 2:
        node.fail(f"the input is {x.type}, expected rank 2")
    rows, columns = node.add(Reshape((-1, 1)), counted(node, x, 0)), counted(node, x, 1)
    return node.pointwise(lambda row, column: (row + k).eq(column).convert(target), rows, columns)


@onnx_op("Trilu", since=14)
def trilu(node: Node) -> Value:
    """The upper or lower triangle, zero elsewhere."""
    return node.add(Triangle(node.attr_flag("upper", default=True)), node.input(0), node.optional(1))
