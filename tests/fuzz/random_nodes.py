"""Models of a few nodes that nobody would write: any op, any version, inputs and attributes of any kind and size.

Where the schema of an op says what it takes, that is often what it gets, so that its handler is reached.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Final

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from argosy.frontends.onnx.registry import known_ops

__all__ = ["random_model"]

_DIMS: Final = (0, 1, 2, 3, 4, 8, "N", "M", 1 << 40)
_INTS: Final = (0, 1, 2, -1, 3, -2, 4, 8, 17, -100, 1 << 40, -(1 << 63))
_FLOATS: Final = (0.0, 1.0, 0.5, -1.0, float("nan"), float("inf"))
_TEXTS: Final = (
    *("", "NOTSET", "SAME_UPPER", "VALID", "constant", "reflect", "linear", "cubic", "nearest", "sum", "mean", "none"),
    *("LEFT", "ij,jk->ik", "i...->...", "half_pixel", "floor", "forward", "bidirectional", "Relu", "add", "L1", "avg"),
    *("tanh", "gelu", "UPPER", "POST", "TF", "[", "BRANCH_LEQ"),
)

# Attributes of ops without a schema, those of com.microsoft.
_OTHERS: Final = {
    "FLOAT": ("alpha", "epsilon", "scale", "softcap", "mask_filter_value"),
    "INT": (
        *("num_heads", "kv_num_heads", "axis", "transA", "transB", "K", "N", "bits", "block_size", "groups", "group"),
        *("channels_last", "activation", "unidirectional", "do_rotary", "interleaved", "rotary_embedding_dim"),
        *("local_window_size", "smooth_softmax", "hidden_size", "quant_type", "keepdims", "count_include_pad"),
    ),
    "STRING": ("activation", "auto_pad", "direction"),
    "INTS": ("qkv_hidden_sizes", "axes", "pads", "strides", "dilations", "kernel_shape"),
}

_ATTRIBUTE_TYPES: Final = dict(AttributeProto.AttributeType.items())


def random_model(rng: random.Random) -> ModelProto:
    """One to three nodes; later ones read the results of earlier ones."""
    graph = GraphProto(name="random")
    newest = onnx.defs.onnx_opset_version()
    version = newest if rng.random() < 0.5 else rng.randint(1, newest)
    for index in range(rng.choice((1, 1, 1, 2, 3))):
        _add_node(graph, index, version, rng)
    for node in graph.node:
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output[:1])
    opsets = [helper.make_opsetid("", version), helper.make_opsetid("ai.onnx.ml", rng.randint(1, 5))]
    opsets.append(helper.make_opsetid("com.microsoft", 1))
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@cache
def _ops() -> tuple[tuple[str, str], ...]:
    return tuple(known_ops())


def _add_node(graph: GraphProto, index: int, version: int, rng: random.Random) -> None:
    domain, name = rng.choice(_ops())
    node = graph.node.add(op_type=name, domain=domain)
    try:
        schema = onnx.defs.get_schema(name, version if not domain else 1 << 30, domain)
    except onnx.defs.SchemaError:
        schema = None
    most = min(schema.max_input, 6) if schema else 6
    least = schema.min_input if schema else 1
    for position in range(rng.randint(min(least, most), most)):
        types = sorted(schema.inputs[min(position, len(schema.inputs) - 1)].types) if schema and schema.inputs else []
        node.input.append(_input(graph, index, types, rng))
    node.output.extend(f"r{index}_{position}" for position in range(min(schema.max_output, 3) if schema else 1))
    if schema:
        for attribute in schema.attributes.values():
            if attribute.required or rng.random() < 0.3:
                _add_attribute(node, attribute.name, _ATTRIBUTE_TYPES[str(attribute.type).rpartition(".")[2]], rng)
    for _ in range(0 if schema else rng.randrange(6)):
        kind = rng.choice(("INT", "INT", "INT", *_OTHERS))
        _add_attribute(node, rng.choice(_OTHERS[kind]), _ATTRIBUTE_TYPES[kind], rng)


def _input(graph: GraphProto, index: int, types: list[str], rng: random.Random) -> str:
    """The name of an input: absent, an earlier result, a constant, or a new input of the graph."""
    earlier = [name for node in graph.node[:-1] for name in node.output]
    kind = rng.random()
    if kind < 0.05:
        return ""
    if kind < 0.3 and (earlier or graph.input):
        return rng.choice([*earlier, *(entry.name for entry in graph.input)])
    name = f"x{len(graph.input)}_{len(graph.initializer)}"
    text = rng.choice(types) if types and rng.random() < 0.9 else rng.choice(("tensor(float)", "tensor(int64)"))
    if kind < 0.6 and text in ("tensor(int64)", "tensor(int32)", "tensor(float)", "tensor(bool)"):
        graph.initializer.append(_constant(name, text, rng))
        return name
    entry = graph.input.add(name=name)
    entry.type.CopyFrom(_type(text, rng))
    return name


def _constant(name: str, text: str, rng: random.Random) -> TensorProto:
    shape = rng.choice(((), (1,), (2,), (3,), (4,), (8,), (0,), (1, 2), (2, 2)))
    count = 1
    for size in shape:
        count *= size
    if text == "tensor(float)":
        return helper.make_tensor(name, TensorProto.FLOAT, shape, [rng.choice(_FLOATS) for _ in range(count)])
    if text == "tensor(bool)":
        return helper.make_tensor(name, TensorProto.BOOL, shape, [rng.randrange(2) for _ in range(count)])
    wide = text == "tensor(int64)"
    values = [rng.choice(_INTS if wide else _INTS[:-2]) for _ in range(count)]
    return helper.make_tensor(name, TensorProto.INT64 if wide else TensorProto.INT32, shape, values)


def _type(text: str, rng: random.Random) -> onnx.TypeProto:
    """A type as a schema spells it, with random dims."""
    kind = onnx.TypeProto()
    head, _, rest = text.partition("(")
    inner = rest.removesuffix(")")
    if head == "seq":
        kind.sequence_type.elem_type.CopyFrom(_type(inner, rng))
    elif head == "optional":
        kind.optional_type.elem_type.CopyFrom(_type(inner, rng))
    elif head == "map":
        key, _, value = inner.partition(",")
        kind.map_type.key_type = TensorProto.DataType.Value(key.strip().upper())
        kind.map_type.value_type.CopyFrom(_type(value.strip(), rng))
    else:
        kind.tensor_type.elem_type = TensorProto.DataType.Value(inner.upper())
        if rng.random() < 0.95:
            kind.tensor_type.shape.SetInParent()
            dims = _DIMS if rng.random() < 0.2 else _DIMS[:-1]
            for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 4, 5))):
                dim, size = kind.tensor_type.shape.dim.add(), rng.choice(dims)
                if isinstance(size, int):
                    dim.dim_value = size
                else:
                    dim.dim_param = size
    return kind


def _add_attribute(node: NodeProto, name: str, kind: int, rng: random.Random) -> None:
    """An attribute of type number `kind` (AttributeProto.AttributeType)."""
    entry = node.attribute.add(name=name, type=kind)
    count = rng.choice((0, 1, 2, 2, 3, 4, 4, 6, 8))
    small = _INTS[:9]
    ints = small if rng.random() < 0.8 else _INTS
    if kind == AttributeProto.INT:
        entry.i = rng.choice(ints)
    elif kind == AttributeProto.FLOAT:
        entry.f = rng.choice(_FLOATS)
    elif kind == AttributeProto.STRING:
        entry.s = rng.choice(_TEXTS).encode()
    elif kind == AttributeProto.INTS:
        entry.ints.extend(rng.choice(ints) for _ in range(count))
    elif kind == AttributeProto.FLOATS:
        entry.floats.extend(rng.choice(_FLOATS) for _ in range(count))
    elif kind == AttributeProto.STRINGS:
        entry.strings.extend(rng.choice(_TEXTS).encode() for _ in range(count))
    elif kind == AttributeProto.TENSOR:
        entry.t.CopyFrom(_constant("", rng.choice(("tensor(float)", "tensor(int64)", "tensor(bool)")), rng))
    elif kind == AttributeProto.GRAPH:
        entry.g.name = "body"
        for position in range(rng.randrange(4)):
            entry.g.input.add(name=f"p{position}")
        for position in range(rng.randrange(4)):
            entry.g.node.add(op_type="Identity", input=[f"p{position}"], output=[f"q{position}"])
            entry.g.output.add(name=f"q{position}")
