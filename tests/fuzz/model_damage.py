"""Damage that knows what an ONNX model is: what a broken exporter, a bad merge or an attacker would write."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import onnx
from google.protobuf.message import DecodeError
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto

from argosy.frontends.onnx.registry import known_ops
from tests.fuzz.message_damage import EXTREME_INTS, damage_message
from tests.fuzz.seeds import SEEDS, seed

__all__ = ["damage_model"]

Damage = Callable[[ModelProto, random.Random], None]


def damage_model(model: ModelProto, rng: random.Random) -> None:
    """Change one to three things. What would nest deeper than protobuf allows is left half done."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        with contextlib.suppress(DecodeError):
            rng.choice(_KINDS)(model, rng)


# ---- finding things


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs) if attribute.type in (5, 10) else ():
                yield from _graphs(inner)


def _nodes(model: ModelProto) -> list[NodeProto]:
    found = [node for graph in _graphs(model.graph) for node in graph.node]
    return found + [node for function in model.functions for node in function.node]


def _tensors(model: ModelProto) -> list[TensorProto]:
    found: list[TensorProto] = []
    for graph in _graphs(model.graph):
        found += graph.initializer
        for sparse in graph.sparse_initializer:
            found += (sparse.values, sparse.indices)
        for node in graph.node:
            found += [attribute.t for attribute in node.attribute if attribute.HasField("t")]
    return found


def _types(model: ModelProto) -> list[TypeProto]:
    return [entry.type for graph in _graphs(model.graph) for entry in (*graph.input, *graph.output)]


def _names(graph: GraphProto) -> list[str]:
    names = [entry.name for entry in (*graph.input, *graph.initializer)]
    names += [name for node in graph.node for name in (*node.output, *node.input)]
    return names or ["x"]


def _pick(items: Sequence[Any], rng: random.Random) -> Any | None:
    return rng.choice(items) if items else None


# ---- names and edges


def _rewire(model: ModelProto, rng: random.Random) -> None:
    """A node reads another value: a later one, its own, one of another graph, none."""
    graph = rng.choice(list(_graphs(model.graph)))
    node = _pick(graph.node, rng)
    if node is None or not node.input:
        return
    scope = rng.choice((graph, graph, model.graph))
    node.input[rng.randrange(len(node.input))] = rng.choice((*_names(scope), *node.output, "", "nowhere"))


def _clash(model: ModelProto, rng: random.Random) -> None:
    """A name is given twice."""
    graph = rng.choice(list(_graphs(model.graph)))
    name = rng.choice(_names(rng.choice((graph, model.graph))))
    holders: list[Any] = [node for node in graph.node if node.output]
    kind = rng.randrange(3)
    if kind == 0 and holders:
        node = rng.choice(holders)
        node.output[rng.randrange(len(node.output))] = name
    elif kind == 1 and graph.initializer:
        rng.choice(graph.initializer).name = name
    elif graph.input:
        rng.choice(graph.input).name = name


def _arity(model: ModelProto, rng: random.Random) -> None:
    """More or fewer inputs or outputs."""
    node = _pick(_nodes(model), rng)
    if node is None:
        return
    names = rng.choice((node.input, node.output))
    kind = rng.randrange(4)
    if kind == 0 and names:
        del names[rng.randrange(len(names))]
    elif kind == 1:
        del names[:]
    elif kind == 2:
        names.insert(0, rng.choice(_names(model.graph)))
    else:
        names.extend(f"more{index}" if names is node.output else "x" for index in range(rng.choice((1, 2, 40))))


# ---- ops, attributes, versions


def _another_op(model: ModelProto, rng: random.Random) -> None:
    """A node gets another op, often one that takes the same number of inputs."""
    node = _pick(_nodes(model), rng)
    if node is None:
        return
    node.domain, node.op_type = rng.choice(_ops())
    if rng.random() < 0.3:
        del node.attribute[:]


def _ops() -> list[tuple[str, str]]:
    return [*known_ops(), ("", "Nonesuch"), ("nowhere", "Add"), ("", "outer"), ("local", "inner")]


def _transplant(model: ModelProto, rng: random.Random) -> None:
    """A node of another model is put into a graph, its inputs connected to what is there."""
    donor = rng.choice(_nodes(seed(rng.choice(SEEDS))))
    graph = rng.choice(list(_graphs(model.graph)))
    node = NodeProto()
    node.CopyFrom(donor)
    names = _names(graph)
    at = rng.randrange(len(graph.node) + 1)
    for index, name in enumerate(node.input):
        if name and rng.random() < 0.9:
            node.input[index] = rng.choice(names)
    for index in range(len(node.output)):
        node.output[index] = f"new{rng.randrange(1 << 20)}"
    if node.output and graph.node and rng.random() < 0.7:
        reader = rng.choice(graph.node)
        if reader.input:
            reader.input[rng.randrange(len(reader.input))] = node.output[0]
    graph.node.insert(at, node)


def _attribute(model: ModelProto, rng: random.Random) -> None:
    """An attribute of the op's schema is added, or one that is there gets another type, name or value."""
    node = _pick(_nodes(model), rng)
    if node is None:
        return
    entry = _pick(node.attribute, rng)
    kind = rng.randrange(5)
    if kind == 0 and entry is not None:
        entry.type = rng.randrange(15)
    elif kind == 1 and entry is not None:
        entry.name = rng.choice((entry.name + "s", "axis", "", "body"))
    elif kind == 2 and entry is not None:
        entry.ref_attr_name = rng.choice(("slope", "axis", ""))
    else:
        name = rng.choice((*_schema_attributes(node), *(other.name for other in node.attribute), "axis", "to"))
        for index in reversed(range(len(node.attribute))):
            if node.attribute[index].name == name and rng.random() < 0.9:
                del node.attribute[index]
        node.attribute.append(_random_attribute(name, rng))


def _schema_attributes(node: NodeProto) -> tuple[str, ...]:
    try:
        return tuple(onnx.defs.get_schema(node.op_type, 1 << 30, node.domain).attributes)
    except onnx.defs.SchemaError:
        return ()


def _random_attribute(name: str, rng: random.Random) -> AttributeProto:
    numbers = [rng.choice(EXTREME_INTS) for _ in range(rng.choice((0, 1, 2, 3, 4, 8, 200)))]
    texts = (b"SAME_LOWER", b"reflect", b"linear", b"sum", b"\xff", b"", b"ij,jk", b"Relu", b"a" * 300)
    kind = rng.randrange(6)
    entry = AttributeProto(name=name)
    if kind <= 1:
        entry.type, entry.i = AttributeProto.INT, rng.choice(EXTREME_INTS)
    elif kind == 2:
        entry.type = AttributeProto.INTS
        entry.ints.extend(numbers)
    elif kind == 3:
        entry.type, entry.f = AttributeProto.FLOAT, rng.choice((0.0, -1.0, 1e30, float("nan"), float("inf")))
    elif kind == 4:
        entry.type, entry.s = AttributeProto.STRING, rng.choice(texts)
    else:
        entry.type = AttributeProto.STRINGS
        entry.strings.extend(rng.choice(texts) for _ in range(3))
    return entry


def _opset(model: ModelProto, rng: random.Random) -> None:
    """Another opset version, too old, too new or nonsense."""
    entry = _pick(model.opset_import, rng)
    if entry is None or rng.random() < 0.1:
        model.opset_import.add(domain=rng.choice(("", "ai.onnx", "ai.onnx.ml", "x")), version=rng.randrange(30))
    else:
        entry.version = rng.choice((*range(1, 30), *range(1, 30), *EXTREME_INTS))


# ---- tensors and types


def _tensor(model: ModelProto, rng: random.Random) -> None:
    """Dims, element type and data contradict each other or claim too much."""
    tensor = _pick(_tensors(model), rng)
    if tensor is None:
        return
    kind = rng.randrange(7)
    if kind == 0:
        tensor.dims[:] = [rng.choice(EXTREME_INTS) for _ in range(rng.randrange(4))]
    elif kind == 1:
        tensor.data_type = rng.choice((*range(30), -1, 1 << 30))
    elif kind == 2:
        tensor.raw_data = rng.randbytes(rng.choice((0, 1, 4, 7, 8, 16, 1000)))
    elif kind == 3:
        tensor.raw_data = tensor.raw_data + tensor.raw_data[: rng.randrange(9)]
    elif kind == 4:
        tensor.dims.append(rng.choice((0, 1, 2, 1 << 33)))
    elif kind == 5:
        _set_values(tensor, rng)
    else:
        _make_external(tensor, rng)


def _set_values(tensor: TensorProto, rng: random.Random) -> None:
    """Integers that are axes, sizes, indices or steps somewhere become extreme ones; the data stay well-formed."""
    if tensor.data_type != TensorProto.INT64 or not 0 < len(tensor.dims) <= 1:
        return
    count = tensor.dims[0] if 0 < tensor.dims[0] < 100 else 1
    tensor.ClearField("raw_data")
    tensor.ClearField("int64_data")
    tensor.int64_data.extend(rng.choice(EXTREME_INTS) for _ in range(count))


def _make_external(tensor: TensorProto, rng: random.Random) -> None:
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    places = ("weights.bin", "missing.bin", "../weights.bin", "/etc/passwd", "", ".", "sub/../weights.bin", "a\0b")
    tensor.external_data.add(key="location", value=rng.choice(places))
    numbers = ("0", "4", "4096", "-1", "99999999999999999999", "x", "", "٣")
    for key in ("offset", "length"):
        if rng.random() < 0.5:
            tensor.external_data.add(key=key, value=rng.choice(numbers))


def _type(model: ModelProto, rng: random.Random) -> None:
    """A declared type changes: dims, rank, element type, kind."""
    kind = _pick(_types(model), rng)
    if kind is None:
        return
    choice = rng.randrange(6)
    dims = kind.tensor_type.shape.dim if kind.HasField("tensor_type") else []
    if choice == 0 and len(dims):
        dim = rng.choice(dims)
        dim.dim_value = rng.choice(EXTREME_INTS)
    elif choice == 1 and len(dims):
        rng.choice(dims).dim_param = rng.choice(("N", "", "N+1", "?", "2", "N" * 999, "x y", "é"))
    elif choice == 2 and len(dims):
        del dims[rng.randrange(len(dims))]
    elif choice == 3 and kind.HasField("tensor_type"):
        dim = kind.tensor_type.shape.dim.add()
        dim.dim_value = rng.choice((0, 1, 2, 1 << 62))
    elif choice == 4 and kind.HasField("tensor_type"):
        kind.tensor_type.elem_type = rng.choice((*range(30), -5))
    else:
        inner = TypeProto()
        inner.CopyFrom(kind)
        kind.Clear()
        wrap = rng.randrange(4)
        if wrap == 0:
            kind.sequence_type.elem_type.CopyFrom(inner)
        elif wrap == 1:
            kind.optional_type.elem_type.CopyFrom(inner)
        elif wrap == 2:
            kind.map_type.key_type = rng.choice((7, 8, 1))
            kind.map_type.value_type.CopyFrom(inner)


# ---- structure


def _nest(model: ModelProto, rng: random.Random) -> None:
    """A node is wrapped in conditionals or loops, up to the 100 messages in each other that protobuf allows."""
    graph = model.graph
    if not graph.node:
        return
    at = rng.randrange(len(graph.node))
    node = NodeProto()
    node.CopyFrom(graph.node[at])
    for _ in range(rng.choice((1, 1, 2, 3, 12, 26))):
        body = GraphProto(name="body", node=[node])
        body.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name)
        outer = NodeProto(op_type=rng.choice(("If", "If", "Loop")), input=[rng.choice(_names(graph))])
        outer.output.extend(name for name in node.output if name)
        for name in ("then_branch", "else_branch") if outer.op_type == "If" and len(body.node) else ("body",):
            if name == "else_branch" and body.ByteSize() > 20_000:
                continue
            outer.attribute.add(name=name, type=AttributeProto.GRAPH, g=body)
        node = outer
    graph.node[at].CopyFrom(node)


def _body(model: ModelProto, rng: random.Random) -> None:
    """A subgraph gains or loses inputs, outputs or nodes, or is another one."""
    inner = [graph for graph in _graphs(model.graph) if graph is not model.graph]
    graph = _pick(inner, rng)
    if graph is None:
        _nest(model, rng)
        return
    kind = rng.randrange(5)
    if kind == 0 and graph.output:
        del graph.output[rng.randrange(len(graph.output))]
    elif kind == 1 and graph.input:
        del graph.input[rng.randrange(len(graph.input))]
    elif kind == 2:
        graph.input.add(name=rng.choice(_names(model.graph)))
    elif kind == 3:
        graph.output.add(name=rng.choice((*_names(graph), *_names(model.graph))))
    else:
        made = GraphProto()
        made.CopyFrom(rng.choice((model.graph, *inner)))
        graph.CopyFrom(made)


def _function(model: ModelProto, rng: random.Random) -> None:
    """Functions that call themselves or each other, calls that do not fit."""
    name = rng.choice(("inner", "outer", "Relu", "Softmax"))
    domain = rng.choice(("local", ""))
    node = NodeProto(op_type=name, domain=domain, input=["p"], output=["q"])
    kind = rng.randrange(4)
    if kind <= 1 or not model.functions:
        count = 2 if kind else 1
        for step in range(count):
            called = NodeProto(op_type=f"{name}{(step + 1) % count or ''}", domain=domain, input=["p"], output=["q"])
            model.functions.add(
                name=f"{name}{step or ''}", domain=domain, input=["p"], output=["q"], node=[called] * rng.choice((1, 2))
            )
        target = _pick(model.graph.node, rng)
        if target is not None:
            target.op_type, target.domain = name, domain
    else:
        rng.choice(model.functions).node.append(node)


def _other_message(model: ModelProto, rng: random.Random) -> None:
    damage_message(model, rng)


_KINDS: Final[tuple[Damage, ...]] = (
    *(_rewire, _clash, _arity),
    *(_another_op, _another_op, _transplant, _transplant, _attribute, _attribute, _opset),
    *(_tensor, _tensor, _type),
    *(_nest, _body, _function),
    *(_other_message, _other_message, _other_message),
)
