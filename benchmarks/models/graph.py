"""Write ONNX graphs by hand: scoped names, seeded weights, reproducible bytes.

Weights must have the same bits on every machine and with every numpy, or the lock file could not hold
their hashes. numpy promises that only for the raw words of its bit generators, not for distributions, so
weights are uniform numbers made from Philox words by exact float32 arithmetic and one rounding.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

__all__ = ["Dim", "Graph", "uniform"]

Dim = int | str

DTYPES = {
    "float32": onnx.TensorProto.FLOAT,
    "int64": onnx.TensorProto.INT64,
    "int32": onnx.TensorProto.INT32,
}
IR_VERSION = 8  # the version that opset 17 came with


def uniform(key: str, shape: Sequence[int], low: float, high: float) -> NDArray[np.float32]:
    """Numbers in [low, high], the same for a key and shape on any machine."""
    digest = hashlib.sha256(key.encode()).digest()
    words = np.random.Philox(key=np.frombuffer(digest[:16], "<u8").copy())
    count = math.prod(shape)
    raw = words.random_raw((count + 1) // 2).astype("<u8").view("<u4")[:count]
    signed = (raw >> 8).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)  # exact, in [-1, 1)
    middle, reach = np.float32((low + high) / 2), np.float32((high - low) / 2)
    return (signed * reach + middle).reshape(tuple(shape))


class Graph:
    """An ONNX graph that grows node by node; `model` ends it."""

    def __init__(self, name: str, *, seed: int = 0, opset: int = 17) -> None:
        self._name = name
        self._seed = seed
        self._opset = opset
        self._scope: list[str] = []
        self._used: Counter[str] = Counter()
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []
        self._constants: dict[tuple[str, bytes, tuple[int, ...]], str] = {}
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Names made inside begin with `name/`."""
        self._scope.append(name)
        try:
            yield
        finally:
            self._scope.pop()

    def _path(self, word: str) -> str:
        path = "/".join([*self._scope, word])
        self._used[path] += 1
        return path if self._used[path] == 1 else f"{path}_{self._used[path] - 1}"

    def input(self, name: str, dtype: str, dims: Sequence[Dim]) -> str:
        """Declare an input; a dim that is a word is symbolic."""
        self._inputs.append(helper.make_tensor_value_info(name, DTYPES[dtype], list(dims)))
        return name

    def output(self, value: str, name: str, dtype: str, dims: Sequence[Dim]) -> None:
        """Declare `value` as an output called `name`."""
        self._nodes.append(helper.make_node("Identity", [value], [name], name=f"output/{name}"))
        self._outputs.append(helper.make_tensor_value_info(name, DTYPES[dtype], list(dims)))

    def weight(self, word: str, shape: Sequence[int], low: float, high: float) -> str:
        """A weight drawn uniformly from [low, high]."""
        name = self._path(word)
        array = uniform(f"{self._seed}/{self._name}/{name}", shape, low, high)
        self._weights.append(numpy_helper.from_array(array, name))
        return name

    def matrix(self, word: str, shape: Sequence[int], fan_in: int, gain: float = 1.0) -> str:
        """A weight of mean 0 and variance gain² / fan_in.

        With gain √2 a product followed by Relu keeps the mean square of its input (He et al. 2015, eq. 10), with gain
        1 one without.
        """
        reach = gain * math.sqrt(3 / fan_in)
        return self.weight(word, shape, -reach, reach)

    def constant(self, value: float | Sequence[int] | NDArray[Any], dtype: str = "int64") -> str:
        """A constant; equal ones are shared."""
        array = np.asarray(value, dtype)
        key = (dtype, array.tobytes(), array.shape)
        if key not in self._constants:
            name = f"constant_{len(self._constants)}"
            self._weights.append(numpy_helper.from_array(array, name))
            self._constants[key] = name
        return self._constants[key]

    def op(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one result and return that; an absent input is an empty string."""
        return self.ops(op_type, 1, *inputs, **attributes)[0]

    def ops(self, op_type: str, results: int, *inputs: str, **attributes: Any) -> list[str]:
        """Add a node with several results."""
        name = self._path(op_type)
        outputs = [name] if results == 1 else [f"{name}.{index}" for index in range(results)]
        self._nodes.append(helper.make_node(op_type, list(inputs), outputs, name=name, **attributes))
        return outputs

    def model(self) -> onnx.ModelProto:
        """The model, checked."""
        graph = helper.make_graph(self._nodes, self._name, self._inputs, self._outputs, self._weights)
        opset = helper.make_opsetid("", self._opset)
        model = helper.make_model(
            graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="argosy.benchmarks"
        )
        onnx.checker.check_model(model)
        return model
