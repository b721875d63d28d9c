"""Templates with bodies: conditions that depend on values, loops that carry a state, scans."""

from __future__ import annotations

from typing import Final

import numpy as np
from onnx import NodeProto

from argosy.ir.dtype import Array
from tests.properties.networks.network import Network, Template, Value
from tests.properties.networks.pointwise import clear
from tests.properties.onnx_graphs.graph import NotDrawn, make_body

__all__ = ["TEMPLATES"]

_FUNCTIONS: Final = ("Tanh", "Relu", "Neg", "Sigmoid", "Abs", "Softsign")


def _steps(network: Network, start: str, others: tuple[str, ...], end: str, prefix: str) -> list[NodeProto]:
    """Some nodes from one name to another, which keep the shape."""
    nodes, last = [], start
    count = network.one(1, 2, 3)
    for index in range(count):
        result = end if index == count - 1 else f"{prefix}{index}"
        if others and network.flag():
            operands = [last, network.one(*others)]
            nodes.append(network.inner(network.one("Add", "Sub", "Mul"), operands, result))
        else:
            nodes.append(network.inner(network.one(*_FUNCTIONS), [last], result))
        last = result
    return nodes


def _twin(network: Network, x: Value) -> list[Value]:
    """Other values of the type and dims of `x`, one at most."""
    there = [value for value in network.values if value.dtype == x.dtype and value.dims == x.dims and value is not x]
    return [network.one(*there)] if there else []


def _sum_is_clear(array: Array) -> bool:
    return clear(np.array(array.sum(dtype=np.float64)))


def condition(network: Network) -> None:
    """One of two branches, by a sum, a flag or what the batch is."""
    x = network.pick(network.real, ranks=(1, 2, 3, 4))
    way = network.one("sum", "flag", "batch", "constant")
    if way == "sum":
        y = network.pick(network.real, "float32", where=lambda value: value.all(_sum_is_clear))
        total = network.node("ReduceSum", y, keepdims=0)
        chosen = network.node("Greater", total, network.constant(np.array(0, y.dtype)))
    elif way == "flag":
        flags = network.pick("bool", ranks=(1, 2, 3), where=lambda value: value.all(lambda array: array.size > 0))
        total = network.node("ReduceSum", network.node("Cast", flags, to=7), keepdims=0)
        chosen = network.node("Greater", total, network.constant(np.array(2)))
    elif way == "batch":
        chosen = network.node("Greater", network.node("Size", x), network.constant(np.array(12)))
    else:
        chosen = network.constant(np.array(network.flag()))
    twin = _twin(network, x)
    names = tuple(value.name for value in twin)
    tag = network.fresh()
    then, other = (
        make_body(_steps(network, x.name, names, f"{tag}{branch}", f"{tag}{branch}_"), [], [f"{tag}{branch}"])
        for branch in ("then", "else")
    )
    network.node("If", chosen, captures=[x, *twin], then_branch=then, else_branch=other)


def loop(network: Network) -> None:
    """A state is changed some times, or as often as the batch is large; each state may be kept."""
    x = network.pick(network.real, ranks=(1, 2, 3))
    if network.flag(0.7):
        trips = network.constant(np.array(network.one(1, 2, 3)))
    else:
        trips = network.node("Gather", network.node("Shape", x), network.constant(np.array(0)), axis=0)
        if not trips.all(lambda array: array > 0):
            raise NotDrawn  # after no iteration, ONNX Runtime gives scan outputs dims of 0
    twin = _twin(network, x)
    tag, kept = network.fresh(), network.flag()
    nodes = [network.inner("Identity", [f"{tag}on"], f"{tag}next")]
    nodes += _steps(network, f"{tag}state", tuple(value.name for value in twin), f"{tag}new", f"{tag}s")
    if kept:
        nodes.append(network.inner("Neg", [f"{tag}new"], f"{tag}each"))
    inputs = [(f"{tag}i", "int64", 0), (f"{tag}on", "bool", 0), (f"{tag}state", x.dtype, x.rank)]
    body = make_body(nodes, inputs, [f"{tag}next", f"{tag}new", *([f"{tag}each"] if kept else [])])
    network.add("Loop", trips, None, x, outputs=1 + kept, captures=twin, body=body)


def scan(network: Network) -> None:
    """Along the first axis, with a state."""
    x = network.pick(network.real, ranks=(2, 3), where=lambda value: not value.varies(1) and value.all(np.size))
    state = network.weight(x.dtype, x.arrays[0].shape[1:], -0.5, 0.5)
    tag = network.fresh()
    nodes = [
        network.inner("Add", [f"{tag}state", f"{tag}item"], f"{tag}sum"),
        *_steps(network, f"{tag}sum", (f"{tag}item",), f"{tag}new", f"{tag}s"),
        network.inner("Identity", [f"{tag}new"], f"{tag}each"),
    ]
    inputs = [(f"{tag}state", x.dtype, x.rank - 1), (f"{tag}item", x.dtype, x.rank - 1)]
    body = make_body(nodes, inputs, [f"{tag}new", f"{tag}each"])
    backwards = network.one(None, [1])
    network.add("Scan", state, x, outputs=2, body=body, num_scan_inputs=1, scan_input_directions=backwards)


TEMPLATES: Final[dict[Template, int]] = {condition: 3, loop: 2, scan: 1}
