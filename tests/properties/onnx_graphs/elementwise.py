"""Templates of ops that go element by element, and of conversions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from onnx import TensorProto, helper

from tests.properties.onnx_graphs.graph import Graph, Template, Value

__all__ = ["FLOATS", "NUMBERS", "TEMPLATES", "WHOLE"]

FLOATS: Final = ("float32", "float32", "float32", "float64", "float16")
WHOLE: Final = ("int64", "int32", "int8", "uint8")
NUMBERS: Final = (*FLOATS, *WHOLE)

_UNARY: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        [
            "Sigmoid",
            "Tanh",
            "Exp",
            "Sqrt",
            "Log",
            "Ceil",
            "Floor",
            "Reciprocal",
            "Softplus",
            "Softsign",
            "Sin",
            "Cos",
            "Tan",
            "Asin",
            "Acos",
            "Atan",
            "Sinh",
            "Cosh",
            "Asinh",
            "Acosh",
            "Atanh",
            "Round",
            "HardSwish",
            "Mish",
        ],
        FLOATS,
    ),
    **dict.fromkeys(["Abs", "Neg", "Sign", "Relu", "Identity", "Erf"], NUMBERS),
    "Not": ("bool",),
    "IsNaN": FLOATS,
    "IsInf": ("float32", "float64"),
    "BitwiseNot": WHOLE,
}
_PARAMETERS: Final[dict[str, dict[str, Sequence[float]]]] = {
    "Elu": {"alpha": (1.0, 0.5)},
    "Selu": {"alpha": (1.5, 1.0), "gamma": (1.0, 0.5)},
    "Celu": {"alpha": (1.0, 2.0)},
    "LeakyRelu": {"alpha": (0.01, 0.5)},
    "ThresholdedRelu": {"alpha": (1.0, 0.0)},
    "HardSigmoid": {"alpha": (0.2, 0.5), "beta": (0.5, 0.0)},
    "Shrink": {"bias": (0.0, 0.5), "lambd": (0.5, 1.0)},
}
_BINARY: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(["Add", "Sub", "Mul", "Div"], NUMBERS),
    **dict.fromkeys(["Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"], ("float32", "int64", "int32")),
    **dict.fromkeys(["And", "Or", "Xor"], ("bool",)),
    **dict.fromkeys(["BitwiseAnd", "BitwiseOr", "BitwiseXor"], WHOLE),
    "PRelu": ("float32",),
}


def unary(graph: Graph, op: str) -> None:
    graph.node(op, graph.pick(*_UNARY[op]))


def parametric(graph: Graph, op: str) -> None:
    chosen = {name: graph.one(*values) for name, values in _PARAMETERS[op].items() if graph.flag(0.6)}
    graph.node(op, graph.pick("float32"), **chosen)


def gelu(graph: Graph, op: str) -> None:
    graph.node(op, graph.pick("float32"), approximate=graph.one("none", "tanh"))


def partner(graph: Graph, x: Value, *, within: bool = False) -> Value:
    """A value that broadcasts with `x` (`within`: to its shape)."""
    if not within and graph.flag(0.4):
        same = [v for v in graph.values if v.dtype == x.dtype and v.rank >= 0 and _broadcast(v.shape, x.shape)]
        if same:
            return graph.one(*same)
    shape = [1 if graph.flag(0.2) else size for size in x.shape[graph.rng.randrange(x.rank + 1) :]]
    if not within and len(shape) == x.rank and graph.flag(0.2):
        shape = [graph.one(1, 2), *shape]
    return graph.tensor(x.dtype, shape)


def _broadcast(left: Sequence[int], right: Sequence[int]) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(left), reversed(right), strict=False))


def binary(graph: Graph, op: str) -> None:
    x = graph.pick(*_BINARY[op])
    y = partner(graph, x, within=op == "PRelu")
    if op == "Div" and np.dtype(x.dtype).kind in "iu":
        y = graph.new(np.where(y.array == 0, 1, y.array).astype(x.dtype))  # the standard leaves x / 0 open
    if graph.flag() and op != "PRelu":
        x, y = (y, x) if not (op == "Div" and np.dtype(x.dtype).kind in "iu") else (x, y)
    graph.node(op, x, y)


def variadic(graph: Graph, op: str) -> None:
    x = graph.pick(*(NUMBERS if op in ("Max", "Min") and graph.opset >= 12 else ("float32",)))
    graph.node(op, x, *(partner(graph, x) for _ in range(graph.one(0, 1, 2))))


def power(graph: Graph, op: str) -> None:
    x = graph.pick("float32", "int64", "int32") if graph.opset >= 12 else graph.pick("float32")
    exponent = graph.one(2, 3, 0, 1, *((0.5, -1.0) if x.dtype == "float32" else ()))
    graph.node(op, x, graph.new(np.array(exponent, x.dtype)))


def modulo(graph: Graph, op: str) -> None:
    fmod = graph.flag(0.4)
    x = graph.pick(*(("float32", "int64", "int32") if fmod else ("int64", "int32", "int8", "uint8")))
    y = graph.new(graph.numbers.choice(np.array([1, 2, 3, 5]).astype(x.dtype), x.shape))
    graph.node(op, x, y, fmod=int(fmod))


def shift(graph: Graph, op: str) -> None:
    x = graph.pick("uint8", "uint32", "uint64")
    graph.node(op, x, graph.tensor(x.dtype, x.shape, 0, 7), direction=graph.one("LEFT", "RIGHT"))


def clip(graph: Graph, op: str) -> None:
    if graph.since(op) < 11:
        graph.node(op, graph.pick("float32"), min=graph.one(None, -1.0), max=graph.one(None, 0.5))
        return
    x = graph.pick(*(("float32", "int64", "int8", "float64") if graph.opset >= 12 else ("float32",)))
    low, high = (graph.one(None, graph.new(np.array(bound, x.dtype))) for bound in (-1, 2))
    graph.node(op, x, low, high)


def where(graph: Graph, op: str) -> None:
    x = graph.pick("float32", "int64", "uint8", "object")
    condition = graph.tensor("bool", [1 if graph.flag(0.2) else size for size in x.shape])
    graph.node(op, condition, x, partner(graph, x))


_CASTS: Final = {
    "float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16,
    "int64": TensorProto.INT64, "int32": TensorProto.INT32, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8,
    "bool": TensorProto.BOOL,
}  # fmt: skip


def _castable(value: Value, target: str) -> bool:
    """The standard leaves open what becomes of a float that an integer type does not hold."""
    if value.dtype == "object" or np.dtype(target).kind not in "iu" or np.dtype(value.dtype).kind in "iub":
        return value.dtype != "object"
    limits, wide = np.iinfo(target), value.array.astype(np.float64)
    return value.finite and bool((wide > limits.min).all() and (wide < limits.max).all())


def cast(graph: Graph, op: str) -> None:
    target = graph.one(*_CASTS)
    x = graph.pick(*NUMBERS, "bool", where=lambda value: _castable(value, target))
    if op == "Cast":
        graph.node(op, x, to=_CASTS[target])
    else:
        graph.node(op, x, graph.tensor(target, ()))


def dropout(graph: Graph, op: str) -> None:
    graph.node(op, graph.pick("float32"))


def constant(graph: Graph, op: str) -> None:
    array = graph.array(graph.one("float32", "int64"), graph.sizes(graph.one(0, 1, 2)))
    kind = _CASTS[str(array.dtype)]
    graph.node(op, value=helper.make_tensor("", kind, array.shape, array.reshape(-1).tolist()))


def constant_of_shape(graph: Graph, op: str) -> None:
    value: Any = graph.one(None, helper.make_tensor("", TensorProto.INT64, [1], [3]))
    graph.node(op, graph.ints(*graph.sizes(graph.one(0, 1, 2))), value=value)


def strings(graph: Graph, op: str) -> None:
    x = graph.pick("object", ranks=(1, 2))
    if op == "StringConcat":
        graph.node(op, x, partner(graph, x))
    elif op == "StringSplit":
        # Of an empty text with a delimiter, Python's split, which the standard's reference uses, makes one part,
        # ONNX Runtime none.
        x = graph.new(np.where(x.array == "", "e", x.array))
        graph.node(op, x, outputs=2, delimiter=graph.one(None, " "), maxsplit=graph.one(None, 1))
    elif op == "RegexFullMatch":
        graph.node(op, x, pattern=graph.one("[a-z]", "a|b"))
    else:
        x = graph.pick("object", ranks=(1,))
        graph.node(op, x, case_change_action=graph.one("LOWER", "UPPER", "NONE"), is_case_sensitive=1, stopwords=["a"])


TEMPLATES: dict[str, Template] = {
    **dict.fromkeys(_UNARY, unary),
    **dict.fromkeys(_PARAMETERS, parametric),
    **dict.fromkeys(_BINARY, binary),
    **dict.fromkeys(["Max", "Min", "Sum", "Mean"], variadic),
    **dict.fromkeys(["StringConcat", "StringSplit", "RegexFullMatch", "StringNormalizer"], strings),
    "Gelu": gelu,
    "Pow": power,
    "Mod": modulo,
    "BitShift": shift,
    "Clip": clip,
    "Where": where,
    "Cast": cast,
    "CastLike": cast,
    "Dropout": dropout,
    "Constant": constant,
    "ConstantOfShape": constant_of_shape,
}
