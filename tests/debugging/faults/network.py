"""Models in which faults hide: a few nodes among others, on another way to the output beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import helper, numpy_helper

__all__ = ["Core", "Network", "convolutional", "gated", "perceptron", "recurrent", "tabular"]

Core: TypeAlias = "Callable[[Network, str], str]"
"""Puts the nodes in question behind a value; gives what they make of it."""


class Network:
    """An ONNX graph that grows node by node, with seeded weights."""

    def __init__(self, name: str, *, opset: int = 20) -> None:
        self._name = name
        self._opset = opset
        self._random = np.random.default_rng(7)
        self._used: Counter[str] = Counter()
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def _fresh(self, word: str) -> str:
        self._used[word] += 1
        return f"{word}_{self._used[word]}"

    def input(self, name: str, dims: Sequence[int | str], dtype: str = "float32") -> str:
        """Declare an input."""
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self._inputs.append(helper.make_tensor_value_info(name, kind, list(dims)))
        return name

    def output(self, value: str, dtype: str = "float32") -> None:
        """Declare an output."""
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self._outputs.append(helper.make_tensor_value_info(value, kind, None))

    def constant(self, value: Any, dtype: str = "float32") -> str:
        """A constant."""
        name = self._fresh("constant")
        self._weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def ints(self, *values: int) -> str:
        """A list of int64."""
        return self.constant(values, "int64")

    def weight(self, *shape: int, low: float = -1.0, high: float = 1.0) -> str:
        """Numbers between bounds."""
        return self.constant(self._random.uniform(low, high, shape))

    def op(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Add a node with one result, called as the node is."""
        return self.ops(kind, 1, *inputs, name=name, **attributes)[0]

    def ops(self, kind: str, count: int, *inputs: str, name: str = "", **attributes: Any) -> list[str]:
        """Add a node with several results."""
        name = name or self._fresh(kind.lower())
        outputs = [name] if count == 1 else [f"{name}.{number}" for number in range(count)]
        self._nodes.append(helper.make_node(kind, list(inputs), outputs, name=name, **attributes))
        return outputs

    def apart(self, core: Core, x: str) -> tuple[list[onnx.NodeProto], str]:
        """The nodes that a core puts behind a value, taken out of the graph; what they make."""
        before = len(self._nodes)
        found = core(self, x)
        nodes = self._nodes[before:]
        del self._nodes[before:]
        return nodes, found

    def model(self) -> onnx.ModelProto:
        """The model."""
        graph = helper.make_graph(self._nodes, self._name, self._inputs, self._outputs, self._weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self._opset)], ir_version=9)

    def finish(self, found: str, side: str) -> onnx.ModelProto:
        """The model where two ways meet: `found`, moved by the mean of `side`, is one output, `side` the other."""
        mean = self.op("ReduceMean", self.op("Sigmoid", side), keepdims=0)
        self.output(self.op("Mul", found, self.op("Add", mean, self.constant(0.5))))
        self.output(self.op("Softsign", side))
        return self.model()


def perceptron(core: Core, width: int = 24, batch: int | str = "N") -> onnx.ModelProto:
    """Two layers with a gate; the core takes `[N, width]` of either sign."""
    net = Network("perceptron")
    x = net.input("x", [batch, width])
    h = net.op("Add", net.op("MatMul", x, net.weight(width, width)), net.weight(width))
    gate = net.op("Sigmoid", net.op("Mul", net.op("Relu", h), net.constant(0.5)))
    side = net.op("Tanh", net.op("MatMul", gate, net.weight(width, 16)))
    return net.finish(core(net, net.op("Mul", h, gate)), side)


def convolutional(core: Core, channels: int = 8, size: int = 11, batch: int | str = "N") -> onnx.ModelProto:
    """A stem and a branch that pools; the core takes `[N, channels, size, size]`."""
    net = Network("convolutional")
    x = net.input("x", [batch, channels, size, size])
    h = net.op("LeakyRelu", net.op("Conv", x, net.weight(channels, channels, 1, 1), net.weight(channels)), alpha=0.2)
    pooled = net.op("MaxPool", net.op("Neg", h), kernel_shape=[2, 2], strides=[2, 2])
    side = net.op("GlobalAveragePool", net.op("Relu", net.op("Conv", pooled, net.weight(6, channels, 1, 1))))
    return net.finish(core(net, net.op("Add", h, x)), side)


def recurrent(core: Core, width: int = 16, length: int | str = "T", batch: int | str = "N") -> onnx.ModelProto:
    """Norm, product and residual over sequences; the core takes `[N, T, width]`."""
    net = Network("sequences")
    x = net.input("x", [batch, length, width])
    normed = net.op("LayerNormalization", x, net.weight(width, low=0.5), net.weight(width), axis=-1)
    h = net.op("Add", net.op("MatMul", normed, net.weight(width, width)), x)
    side = net.op("Elu", net.op("ReduceMax", net.op("Sub", h, normed), net.ints(1), keepdims=0))
    return net.finish(core(net, h), net.op("MatMul", side, net.weight(width, 5)))


def tabular(core: Core, dtype: str = "int64", columns: int = 12, batch: int | str = "N") -> onnx.ModelProto:
    """Features beside codes `k [N, columns]`, which the core takes; it gives floats."""
    net = Network("table")
    x, codes = net.input("x", [batch, columns]), net.input("k", [batch, columns], dtype)
    known = net.op("Cast", net.op("Equal", codes, net.constant(1, dtype)), to=onnx.TensorProto.FLOAT)
    h = net.op("Where", net.op("Greater", x, net.constant(0.0)), x, net.op("Mul", known, net.constant(-0.3)))
    side = net.op("MatMul", net.op("Relu", h), net.weight(columns, 4))
    return net.finish(core(net, codes), side)


def gated(core: Core, width: int = 24, batch: int | str = "N") -> onnx.ModelProto:
    """Formulas alone, which are few kernels; the core takes `[N, width]`."""
    net = Network("gated")
    x, scale = net.input("x", [batch, width]), net.input("scale", [1])
    h = net.op("Add", net.op("Mul", x, net.op("Sigmoid", scale)), net.op("Sin", x))
    side = net.op("Softsign", net.op("Sub", h, net.op("Cos", scale)))
    net.output(net.op("Mul", core(net, h), net.op("Exp", net.op("Neg", scale))))
    net.output(side)
    return net.model()
