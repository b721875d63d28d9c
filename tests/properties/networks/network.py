"""A random network under construction: every value has its arrays of several runs, so that the next node fits.

The sizes of the batch and the number of steps differ from run to run. A dim is the tuple of its sizes in the runs:
`(4, 4, 4)` is 4, and `(3, 1, 17)` perhaps the batch. Two dims fit where their sizes do in every run, whatever was
sliced or joined on the way. A template (see the modules beside this
one) picks values and adds nodes; each is run alone in ONNX Runtime, which gives the arrays. What it does not take, or
what gives numbers that are not finite or large, is left out again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper, numpy_helper

from argosy.ir.dtype import Array
from tests.properties.onnx_graphs.graph import ELEMENTS, IR_VERSION, NotDrawn, run_onnxruntime

__all__ = ["Dim", "Network", "Template", "Value"]

Dim = tuple[int, ...]
_LARGEST: Final = 3000
"""Elements that a value may have."""
_HIGHEST: Final = 100.0
"""Magnitude of floats: products of larger ones leave fp16."""
_MOST_DIMS: Final = 6


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the network: an array for each run."""

    name: str
    arrays: tuple[Array, ...]

    @property
    def dtype(self) -> str:
        """The element type, as numpy calls it."""
        return str(self.arrays[0].dtype)

    @property
    def rank(self) -> int:
        """The number of dims."""
        return self.arrays[0].ndim

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The dims, each with its sizes in the runs."""
        return tuple(zip(*(array.shape for array in self.arrays), strict=True))

    def varies(self, first: int = 0) -> bool:
        """Whether a dim from number `first` on differs from run to run."""
        return any(len(set(dim)) > 1 for dim in self.dims[first:])

    def size(self, axis: int) -> int:
        """A dim that is the same in every run; raises NotDrawn where it is not."""
        sizes = {array.shape[axis] for array in self.arrays}
        if len(sizes) > 1:
            raise NotDrawn
        return sizes.pop()

    def all(self, holds: Callable[[Array], Any]) -> bool:
        """Whether something holds in every run."""
        return all(bool(np.all(holds(array))) for array in self.arrays)


Template = Callable[["Network"], None]


class Network:
    """Values, nodes, and what is drawn at random.

    `real` is the float type that most values have; `symbols` are the sizes of N, the batch, and of T, the number of
    steps, in the runs.
    """

    def __init__(self, rng: random.Random, opset: int, real: str, symbols: Mapping[str, Dim]) -> None:
        self.rng = rng
        self.numbers = np.random.default_rng(rng.randrange(1 << 30))
        self.opset = opset
        self.real = real
        self.symbols = symbols
        self.runs = range(len(symbols["N"]))
        self.nodes: list[NodeProto] = []
        self.values: list[Value] = []
        self.inputs: dict[str, Value] = {}
        self.constants: dict[str, Array] = {}
        self.quantised = False
        self._count = 0

    # ---- drawing

    def one(self, *choices: Any) -> Any:
        """One of the choices."""
        return self.rng.choice(choices)

    def flag(self, share: float = 0.5) -> bool:
        """True in this share of the cases."""
        return self.rng.random() < share

    def pick(
        self, *dtypes: str, ranks: Sequence[int] = (0, 1, 2, 3, 4, 5), where: Callable[[Value], bool] | None = None
    ) -> Value:
        """A value that is there, of one of the types and ranks, more often a late one; raises NotDrawn for none."""
        fitting = [
            value for value in self.values
            if value.dtype in dtypes and value.rank in ranks and (where is None or where(value))
        ]  # fmt: skip
        if not fitting:
            raise NotDrawn
        return self.one(*(fitting[-4:] if self.flag(0.7) else fitting))

    def array(self, dtype: str, shape: Sequence[int], low: float = -1.5, high: float = 1.5) -> Array:
        """Random values, some of them whole."""
        kind = np.dtype(dtype)
        if kind == np.bool_:
            return self.numbers.integers(0, 2, shape).astype(kind)
        if kind.kind in "iu":
            return self.numbers.integers(int(low), int(high) + 1, shape).astype(kind)
        values = self.numbers.uniform(low, high, shape)
        return np.asarray(np.where(self.numbers.random(shape) < 0.1, np.round(values), values)).astype(kind)

    def input(self, dtype: str, dims: Sequence[int | str], low: float = -1.5, high: float = 1.5) -> Value:
        """A new input of the network, whose dims are numbers or symbols."""
        name = f"x{len(self.inputs)}"
        shapes = [[self.symbols[dim][run] if isinstance(dim, str) else dim for dim in dims] for run in self.runs]
        value = Value(name, tuple(self.array(dtype, shape, low, high) for shape in shapes))
        self.inputs[name] = value
        self.values.append(value)
        return value

    def constant(self, array: Any, *, known: bool = False) -> Value:
        """A constant: an initializer, a node, or what folds to it; with `known` just an initializer or a node."""
        array = np.asarray(array)
        value = Value(self._name("w"), (array,) * len(self.runs))
        if self.flag(0.1):
            self.nodes.append(helper.make_node("Constant", [], [value.name], value=numpy_helper.from_array(array)))
        elif not known and self.flag(0.15) and array.ndim > 1:
            turned = self._name("w")
            self.constants[turned] = np.ascontiguousarray(array.T)
            self.nodes.append(helper.make_node("Transpose", [turned], [value.name]))
        else:
            self.constants[value.name] = array
        return value

    def weight(self, dtype: str, shape: Sequence[int], low: float = -1.5, high: float = 1.5) -> Value:
        """A constant with random values."""
        return self.constant(self.array(dtype, tuple(shape), low, high))

    def ints(self, *numbers: int) -> Value:
        """A constant of int64: axes, shapes."""
        return self.constant(np.array(numbers, np.int64), known=True)

    def fresh(self) -> str:
        """The beginning of names that nothing has yet, for a body."""
        return f"{self._name('b')}_"

    def since(self, op: str) -> int:
        """The version of the op that the opset means; raises NotDrawn where it has none."""
        try:
            return onnx.defs.get_schema(op, self.opset, "").since_version
        except onnx.defs.SchemaError:
            raise NotDrawn from None

    # ---- adding

    def node(self, op: str, *operands: Value | None, **options: Any) -> Value:
        """Add a node with one result, and give that."""
        return self.add(op, *operands, **options)[0]

    def add(
        self,
        op: str,
        *operands: Value | None,
        outputs: int = 1,
        captures: Sequence[Value] = (),
        tame: bool = True,
        **attributes: Any,
    ) -> list[Value]:
        """Add a node; raises NotDrawn where it is not valid, or its results are large.

        `captures` are what its subgraphs read from outside; without `tame` its numbers may be infinite or large.
        """
        while operands and operands[-1] is None:
            operands = operands[:-1]
        given = {name: value for name, value in attributes.items() if value is not None}
        names = [self._name("v") for _ in range(outputs)]
        node = helper.make_node(op, [value.name if value else "" for value in operands], names, **given)
        read = {value.name: value for value in (*operands, *captures) if value is not None}
        runs = []
        for run in self.runs:
            feeds = {name: value.arrays[run] for name, value in read.items()}
            results, _ = run_onnxruntime(self._model([node], feeds, names), feeds)
            if results is None or not all(map(_small, results)) or (tame and not all(map(_tame, results))):
                raise NotDrawn
            runs.append(results)
        if any(len({np.ndim(array) for array in arrays}) > 1 for arrays in zip(*runs, strict=True)):
            raise NotDrawn
        self.nodes.append(node)
        made = [Value(name, arrays) for name, arrays in zip(names, zip(*runs, strict=True), strict=True)]
        self.values += made
        if self.flag(0.04):  # the same again
            copies = [Value(self._name("v"), value.arrays) for value in made]
            again = NodeProto()
            again.CopyFrom(node)
            again.output[:] = [copy.name for copy in copies]
            self.nodes.append(again)
            self.values += copies
        return made

    def inner(self, op: str, operands: Sequence[str], result: str, **attributes: Any) -> NodeProto:
        """A node of a body."""
        return helper.make_node(op, operands, [result], **attributes)

    def undo(self, mark: tuple[int, int]) -> None:
        """Forget the nodes and values since a `mark`."""
        del self.nodes[mark[0] :], self.values[mark[1] :]

    @property
    def mark(self) -> tuple[int, int]:
        """Where the network stands, for `undo`."""
        return len(self.nodes), len(self.values)

    def model(self) -> ModelProto:
        """The whole: what nobody reads is an output, and of the others every tenth."""
        read = self._read()
        made = {name for node in self.nodes for name in node.output}
        chosen = random.Random(len(self.nodes))
        outputs = [
            value.name for value in self.values
            if value.name in made and (value.name not in read or chosen.random() < 0.1)
        ]  # fmt: skip
        nodes = [node for node in self.nodes if node.op_type != "Constant" or node.output[0] in read]
        used = {name: array for name, array in self.constants.items() if name in read}
        feeds = {name: value.arrays[0] for name, value in self.inputs.items() if name in read}
        model = self._model(nodes, feeds, outputs, used)
        for entry in model.graph.input:
            for dim, sizes in zip(entry.type.tensor_type.shape.dim, self.inputs[entry.name].dims, strict=True):
                for symbol in (symbol for symbol, known in self.symbols.items() if known == sizes):
                    dim.dim_param = symbol
        return model

    def feeds(self, run: int) -> dict[str, Array]:
        """The inputs of the model in a run."""
        read = self._read()
        return {name: value.arrays[run] for name, value in self.inputs.items() if name in read}

    def _read(self) -> set[str]:
        return {name for node in self.nodes for name in (*node.input, *_captured(node))}

    def _name(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def _model(
        self,
        nodes: Sequence[NodeProto],
        feeds: dict[str, Array],
        outputs: Sequence[str],
        constants: dict[str, Array] | None = None,
    ) -> ModelProto:
        entries = [
            helper.make_tensor_value_info(name, ELEMENTS[str(array.dtype)], array.shape)
            for name, array in feeds.items()
        ]
        graph = helper.make_graph(
            list(nodes), "network", entries, [onnx.ValueInfoProto(name=name) for name in outputs],
            [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
        )  # fmt: skip
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=IR_VERSION)


def _captured(node: NodeProto) -> set[str]:
    """What the bodies of a node read; names of theirs do no harm, as no value of the network has them."""
    bodies = [entry.g for entry in node.attribute if entry.HasField("g")]
    return {name for body in bodies for inner in body.node for name in (*inner.input, *_captured(inner))}


def _small(result: Any) -> bool:
    return isinstance(result, np.ndarray) and result.size <= _LARGEST and result.ndim <= _MOST_DIMS


def _tame(result: Array) -> bool:
    """Numbers that do not overflow soon, of which something is left."""
    if result.dtype.kind != "f":
        return True
    return bool(np.isfinite(result).all()) and float(np.abs(result).max(initial=0.0)) <= _HIGHEST
