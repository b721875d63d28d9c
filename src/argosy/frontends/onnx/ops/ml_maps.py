"""ai.onnx.ml: what reads and makes maps: CastMap, DictVectorizer, ZipMap. These run on the host."""

from __future__ import annotations

import numpy as np

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import ML, onnx_op
from argosy.frontends.onnx.scores import class_labels
from argosy.ir.dtype import FLOAT32, INT64, STRING, Array, DType
from argosy.ir.module import Value
from argosy.ir.types import MapType, TensorType
from argosy.ops.index import Range
from argosy.ops.maps import MapConstruct, MapEntries
from argosy.ops.strings import FormatNumbers, MapLabels, ParseNumbers
from argosy.ops.view import Unsqueeze


@onnx_op("ZipMap", domain=ML)
def ZipMap(node: Node) -> Value:
    """A map for each row, from the labels to the numbers in it; a vector is one row."""
    return node.add(MapConstruct(), node.constant(class_labels(node, "classlabels_int64s")), node.input(0))


@onnx_op("DictVectorizer", domain=ML)
def DictVectorizer(node: Node) -> Value:
    """The values of the keys of the vocabulary as one row, [1, size], with zeros (or "") for what the map lacks.

    The standard's text speaks of a vector; ONNX Runtime gives a row, and so the converters that write this op declare
    it. Keys outside the vocabulary are left out, as in both implementations.
    """
    texts, numbers = node.attr_strings("string_vocabulary", ()), node.attr_ints("int64_vocabulary", ())
    if bool(texts) == bool(numbers):
        node.fail("has both or neither of the attributes 'string_vocabulary' and 'int64_vocabulary', expected one")
    vocabulary: Array = np.array(texts, object) if texts else np.array(numbers, np.int64)
    keys, values = _entries(node, STRING if texts else INT64)
    default = node.constant("" if values.dtype is STRING else 0, values.dtype)
    found = node.add(MapLabels(), node.constant(vocabulary), keys, values, default)
    return node.add(Unsqueeze((0,)), found)


@onnx_op("CastMap", domain=ML)
def CastMap(node: Node) -> Value:
    """The values of a map in the order of its keys as one row: all of them, or (SPARSE) at the columns that they name.

    Where the standard is silent this is as in ONNX Runtime: the result is [1, size], an empty place of a SPARSE row of
    strings holds "0.f". Numbers become strings by the rule of Cast, where ONNX Runtime writes six decimals; a key
    that does not fit a SPARSE row is an error, where ONNX Runtime leaves out those that are too large.
    """
    sparse = node.attr_choice("map_form", "DENSE", ("DENSE", "SPARSE")) == "SPARSE"
    size = node.attr_int("max_map", 1)
    target = node.attr_choice("cast_to", "TO_FLOAT", ("TO_FLOAT", "TO_STRING", "TO_INT64"))
    keys, values = _entries(node, INT64, size if sparse else None)
    if target == "TO_STRING":
        values = values if values.dtype is STRING else node.add(FormatNumbers(), values)
    else:
        dtype = FLOAT32 if target == "TO_FLOAT" else INT64
        parsed = values.dtype is STRING
        values = node.add(ParseNumbers(dtype), values) if parsed else node.builder.convert(values, dtype)
    if sparse:
        if size < 0:
            node.fail(f"attribute 'max_map' is {size}, expected a size")
        ends = (node.constant(number, INT64) for number in (0, size, 1))
        empty = node.constant("0.f", STRING) if values.dtype is STRING else node.constant(0, values.dtype)
        values = node.add(MapLabels(), node.add(Range(), *ends), keys, values, empty)
    return node.add(Unsqueeze((0,)), values)


def _entries(node: Node, key: DType, limit: int | None = None) -> tuple[Value, Value]:
    """Keys and values of the map that is the input; raises ModelError where it is none from `key` to scalars."""
    kind = node.input(0).type
    if not isinstance(kind, MapType) or kind.key is not key or not isinstance(kind.value, TensorType):
        node.fail(f"the input is {kind}, expected a map from {key}")
    keys, values = node.add_all(MapEntries(key, kind.value.dtype, limit), node.input(0))
    return keys, values
