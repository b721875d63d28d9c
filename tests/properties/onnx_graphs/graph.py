"""A random ONNX graph under construction: every value has an array, so that the next node can fit it.

A template (see the modules beside this one) picks values, or asks for new ones, and adds a node. The node is run
alone in ONNX Runtime, which gives the arrays of its outputs; where it has no code for the node, ours are taken, and
the graph as a whole is not compared. A node that it calls invalid is not added.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

import argosy
from argosy.errors import ArgosyError, InternalError
from argosy.frontends.onnx import load
from argosy.ir import Env
from argosy.ir.dtype import Array
from argosy.ir.interpreter import Interpreter

__all__ = [
    "ELEMENTS",
    "Graph",
    "NotDrawn",
    "Step",
    "Template",
    "Value",
    "make_body",
    "newest_opset",
    "run_onnxruntime",
    "run_ours",
]

Template = Callable[["Graph", str], None]
IR_VERSION: Final = 10
ELEMENTS: Final = {
    "float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "float16": TensorProto.FLOAT16,
    "int64": TensorProto.INT64, "int32": TensorProto.INT32, "int16": TensorProto.INT16, "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8, "uint16": TensorProto.UINT16, "uint32": TensorProto.UINT32,
    "uint64": TensorProto.UINT64, "bool": TensorProto.BOOL, "object": TensorProto.STRING,
}  # fmt: skip
_LARGEST: Final = 2000
"""Elements that a value may have."""


class NotDrawn(Exception):  # noqa: N818 - not an error: the template has nothing to offer here
    """The template found no values that fit, or drew a node that nobody takes."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the graph with the array (or list of arrays) that it has in the one run that is compared."""

    name: str
    array: Any

    @property
    def dtype(self) -> str:
        """The element type, as numpy calls it; "object" are strings, "sequence" is a list."""
        return "sequence" if isinstance(self.array, list) else str(self.array.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The dims of a tensor."""
        return tuple(self.array.shape)

    @property
    def rank(self) -> int:
        """The number of dims of a tensor; -1 for a sequence."""
        return -1 if isinstance(self.array, list) else int(self.array.ndim)

    @property
    def finite(self) -> bool:
        """Whether it holds numbers only. What NaN is to a maximum or an integer, the standard leaves open."""
        return self.array.dtype.kind != "f" or bool(np.isfinite(self.array).all())


@dataclass(frozen=True, slots=True)
class Step:
    """A node alone: its model, its inputs and what ONNX Runtime made of them."""

    model: ModelProto
    feeds: dict[str, Any]
    results: list[Any]


@cache
def newest_opset() -> int:
    """The newest opset of ai.onnx that ONNX Runtime loads."""
    for version in range(onnx.defs.onnx_opset_version(), 0, -1):
        feeds = {"x": np.zeros(1, np.float32)}
        model = _model([helper.make_node("Identity", ["x"], ["y"])], feeds, ["y"], version)
        if run_onnxruntime(model, feeds)[0] is not None:
            return version
    raise AssertionError


class Graph:
    """Values, nodes, and what is drawn at random."""

    def __init__(self, rng: random.Random, opset: int) -> None:
        self.rng = rng
        self.numbers = np.random.default_rng(rng.randrange(1 << 30))
        self.opset = opset
        self.nodes: list[NodeProto] = []
        self.values: list[Value] = []
        self.inputs: dict[str, Array] = {}
        self.initializers: dict[str, Array] = {}
        self.steps: list[Step] = []
        self.comparable = True
        self.loose = False  # a node whose integers may differ by one unit

    # ---- drawing

    def one(self, *choices: Any) -> Any:
        """One of the choices."""
        return self.rng.choice(choices)

    def flag(self, share: float = 0.5) -> bool:
        """True in this share of the cases."""
        return self.rng.random() < share

    def sizes(self, rank: int, least: int = 1) -> tuple[int, ...]:
        """So many small sizes."""
        return tuple(self.rng.choice([size for size in (1, 2, 3, 4, 5) if size >= least]) for _ in range(rank))

    def pick(
        self, *dtypes: str, ranks: Sequence[int] = (0, 1, 2, 3, 4), where: Callable[[Value], bool] | None = None
    ) -> Value:
        """A value of one of the types and ranks, one that is there if possible, else a new input."""
        fitting = [
            value for value in self.values[-6:]
            if value.dtype in dtypes and value.rank in ranks and (where is None or where(value))
        ]  # fmt: skip
        if fitting and self.flag(0.85):
            return self.one(*fitting)
        made = self.array(self.one(*dtypes), self.sizes(self.one(*ranks)))
        if where is not None and not where(Value("", made)):
            raise NotDrawn
        return self.new(made)

    def array(self, dtype: str, shape: Sequence[int], low: float = -3, high: float = 3) -> Array:
        """Random values: halves, some of them equal; for integers whole numbers."""
        shape = tuple(shape)
        if dtype == "object":
            return self.numbers.choice(np.array(["a", "b", "Bc", "", "d e"], object), shape)
        if dtype == "bool":
            return self.numbers.integers(0, 2, shape).astype(bool)
        kind = np.dtype(dtype)
        if kind.kind in "iu":
            low = max(low, 0) if kind.kind == "u" else low
            if high < low:
                raise NotDrawn  # an index into an empty axis
            return self.numbers.integers(int(low), int(high) + 1, shape).astype(kind)
        values = self.numbers.uniform(low, high, shape)
        return np.asarray(np.where(self.numbers.random(shape) < 0.3, np.round(values), values)).astype(kind)

    def new(self, array: Any, *, constant: bool | None = None) -> Value:
        """A new input or initializer with these values."""
        array = np.asarray(array)
        constant = self.flag(0.3) if constant is None else constant
        value = Value(f"{'w' if constant else 'x'}{len(self.inputs) + len(self.initializers)}", array)
        (self.initializers if constant else self.inputs)[value.name] = array
        self.values.append(value)
        return value

    def tensor(self, dtype: str, shape: Sequence[int], low: float = -3, high: float = 3) -> Value:
        """A new value of a type and shape."""
        return self.new(self.array(dtype, shape, low, high))

    def positive(self, shape: Sequence[int], low: float = 0.05, high: float = 0.5) -> Value:
        """Positive floats: scales, which must not be 0."""
        return self.new(self.numbers.uniform(low, high, tuple(shape)).astype(np.float32))

    def ints(self, *values: int, dtype: str = "int64") -> Value:
        """A small integer tensor; most often a constant."""
        return self.new(np.array(values, dtype), constant=self.flag(0.7))

    def since(self, op: str, domain: str = "") -> int:
        """The version of the op that the opset means; raises NotDrawn where it has none."""
        try:
            schema = onnx.defs.get_schema(op, self.opset, domain)
        except onnx.defs.SchemaError:
            raise NotDrawn from None
        if schema.deprecated:
            raise NotDrawn
        return schema.since_version

    # ---- adding

    def node(
        self,
        op: str,
        *inputs: Value | None,
        outputs: int = 1,
        domain: str = "",
        loose: bool = False,
        captures: Sequence[Value] = (),
        **attributes: Any,
    ) -> list[Value]:
        """Add a node; raises NotDrawn where it is not valid, or its results are large.

        `captures` are what its subgraphs read from outside; `loose`: integers may differ by one unit.
        """
        if not domain:
            self.since(op)
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        given = {name: value for name, value in attributes.items() if value is not None}
        names = [f"v{len(self.nodes)}_{index}" for index in range(outputs)]
        node = helper.make_node(op, [value.name if value else "" for value in inputs], names, domain=domain, **given)
        feeds = {value.name: value.array for value in (*inputs, *captures) if value is not None}
        model = _model([node], feeds, names, self.opset, domain)
        results, why = run_onnxruntime(model, feeds)
        if results is None and why == "NotImplemented":
            results, _ = run_ours(model, feeds)
            self.comparable = False
        if results is None or any(_size(result) > _LARGEST for result in results):
            raise NotDrawn
        self.nodes.append(node)
        self.steps.append(Step(model, feeds, results))
        self.loose |= loose
        made = [Value(name, result) for name, result in zip(names, results, strict=True)]
        self.values += made
        return made

    def model(self) -> ModelProto:
        """The whole graph: every output of a node that no other one reads is an output; some dims are dynamic."""
        read = {name for node in self.nodes for name in node.input}
        outputs = [value.name for value in self.values if value.name.startswith("v") and value.name not in read]
        domains = {node.domain for node in self.nodes} - {""}
        model = _model(self.nodes, self.inputs, outputs, self.opset, *sorted(domains), initializers=self.initializers)
        for entry in model.graph.input:
            for dim in entry.type.tensor_type.shape.dim:
                # The length of a shape is a rank; we ask for ranks where an op depends on them.
                if self.flag(0.5) and len(entry.type.tensor_type.shape.dim) > 1:
                    dim.dim_param = f"{entry.name}_{dim.dim_value}_{self.rng.randrange(2)}"
        return model

    def feeds(self) -> dict[str, Array]:
        """The inputs of the model."""
        return dict(self.inputs)


def _size(value: Any) -> int:
    return sum(map(_size, value)) if isinstance(value, list) else int(np.size(value)) + int(np.ndim(value) > 6) * 10_000


def _model(
    nodes: Sequence[NodeProto],
    inputs: dict[str, Any],
    outputs: Sequence[str],
    opset: int,
    *domains: str,
    initializers: dict[str, Array] | None = None,
) -> ModelProto:
    entries = [_entry(name, value) for name, value in inputs.items()]
    graph = helper.make_graph(
        list(nodes), "random", entries, [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in (initializers or {}).items()],
    )  # fmt: skip
    versions = [
        helper.make_opsetid("", opset),
        *(helper.make_opsetid(domain, _version(domain)) for domain in domains if domain),
    ]
    return helper.make_model(graph, opset_imports=versions, ir_version=IR_VERSION)


def _version(domain: str) -> int:
    return 3 if domain == "ai.onnx.ml" else 1


def _entry(name: str, value: Any) -> onnx.ValueInfoProto:
    if isinstance(value, list):
        element = helper.make_tensor_type_proto(ELEMENTS[str(value[0].dtype)], None)
        return helper.make_value_info(name, helper.make_sequence_type_proto(element))
    return helper.make_tensor_value_info(name, ELEMENTS[str(value.dtype)], value.shape)


@cache
def _options() -> Any:
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return options


def make_body(
    nodes: Sequence[NodeProto], inputs: Sequence[tuple[str, str, int | None]], outputs: Sequence[str]
) -> onnx.GraphProto:
    """A subgraph: nodes, inputs with type and rank, names of outputs."""
    entries = [
        helper.make_tensor_value_info(name, ELEMENTS[kind], None if rank is None else [None] * rank)
        for name, kind, rank in inputs
    ]
    return helper.make_graph(list(nodes), "body", entries, [onnx.ValueInfoProto(name=name) for name in outputs])


def run_onnxruntime(model: ModelProto, feeds: dict[str, Any]) -> tuple[list[Any] | None, str]:
    """Outputs, or None and what kind of error ONNX Runtime gives: NotImplemented, InvalidGraph, …"""
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), _options(), ["CPUExecutionProvider"])
        return list(session.run(None, feeds)), ""
    except Exception as error:  # noqa: BLE001 - it raises classes of its own, without a common base
        return None, type(error).__name__


def run_ours(model: ModelProto, feeds: dict[str, Any], target: str = "ref") -> tuple[list[Any] | None, str]:
    """Outputs, or None and why where we refuse. InternalError passes: that is a defect. On ref: as imported."""
    try:
        program = load(model)
        if target == "ref":
            values = Interpreter(program.main).run([feeds[name] for name in program.inputs], Env())
        else:
            session = argosy.Session(argosy.compile(program, targets=(target,)), device=target)
            values = tuple(session.run({name: feeds[name] for name in program.inputs}).values())
    except InternalError:
        raise
    except ArgosyError as error:
        return None, str(error)
    return [value if isinstance(value, list) or value is None else np.asarray(value) for value in values], ""
