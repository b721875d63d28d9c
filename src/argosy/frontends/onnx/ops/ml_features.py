"""ai.onnx.ml: Scaler, Normalizer, Imputer, FeatureVectorizer.

Where the result is float32, float64 is computed in float64, other types in float32, and rounded once.
"""

from __future__ import annotations

import math
from typing import Any

from argosy.errors import ModelError
from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import ML, onnx_op
from argosy.frontends.onnx.scores import floating, floats
from argosy.ir.dtype import FLOAT32
from argosy.ir.formula import Expr
from argosy.ir.module import Value
from argosy.ops.joining import Concat
from argosy.ops.reduce import Reduce
from argosy.ops.slicing import Pad, Slice
from argosy.ops.view import Unsqueeze


@onnx_op("Scaler", domain=ML)
def Scaler(node: Node) -> Value:
    """(x - offset) * scale, one of each for all features or one for each feature, which are the last axis."""
    x = floating(node, node.input(0))
    for name, primitive in (("offset", "sub"), ("scale", "mul")):
        numbers = floats(node, name, x)
        if len(numbers):
            _check_length(node, name, x, len(numbers))
            x = node.pointwise(primitive, x, node.constant(numbers))
    return node.builder.convert(x, FLOAT32)


def _check_length(node: Node, name: str, x: Value, count: int) -> None:
    """Raise ModelError where there is neither one number nor one for each feature."""
    features = x.shape[-1] if x.rank else 1
    if count != 1 and (not x.rank or (isinstance(features, int) and features != count)):
        node.fail(f"attribute {name!r} holds {count} numbers, expected 1 or {features} (the features of {x.type})")


@onnx_op("Normalizer", domain=ML)
def Normalizer(node: Node) -> Value:
    """Each row divided by its norm, or as it is where that is 0.

    The greatest value (MAX) is taken with its sign, as the standard and ONNX Runtime have it; onnx.reference takes the
    greatest magnitude. L1 sums magnitudes, as both implementations do, where the formula of the standard lacks the
    bars. L2 keeps the signs.
    """
    x = floating(node, node.input(0))
    if x.rank not in (1, 2):
        node.fail(f"the input is {x.type}, expected [rows, features] or [features]")
    kind = node.attr_choice("norm", "MAX", ("MAX", "L1", "L2"))
    if kind == "MAX":
        norm = node.add(Reduce("max", (-1,)), x)
    elif kind == "L1":
        norm = node.add(Reduce("sum", (-1,)), node.pointwise("abs", x))
    else:
        norm = node.pointwise("sqrt", node.add(Reduce("sum", (-1,)), node.pointwise("mul", x, x)))
    divided = node.pointwise(lambda value, by: (by == 0.0).select(value, value / by), x, norm)
    return node.builder.convert(divided, FLOAT32)


@onnx_op("Imputer", domain=ML)
def Imputer(node: Node) -> Value:
    """Elements equal to one value (or NaN, where that is NaN) replaced, by one number or one for each feature."""
    x = node.input(0)
    kind, plural = ("float", "floats") if x.dtype.is_float else ("int64", "int64s")
    other = "int64" if kind == "float" else "float"
    node.ignore(f"replaced_value_{other}")
    if node.has(f"imputed_value_{other}s"):
        node.fail(f"has the attribute 'imputed_value_{other}s', but its input is {x.type}")
    read: Any = node.attr_floats if kind == "float" else node.attr_ints
    imputed = read(f"imputed_value_{plural}")
    if not imputed:
        node.fail(f"attribute 'imputed_value_{plural}' is empty")
    _check_length(node, f"imputed_value_{plural}", x, len(imputed))
    replaced = (
        node.attr_float("replaced_value_float", 0.0) if kind == "float" else node.attr_int("replaced_value_int64", 0)
    )

    def choose(value: Expr, by: Expr) -> Expr:
        missing = value.isnan() if isinstance(replaced, float) and math.isnan(replaced) else value.eq(replaced)
        return missing.select(by, value)

    return node.pointwise(choose, x, _numbers(node, imputed, x))


def _numbers(node: Node, values: tuple[float, ...], x: Value) -> Value:
    try:
        return node.constant(list(values) if x.rank else values[0], x.dtype)
    except (ArithmeticError, ModelError):
        node.fail(f"the imputed values {list(values)} do not fit {x.dtype}")


@onnx_op("FeatureVectorizer", domain=ML)
def FeatureVectorizer(node: Node) -> Value:
    """The inputs [rows, features] side by side as float32, each cut or filled up with zeros to its size.

    A vector is one row, as the standard says; onnx.reference makes a column of it. Without `inputdimensions` the
    inputs keep their sizes.
    """
    inputs = [_matrix(node, index) for index in range(len(node.inputs))]
    if not inputs:
        node.fail("has no inputs")
    sizes = node.attr_ints("inputdimensions", ())
    if len(sizes) not in (0, len(inputs)) or any(size < 0 for size in sizes):
        node.fail(f"attribute 'inputdimensions' is {list(sizes)}, expected a size for each of {len(inputs)} inputs")
    if sizes:
        inputs = [_sized(node, x, size) for x, size in zip(inputs, sizes, strict=True)]
    return node.add(Concat(1), *inputs) if len(inputs) > 1 else inputs[0]


def _matrix(node: Node, index: int) -> Value:
    x = node.input(index)
    if x.rank == 1:
        x = node.add(Unsqueeze((0,)), x)
    if x.rank != 2:
        node.fail(f"input {index} is {x.type}, expected [rows, features] or [features]")
    return node.builder.convert(x, FLOAT32)


def _sized(node: Node, x: Value, size: int) -> Value:
    """`x` with so many columns: the first of it and zeros."""
    features = x.shape[1]
    if features == size:
        return x
    missing = size if not isinstance(features, int) else max(size - features, 0)
    if missing:
        x = node.add(Pad("constant", (0, missing), (1,)), x)
    return x if x.shape[1] == size else node.add(Slice((0,), (size,), (1,)), x)
