"""A fault in the body of a loop, a conditional or a function is reduced to the nodes that show it, there or outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import argosy
from argosy.debugging import Reduced, reduce_model
from argosy.debugging.reduction.nodes import nodes_of
from argosy.errors import CompileError
from argosy.ir.module import Module
from tests.debugging.planting import FLOAT, ModelBuilder, array, is_maximum, plant, wrong_maximum, wrong_maximum_in
from tests.targets.mirror import MirrorTarget

TARGETS = [MirrorTarget(1)]
MOST_NODES = 3


def reduced(model: onnx.ModelProto, **arguments: Any) -> Reduced:
    """The reduction: valid for others too, and failing still."""
    run(model, {"x": array(*(dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim))})
    found = reduce_model(model, targets=TARGETS, **arguments)
    assert found is not None
    onnx.checker.check_model(found.model, full_check=True)
    run(found.model, found.inputs)
    assert found.kind == "wrong numbers"
    assert len(list(nodes_of(found.model.graph))) == len(found.nodes)
    assert not argosy.verify(found.model, targets=TARGETS, inputs=found.inputs).passed
    return found


def run(model: onnx.ModelProto, inputs: Mapping[str, Any]) -> None:
    """Let another engine run a model, which then is valid."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, dict(inputs))


def ops(found: Reduced) -> list[str]:
    return [node.op_type for node in nodes_of(found.model.graph)]


def value(name: str, kind: int = FLOAT, dims: Any = (None, None)) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, dims)


def long_body(start: str, prefix: str, *, outside: str = "") -> ModelBuilder:
    """A chain of 30 nodes with a maximum in the middle, over [2, 8] from `start`; it may read a value from outside."""
    build = ModelBuilder(2, 8, prefix=prefix)
    build.last = start
    build.chain(14)
    chain = build.last
    build.add("ReduceMax", axes=[1], keepdims=1, name="culprit")
    build.add_over("Sub", [outside or chain, build.last])
    build.chain(14)
    build.add("Tanh")
    return build


def graph_of(build: ModelBuilder, inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]) -> Any:
    weights = [numpy_helper.from_array(each, f"{build.prefix}{name}") for name, each in build.initializers.items()]
    for node in build.nodes:
        node.input[:] = [f"{build.prefix}{name}" if name in build.initializers else name for name in node.input]
    return helper.make_graph(build.nodes, "body", inputs, outputs, weights)


def looped(*, trips: int | None = 3, scanned: bool = False) -> onnx.ModelProto:
    """A loop of over 30 nodes among 12; a counter beside its state ends it where `trips` is None."""
    outer = ModelBuilder(2, 8)
    outer.chain(6)
    body = long_body("state", "in", outside=outer.last)
    last = body.last
    body.add_over("Add", ["count", body.weight("one", np.array(1))])
    counted = body.last
    on = body.add_over("Less", [counted, body.weight("most", np.array(3))]) if trips is None else "going"
    inputs = [value("i", TensorProto.INT64, []), value("going", TensorProto.BOOL, []), value("state")]
    inputs.append(value("count", TensorProto.INT64, []))
    outputs = [value(on, TensorProto.BOOL, []), value(last), value(counted, TensorProto.INT64, [])]
    if scanned:
        body.add_over("Neg", [last])
        outputs.append(value(body.last))
    limit = "" if trips is None else outer.weight("trips", np.array(trips))
    start = outer.last
    node = helper.make_node(
        "Loop",
        [limit, "", start, outer.weight("zero", np.array(0))],
        ["final", "counted", *(["each"] if scanned else [])],
        name="loop",
        body=graph_of(body, inputs, outputs),
    )
    outer.nodes.append(node)
    outer.last = "final"
    outer.chain(5)
    if scanned:
        outer.add_over("Add", [outer.last, outer.add_over("ReduceMean", ["each"], axes=[0], keepdims=0)])
    return outer.model()


def branched() -> onnx.ModelProto:
    """A conditional that the run decides, with over 30 nodes in each branch."""
    outer = ModelBuilder(2, 8)
    outer.chain(6)
    flag = outer.add_over("Greater", [outer.add_over("ReduceSum", ["x"], keepdims=0), outer.weight("low", array())])
    bodies = [long_body("v5", prefix) for prefix in ("then", "else")]
    then, other = (graph_of(body, [], [value(body.last)]) for body in bodies)
    outer.add_over("If", [flag], name="either", then_branch=then, else_branch=other)
    outer.chain(6)
    return outer.model()


def scanned() -> onnx.ModelProto:
    """A scan over the first axis, from behind, with a state."""
    outer = ModelBuilder(5, 2, 8)
    outer.chain(6)
    body = long_body("row", "in", outside="state")
    body.add_over("Add", ["state", body.last])
    inputs, outputs = [value("state"), value("row")], [value("next"), value(body.last)]
    body.nodes.append(helper.make_node("Tanh", [body.last], ["next"]))
    attributes: dict[str, Any] = {"num_scan_inputs": 1, "scan_input_directions": [1], "scan_output_axes": [1]}
    node = helper.make_node(
        "Scan",
        [outer.weight("start", array(2, 8)), outer.last],
        ["final", "rows"],
        name="scan",
        body=graph_of(body, inputs, outputs),
        **attributes,
    )
    outer.nodes.append(node)
    outer.last = "rows"
    outer.chain(5)
    return outer.model()


def nested() -> onnx.ModelProto:
    """A conditional with over 30 nodes in a loop."""
    outer = ModelBuilder(2, 8)
    outer.chain(6)
    inner = long_body("state", "in")
    other = ModelBuilder(2, 8, prefix="other")
    other.add_over("Neg", ["state"])
    body = ModelBuilder(2, 8, prefix="mid")
    flag = body.add_over("Less", ["i", body.weight("two", np.array(2))])
    branches = {
        "then_branch": graph_of(inner, [], [value(inner.last)]),
        "else_branch": graph_of(other, [], [value(other.last)]),
    }
    result = body.add_over("If", [flag], name="either", **branches)
    inputs = [value("i", TensorProto.INT64, []), value("going", TensorProto.BOOL, []), value("state")]
    graph = graph_of(body, inputs, [value("going", TensorProto.BOOL, []), value(result)])
    outer.add_over("Loop", [outer.weight("trips", np.array(3)), "", outer.last], name="loop", body=graph)
    outer.chain(5)
    return outer.model()


MODELS = {
    "loop": looped,
    "loop with results of each iteration": lambda: looped(scanned=True),
    "loop that ends itself": lambda: looped(trips=None),
    "if": branched,
    "scan": scanned,
    "if in a loop": nested,
}
"""All with a culprit in a body, which has over 30 nodes."""

every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


@every_model
def test_a_node_of_a_body_is_found(monkeypatch: pytest.MonkeyPatch, make: Callable[[], onnx.ModelProto]) -> None:
    plant(monkeypatch, wrong_maximum)
    found = reduced(make())
    assert found.nodes == ("culprit (ReduceMax)",)
    assert found.nodes_before > 40


@every_model
def test_a_fault_that_takes_the_body_keeps_it(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], onnx.ModelProto]
) -> None:
    """Where the maximum is wrong in a body alone, that body keeps it and nothing else."""
    model = make()
    (kind,) = {node.op_type for node in model.graph.node}.intersection(("Loop", "If", "Scan"))
    plant(monkeypatch, wrong_maximum_in(kind.lower()))
    found = reduced(model)
    assert ops(found) == [kind, "ReduceMax"]
    assert len(found.nodes) <= MOST_NODES
    assert found.nodes[1].endswith("/culprit (ReduceMax)")
    assert not found.exhausted


def test_a_node_outside_and_one_in_the_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of a loop that begins with a tanh keeps that, and the node in the body."""
    wrong = wrong_maximum_in("loop")

    def of_tanh(module: Module) -> Module:
        loops = [step for step in module.instructions if step.op.name == "loop"]
        begins = [value.instruction for step in loops for value in step.operands if value is not None]
        return wrong(module) if any("tanh" in str(maker.op.attributes()) for maker in begins) else module

    plant(monkeypatch, of_tanh)
    found = reduced(looped())
    assert ops(found) == ["Tanh", "Loop", "ReduceMax"]


def test_an_iteration_that_is_not_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the state is the same in a row, as it is at the beginning, a maximum is a minimum."""
    plant(monkeypatch, wrong_maximum)
    body = ModelBuilder(2, 8, prefix="in")
    body.add_over("ReduceMax", ["state"], axes=[1], keepdims=1, name="culprit")
    body.add_over("Sub", ["state", body.last])
    body.chain(28)
    inputs = [value("i", TensorProto.INT64, []), value("going", TensorProto.BOOL, []), value("state")]
    graph = graph_of(body, inputs, [value("going", TensorProto.BOOL, []), value(body.last)])
    outer = ModelBuilder(2, 8)
    outer.add_over("Loop", [outer.weight("trips", np.array(5)), "", "x"], name="loop", body=graph)
    outer.chain(5)
    found = reduced(outer.model(), inputs={"x": np.zeros((2, 8), np.float32)})
    assert ops(found)[:2] == ["Loop", "ReduceMax"]
    assert len(found.nodes) <= MOST_NODES
    assert 2 in [numpy_helper.to_array(tensor).tolist() for tensor in found.model.graph.initializer], "iterations"


def test_several_loops_of_which_two_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them is made small."""

    def only_two(module: Module) -> Module:
        count = sum(
            step.op.name == "loop" and any(map(is_maximum, step.op.modules()[0].walk())) for step in module.walk()
        )
        return wrong_maximum(module) if count > 1 else module

    plant(monkeypatch, only_two)
    first, second = looped(), looped()
    for model in (first, second):
        model.graph.output[0].CopyFrom(value(model.graph.output[0].name))
    joined = onnx.compose.add_prefix(second, "next/")
    both = onnx.compose.merge_models(first, joined, [(first.graph.output[0].name, "next/x")])
    found = reduced(both)
    assert sorted(ops(found)) == ["Loop", "Loop", "ReduceMax", "ReduceMax"]


def test_a_branch_that_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its code is there too, and may be what can't be compiled."""

    def refuse(module: Module) -> Module:
        if any(map(is_maximum, module.walk())):
            raise CompileError("there is no register left")
        return module

    plant(monkeypatch, refuse)
    outer = ModelBuilder(2, 8)
    outer.chain(6)
    outer.add_over("Less", [outer.add_over("ReduceSum", ["x"], keepdims=0), outer.weight("high", np.float32(99))])
    bodies = [ModelBuilder(2, 8, prefix="then"), long_body("v5", "else")]
    bodies[0].add_over("Tanh", ["v5"])
    then, other = (graph_of(body, [], [value(body.last)]) for body in bodies)
    outer.add_over("If", [outer.last], name="either", then_branch=then, else_branch=other)
    outer.chain(6)
    found = reduce_model(outer.model(), targets=TARGETS)
    assert found is not None
    assert (found.kind, found.nodes) == ("error", ("culprit (ReduceMax)",))


def test_a_branch_that_the_sizes_contradict(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never taken: the model compiles, as a general one, and is no failure by itself."""
    outer = ModelBuilder("N", 8)
    outer.chain(6)
    outer.add_over("Less", [outer.add_over("ReduceSum", ["x"], keepdims=0), outer.weight("high", np.float32(99))])
    bodies = [long_body("v5", "then"), ModelBuilder(2, 8, prefix="else")]
    bodies[1].add_over("Reshape", ["v5", outer.weight("rows", np.array([5, 8]))])
    then, other = (graph_of(body, [], [value(body.last)]) for body in bodies)
    outer.add_over("If", [outer.last], name="either", then_branch=then, else_branch=other)
    outer.chain(6)
    asked: dict[str, Any] = {"targets": TARGETS, "dims": {"N": 2}}
    assert reduce_model(outer.model(), **asked) is None
    plant(monkeypatch, wrong_maximum)
    found = reduce_model(outer.model(), **asked)
    assert found is not None
    assert (found.kind, found.nodes) == ("wrong numbers", ("culprit (ReduceMax)",))
    monkeypatch.undo()
    plant(monkeypatch, wrong_maximum_in("if"))
    found = reduce_model(outer.model(), **asked)
    assert found is not None
    assert ops(found) == ["If", "ReduceMax"]


def function(name: str, nodes: list[onnx.NodeProto], opset: int = 17, *attributes: str) -> onnx.FunctionProto:
    """A function of one input `a` and one result `c`."""
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    return helper.make_function("local", name, ["a"], ["c"], nodes, opsets, list(attributes))


def calling(*functions: onnx.FunctionProto, **attributes: Any) -> onnx.ModelProto:
    """Calls of the last of the functions among other nodes."""
    build = ModelBuilder(2, 8)
    build.chain(6)
    build.add(functions[-1].name, domain="local", name="call", **attributes)
    build.chain(5)
    model = build.model()
    model.functions.extend(functions)
    model.opset_import.append(helper.make_opsetid("local", 1))
    return model


def long_function(name: str, opset: int = 17) -> onnx.FunctionProto:
    """30 nodes with a maximum in the middle."""
    ops = ["Tanh", "Neg", "Abs"] * 5
    names = ["a", *(f"t{number}" for number in range(len(ops)))]
    nodes = [helper.make_node(op, [names[i]], [names[i + 1]]) for i, op in enumerate(ops)]
    nodes.append(helper.make_node("ReduceMax", [names[-1]], ["most"], name="culprit", keepdims=1))
    nodes.append(helper.make_node("Sub", [names[-1], "most"], ["u0"]))
    nodes += [helper.make_node(op, [f"u{i}"], [f"u{i + 1}"]) for i, op in enumerate(ops[:-1])]
    nodes.append(helper.make_node("Neg", [f"u{len(ops) - 1}"], ["c"]))
    return function(name, nodes, opset)


def with_reference() -> onnx.ModelProto:
    """The axis is an attribute of the call, the maximum in a branch of the function."""
    most = helper.make_node("ReduceMax", ["a"], ["m"], name="culprit", keepdims=0)
    most.attribute.append(onnx.AttributeProto(name="axes", ref_attr_name="along", type=onnx.AttributeProto.INTS))
    then = helper.make_graph([helper.make_node("Tanh", ["m"], ["r"])], "then", [], [value("r", FLOAT, [None])])
    other = helper.make_graph([helper.make_node("Neg", ["m"], ["s"])], "else", [], [value("s", FLOAT, [None])])
    then.node.insert(0, most)
    other.node.insert(0, helper.make_node("ReduceMin", ["a"], ["m"], axes=[1], keepdims=0))
    low = helper.make_node("Constant", [], ["low"], value_float=-99.0)
    nodes = [
        low,
        helper.make_node("ReduceSum", ["a"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "low"], ["flag"]),
        helper.make_node("If", ["flag"], ["row"], then_branch=then, else_branch=other),
        helper.make_node("Unsqueeze", ["row", "one"], ["column"]),
        helper.make_node("Sub", ["a", "column"], ["c"]),
    ]
    nodes.insert(0, helper.make_node("Constant", [], ["one"], value_ints=[1]))
    return calling(function("Centre", nodes, 17, "along"), along=[1])


FUNCTIONS = {
    "long": lambda: calling(long_function("Long")),
    "of another opset": lambda: calling(long_function("Long", 13)),
    "that calls one": lambda: calling(
        long_function("Long"),
        function(
            "Outer", [helper.make_node("Long", ["a"], ["b"], domain="local"), helper.make_node("Neg", ["b"], ["c"])]
        ),
    ),
    "with a branch and attributes": with_reference,
}


@pytest.mark.parametrize("make", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_node_of_a_function_is_found(monkeypatch: pytest.MonkeyPatch, make: Callable[[], onnx.ModelProto]) -> None:
    plant(monkeypatch, wrong_maximum)
    found = reduced(make())
    assert ops(found) == ["ReduceMax"]
    assert found.nodes[0].endswith("culprit (ReduceMax)")
    assert not found.model.functions
