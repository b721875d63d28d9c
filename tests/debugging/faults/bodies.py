"""Faults of rules and kernels where the node in question is in the body of a loop, a branch or a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper

from argosy.rewrite.rules import algebra
from argosy.targets.cpu.solutions.loops import ElementwiseLoops
from tests.debugging.faults import rules, solutions
from tests.debugging.faults.fault import Fault, wrong_kernel, wrong_rule
from tests.debugging.faults.network import Core, Network, perceptron

__all__ = ["FAULTS"]


def value(name: str, kind: int = TensorProto.FLOAT, rank: int = 2) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, [None] * rank)


def in_loop(core: Core) -> Core:
    """Three iterations, each on what the one before has made."""

    def outside(net: Network, x: str) -> str:
        nodes, found = net.apart(lambda net, x: net.op("Softsign", core(net, net.op("Tanh", x))), "state")
        inputs = [value("i", TensorProto.INT64, 0), value("going", TensorProto.BOOL, 0), value("state")]
        body = helper.make_graph(nodes, "body", inputs, [value("going", TensorProto.BOOL, 0), value(found)])
        return net.op("Loop", net.constant(3, "int64"), "", x, body=body, name="loop")

    return outside


def in_scan(core: Core) -> Core:
    """A row at a time, with what is left of those before it."""

    def outside(net: Network, x: str) -> str:
        def step(net: Network, row: str) -> str:
            return net.op("Add", core(net, row), net.op("Sigmoid", "state"))

        nodes, found = net.apart(step, "row")
        nodes.append(helper.make_node("Tanh", [found], ["next"]))
        inputs, outputs = [value("state", rank=1), value("row", rank=1)], [value("next", rank=1), value(found, rank=1)]
        body = helper.make_graph(nodes, "body", inputs, outputs)
        start = net.constant(np.linspace(-1, 1, 24))
        return net.ops("Scan", 2, start, x, body=body, num_scan_inputs=1, name="scan")[1]

    return outside


def in_branch(core: Core) -> Core:
    """The branch that is taken where the sum is small, which the run decides."""

    def outside(net: Network, x: str) -> str:
        flag = net.op("Less", net.op("ReduceSum", x, keepdims=0), net.constant(1e6))
        branches: dict[str, Any] = {}
        for name, inner in (("then_branch", core), ("else_branch", lambda net, x: net.op("Cos", net.op("Neg", x)))):
            nodes, found = net.apart(inner, x)
            branches[name] = helper.make_graph(nodes, name, [], [value(found)])
        return net.op("If", flag, name="either", **branches)

    return outside


def in_function(core: Core) -> Callable[[], onnx.ModelProto]:
    """A model that calls a function with the core in it."""

    def model() -> onnx.ModelProto:
        held: list[onnx.NodeProto] = []

        def outside(net: Network, x: str) -> str:
            nodes, found = net.apart(lambda net, x: net.op("Neg", core(net, net.op("Sin", x))), "a")
            held.extend((*nodes, helper.make_node("Identity", [found], ["c"])))
            return net.op("Inner", x, name="call", domain="local")

        made = perceptron(outside)
        weights = {tensor.name: tensor for tensor in made.graph.initializer}
        read = [name for node in held for name in node.input if name in weights]
        constants = [helper.make_node("Constant", [], [name], value=weights[name]) for name in dict.fromkeys(read)]
        opsets = list(made.opset_import)
        made.functions.append(helper.make_function("local", "Inner", ["a"], ["c"], [*constants, *held], opsets))
        made.opset_import.append(helper.make_opsetid("local", 1))
        return made

    return model


SQUARE: Final = Fault(
    "square_in_loop", "wrong rule in a body", "rule:square", ("guilty",), lambda: perceptron(in_loop(rules.powers)),
    wrong_rule(algebra.square, rules.square),
)  # fmt: skip
ERF: Final = Fault(
    "erf_in_loop", "wrong kernel in a body", "solution:elementwise loops", ("guilty",),
    lambda: perceptron(in_loop(solutions.errors)), wrong_kernel(ElementwiseLoops, "erf_float32(", "tanh_float32("),
)  # fmt: skip

FAULTS: Final = (
    SQUARE,
    replace(SQUARE, name="square_in_branch", model=lambda: perceptron(in_branch(rules.powers))),
    replace(SQUARE, name="square_in_scan", model=lambda: perceptron(in_scan(rules.powers))),
    replace(SQUARE, name="square_in_function", model=in_function(rules.powers)),
    replace(SQUARE, name="square_in_branch_in_loop", model=lambda: perceptron(in_loop(in_branch(rules.powers)))),
    ERF,
    replace(ERF, name="erf_in_scan", model=lambda: perceptron(in_scan(solutions.errors))),
    Fault("merge_constants_in_branch", "rule that no longer declines in a body", "rule:merge_constants",
          ("lower", "guilty"), lambda: perceptron(in_branch(rules.clipped)),
          wrong_rule(algebra.merge_constants, rules.merge_constants)),
)  # fmt: skip
