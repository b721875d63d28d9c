"""Constant, ConstantOfShape, Identity."""

from __future__ import annotations

import numpy as np

from argosy.errors import ModelError
from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.protos import read_tensor
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.dim import Dim
from argosy.ir.dtype import FLOAT32, INT64, STRING, Array
from argosy.ir.literal import Literal
from argosy.ir.module import Value
from argosy.ops.view import Broadcast

__all__ = ["Constant", "ConstantOfShape", "Identity", "densify"]


@onnx_op("Constant")
def Constant(node: Node) -> Value:
    """The value of whichever attribute is given: a tensor, a sparse tensor, or a scalar or list of one type."""
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
        node.fail("has none of the attributes that give a constant its value")
    tensor = sparse.sparse_tensor
    values = read_tensor(tensor.values, node.scope.model.external, "sparse_value")
    indices = read_tensor(tensor.indices, node.scope.model.external, "sparse_value")
    return node.constant(densify(values, indices.array(), tuple(tensor.dims)))


def densify(values: Literal, indices: Array, shape: tuple[int, ...]) -> Array:
    """A sparse tensor as an array; its indices are flat (1-D) or one row of coordinates for each value (onnx.proto)."""
    dense = np.zeros(shape, values.dtype.numpy)
    try:
        if indices.ndim == 1:
            dense.reshape(-1)[indices] = values.array()
        else:
            dense[tuple(indices.T)] = values.array()
    except (IndexError, ValueError) as error:
        raise ModelError(f"the sparse tensor's indices do not fit its dims {list(shape)}: {error}") from None
    return dense


@onnx_op("ConstantOfShape")
def ConstantOfShape(node: Node) -> Value:
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
def Identity(node: Node) -> Value:
    """The operand itself."""
    return node.input(0)
