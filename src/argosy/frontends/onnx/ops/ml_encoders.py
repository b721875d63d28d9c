"""ai.onnx.ml: LabelEncoder, CategoryMapper, OneHotEncoder, Binarizer, ArrayFeatureExtractor."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import ML, onnx_op
from argosy.ir.dtype import FLOAT32, INT64, STRING, Array, DType
from argosy.ir.module import Value
from argosy.ops.index import Gather
from argosy.ops.strings import MapLabels
from argosy.ops.view import Reshape, Unsqueeze

__all__: list[str] = []

_DEFAULTS: Final = {"strings": "_Unused", "int64s": -1, "floats": -0.0}


@onnx_op("LabelEncoder", since=2, domain=ML)
def label_encoder(node: Node) -> Value:
    """Keys and values as lists of one type each, from version 4 on also as tensors."""
    keys, _ = _listed(node, "keys")
    values, kind = _listed(node, "values")
    if kind == "tensor":
        return node.add(MapLabels(), node.input(0), keys, values, _default_tensor(node, values.dtype))
    node.ignore("default_string", "default_int64", "default_float", "default_tensor")
    singular = f"default_{kind.removesuffix('s')}"
    if kind == "strings":
        default = node.constant(node.attr_string(singular, "_Unused"), STRING)
    elif kind == "int64s":
        default = node.constant(node.attr_int(singular, -1), INT64)
    else:
        default = node.constant(node.attr_float(singular, -0.0), FLOAT32)
    return node.add(MapLabels(), node.input(0), keys, values, default)


def _listed(node: Node, what: str) -> tuple[Value, str]:
    """The keys or the values, and the kind of the attribute that holds them."""
    given = [kind for kind in (*_DEFAULTS, "tensor") if node.has(f"{what}_{kind}")]
    if len(given) != 1:
        node.fail(f"has {len(given)} of the attributes '{what}_…', expected one")
    kind, name = given[0], f"{what}_{given[0]}"
    if kind == "tensor":
        return node.builder.constant(node.attr_tensor(name)), kind
    array: Array
    if kind == "strings":
        array = np.array(node.attr_strings(name), object)
    elif kind == "int64s":
        array = np.array(node.attr_ints(name), np.int64)
    else:
        array = np.array(node.attr_floats(name), np.float32)
    return node.constant(array), kind


def _default_tensor(node: Node, dtype: DType) -> Value:
    node.ignore("default_string", "default_int64", "default_float")
    if node.has("default_tensor"):
        return node.builder.constant(node.attr_tensor("default_tensor"))
    kind = "strings" if dtype is STRING else "int64s" if dtype.is_integer else "floats"
    return node.constant(_DEFAULTS[kind], dtype)


@onnx_op("LabelEncoder", domain=ML)
def label_encoder_1(node: Node) -> Value:
    """Version 1: strings to their positions in a list, or positions to strings."""
    x = node.input(0)
    classes = node.constant(np.array(node.attr_strings("classes_strings"), object))
    positions = node.constant(np.arange(len(node.attr_strings("classes_strings"))), INT64)
    unknown_string = node.constant(node.attr_string("default_string", "_Unused"), STRING)
    unknown_position = node.constant(node.attr_int("default_int64", -1), INT64)
    if x.dtype is STRING:
        return node.add(MapLabels(), x, classes, positions, unknown_position)
    return node.add(MapLabels(), x, positions, classes, unknown_string)


@onnx_op("CategoryMapper", domain=ML)
def category_mapper(node: Node) -> Value:
    """Strings to the integers beside them, or integers to strings, as the type of the input says."""
    x = node.input(0)
    texts, integers = node.attr_strings("cats_strings", ()), node.attr_ints("cats_int64s", ())
    if len(texts) != len(integers):
        node.fail(f"{len(texts)} cats_strings are given for {len(integers)} cats_int64s")
    strings, numbers = node.constant(np.array(texts, object)), node.constant(np.array(integers, np.int64))
    unknown_string = node.constant(node.attr_string("default_string", "_Unused"), STRING)
    unknown_number = node.constant(node.attr_int("default_int64", -1), INT64)
    if x.dtype is STRING:
        return node.add(MapLabels(), x, strings, numbers, unknown_number)
    return node.add(MapLabels(), x, numbers, strings, unknown_string)


@onnx_op("OneHotEncoder", domain=ML)
def one_hot_encoder(node: Node) -> Value:
    """A new last axis with a one at the category; all zeros for an unknown one, or with `zeros` = 0 an error."""
    x = node.input(0)
    texts, numbers = node.attr_strings("cats_strings", ()), node.attr_ints("cats_int64s", ())
    if bool(texts) == bool(numbers):
        node.fail("has both or neither of the attributes 'cats_strings' and 'cats_int64s', expected one")
    listed: Array = np.array(texts, object) if texts else np.array(numbers, np.int64)
    categories = node.constant(listed)
    if numbers:
        x = node.builder.convert(x, INT64)
    if not node.attr_flag("zeros", default=True):
        # Each by way of its position among the categories: that of an unknown one lies outside, which is an error.
        places = node.constant(np.arange(len(listed)), INT64)
        positions = node.add(MapLabels(), x, categories, places, node.constant(len(listed), INT64))
        x = node.add(Gather(0), categories, positions)
    column = node.add(Unsqueeze((-1,)), x)
    return node.pointwise(lambda left, right: left.eq(right).convert(FLOAT32), column, categories)


@onnx_op("Binarizer", domain=ML)
def binarizer(node: Node) -> Value:
    """1 above the threshold, else 0."""
    x, threshold = node.input(0), node.attr_float("threshold", 0.0)
    if x.dtype.is_integer:
        return _whole_binarizer(node, x, threshold)
    return node.pointwise(lambda value: (value > threshold).convert(x.dtype), x)


def _whole_binarizer(node: Node, x: Value, threshold: float) -> Value:
    """The same of integers, compared as such: what is above a fraction is above the whole number below it."""
    least = -(1 << (x.dtype.bits - 1)) if x.dtype.kind == "int" else 0
    most = least + (1 << x.dtype.bits) - 1
    if math.isnan(threshold) or threshold >= most:
        return node.pointwise(lambda value: (value > most).convert(x.dtype), x)  # none is
    if threshold < least:
        return node.pointwise(lambda value: (value >= least).convert(x.dtype), x)  # all are
    return node.pointwise(lambda value: (value > math.floor(threshold)).convert(x.dtype), x)


@onnx_op("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(node: Node) -> Value:
    """Elements along the last axis by index; a vector counts as a matrix of one row."""
    x = node.input(0)
    if x.rank == 1:
        x = node.add(Unsqueeze((0,)), x)
    return node.add(Gather(-1), x, node.add(Reshape((-1,)), node.input(1)))
