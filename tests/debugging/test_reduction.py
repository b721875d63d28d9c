"""Wrong numbers are reduced to the node that makes them, whatever the model around it is."""

from __future__ import annotations

import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import argosy
from argosy.debugging import Reduced, reduce_model
from argosy.debugging.reduction.nodes import nodes_of
from argosy.errors import UsageError
from argosy.inputs import InputRequest
from argosy.ir.module import Module
from argosy.ir.types import TensorType
from argosy.targets.cpu.target import CpuTarget
from argosy.verification import Tolerance
from tests.debugging.planting import FLOAT, ModelBuilder, array, is_maximum, plant, wrong_maximum, wrong_maximum_of_tanh
from tests.targets.mirror import MirrorTarget

TARGETS = [MirrorTarget(1)]


@pytest.fixture(autouse=True)
def wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, wrong_maximum)


def reduced(model: Any, **arguments: Any) -> Reduced:
    """The reduction, which must have found something that is valid and still fails."""
    found = reduce_model(model, targets=TARGETS, **arguments)
    assert found is not None
    onnx.checker.check_model(found.model, full_check=True)
    assert found.kind == "wrong numbers"
    assert len(list(nodes_of(found.model.graph))) == len(found.nodes)
    assert not argosy.verify(found.model, targets=TARGETS, inputs=found.inputs).passed
    return found


def with_maximum(before: int, after: int, *dims: int | str) -> ModelBuilder:
    """Chains before and after a maximum called `culprit`, two nodes more."""
    build = ModelBuilder(*dims)
    build.chain(before)
    chain = build.last
    build.add("ReduceMax", axes=[1], keepdims=1, name="culprit")
    build.add_over("Sub", [chain, build.last])
    build.chain(after)
    return build


def ops(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def exit_code(folder: Path) -> Any:
    """What the script in a folder of a reduction exits with, here, where the fault is planted."""
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(folder / "reproduce.py"), run_name="__main__")
    return ended.value.code


def test_a_chain_is_reduced_to_its_culprit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = reduced(with_maximum(17, 21, "N", 8).model(), dims={"N": 6})
    assert found.nodes == ("culprit (ReduceMax)",)
    assert found.nodes_before == 40
    assert not found.exhausted
    (value,) = found.inputs.values()
    assert np.array_equal(value, [[0, 1]]), "the smallest maximum that is no minimum"
    assert "1 of 40 nodes remains" in str(found)
    assert str(found).splitlines()[-1].startswith(f"there: {found.model.graph.output[0].name}: 1 of 1 elements differ")
    found.save(tmp_path / "small")
    assert exit_code(tmp_path / "small") == 1
    assert "the failure is there" in capsys.readouterr().out


def test_the_script_says_when_the_failure_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reduced(with_maximum(3, 3, 2, 8).model()).save(tmp_path)
    monkeypatch.undo()
    assert exit_code(tmp_path) == 0


@pytest.mark.parametrize("place", [0, 13, 40, 62])
def test_one_node_of_64_takes_a_logarithm_of_checks(place: int) -> None:
    build = ModelBuilder(2, 8)
    build.chain(place)
    maximum = build.add("ReduceMax", axes=[1], keepdims=1)
    build.add("Mul", build.weight("b", array(8, seed=1)))
    build.chain(62 - place)
    found = reduced(build.model(build.last, maximum))
    assert found.nodes_before == 64
    assert len(found.nodes) == 1
    assert found.checks <= 2 + 2 * 6 + 10, "the whole, halves, then shapes and values"


def test_a_fault_of_two_nodes_keeps_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    plant(monkeypatch, wrong_maximum_of_tanh)
    build = ModelBuilder(2, 8)
    build.chain(17)
    build.add("ReduceMax", axes=[0], keepdims=1)  # of a sum: right
    build.chain(3)
    build.add("ReduceMax", axes=[1], keepdims=1, name="culprit")
    build.add("Mul", "b")
    build.chain(15)
    assert ops(reduced(build.model()).model) == ["Tanh", "ReduceMax"]


def test_nodes_between_two_that_matter_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()

    def both(module: Module) -> Module:
        """Wrong where a maximum is of something that a tanh is in."""
        behind: set[Any] = set()
        for instruction in module.instructions:
            operands = {operand.instruction for operand in instruction.operands if operand is not None}
            if operands & behind or "tanh" in str(instruction.op.attributes()):
                behind.add(instruction)
                if is_maximum(instruction):
                    return wrong_maximum(module)
        return module

    plant(monkeypatch, both)
    build = ModelBuilder(2, 8)
    build.chain(9)
    tanh = build.last
    build.add("Add", "b")
    build.add_over("Sub", [build.add("MatMul", "w"), tanh])
    build.add("ReduceMax", axes=[1], keepdims=1)
    build.add("Mul", "b")
    build.chain(9)
    assert ops(reduced(build.model()).model) == ["Tanh", "ReduceMax"]


def test_a_diamond_with_several_outputs() -> None:
    build = ModelBuilder("N", 8)
    build.chain(3)
    top = build.last
    sides = []
    for side in range(3):
        build.last = top
        build.chain(3)
        if side == 1:
            build.add("ReduceMax", axes=[0], keepdims=1, name="culprit")
        build.chain(2)
        sides.append(build.last)
    bottom = build.add_over("Sum", sides)
    found = reduced(build.model(bottom, top, sides[1]), dims={"N": 3})
    assert found.nodes == ("culprit (ReduceMax)",)
    assert len(found.model.graph.output) == 1


def branch(op: str, *operands: str, **attributes: Any) -> onnx.GraphProto:
    """A body of two nodes, whose names are the same in every body."""
    nodes = [
        helper.make_node("Abs", [operands[0]], ["inner"]),
        helper.make_node(op, ["inner", *operands[1:]], ["result"], **attributes),
    ]
    return helper.make_graph(nodes, op, [], [helper.make_tensor_value_info("result", FLOAT, None)])


@pytest.mark.parametrize("taken", [True, False])
def test_an_if_gives_way_to_the_branch_that_is_taken(*, taken: bool) -> None:
    build = ModelBuilder(3, 8)
    build.chain(5)
    flag = build.weight("flag", np.array(taken))
    bodies = [branch("ReduceMax", build.last, keepdims=0), branch("Mul", build.last, build.last)]
    then, other = bodies if taken else reversed(bodies)
    build.add_over("If", [flag], then_branch=then, else_branch=other)
    build.add("Mul", "b")
    build.chain(5)
    assert ops(reduced(build.model()).model) == ["ReduceMax"]


def test_a_loop_gives_way_to_its_first_iteration() -> None:
    boolean = helper.make_tensor_value_info("going", TensorProto.BOOL, [])
    body = helper.make_graph(
        [
            helper.make_node("ReduceMax", ["state"], ["most"], keepdims=1),
            helper.make_node("Sub", ["state", "most"], ["next"]),
            helper.make_node("Identity", ["going"], ["on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            boolean,
            helper.make_tensor_value_info("state", FLOAT, [None, None]),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", FLOAT, [None, None]),
        ],
    )
    build = ModelBuilder(2, 8)
    build.chain(6)
    build.add_over("Loop", [build.weight("trips", np.array(3)), "", build.last], body=body)
    build.chain(6)
    assert ops(reduced(build.model()).model) == ["ReduceMax"]


def test_symbolic_shapes_stay_where_the_failure_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()

    def only_symbolic(module: Module) -> Module:
        kinds = [parameter.types[0] for parameter in module.parameters]
        dims = [dim for kind in kinds if isinstance(kind, TensorType) for dim in kind.dims or ()]
        return module if all(isinstance(dim, int) for dim in dims) else wrong_maximum(module)

    plant(monkeypatch, only_symbolic)
    found = reduced(with_maximum(7, 7, "N", 8).model(), inputs={"x": array(5, 8)})
    assert found.nodes == ("culprit (ReduceMax)",)
    assert "N" in {dim.dim_param for entry in found.model.graph.input for dim in entry.type.tensor_type.shape.dim}


def test_shapes_that_the_model_computes_go_along_as_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()

    def only_of_reshape(module: Module) -> Module:
        return wrong_maximum(module) if any(i.op.name == "reshape" for i in module.walk()) else module

    plant(monkeypatch, only_of_reshape)
    build = ModelBuilder("N", 4, 6)
    batch = build.add_over("Gather", [build.add("Shape"), build.weight("zero", np.array([0]))])
    shape = build.add_over("Concat", [batch, build.weight("rest", np.array([24]))], axis=0)
    build.last = "x"
    build.add("Tanh")
    build.add("Reshape", shape)
    build.add("ReduceMax", axes=[1], keepdims=1)
    build.add("Exp")
    found = reduced(build.model(), dims={"N": 5})
    assert ops(found.model) == ["Reshape", "ReduceMax"]
    assert [tensor.name for tensor in found.model.graph.initializer] == [shape]


def test_integers_that_are_indices() -> None:
    build = ModelBuilder(30, 16)
    build.inputs.append(helper.make_tensor_value_info("index", TensorProto.INT64, [7]))
    build.add("Tanh")
    build.add("Gather", "index", axis=0)
    build.add("ReduceMax", axes=[1], keepdims=1, name="culprit")
    build.add("Exp")
    index = np.array([29, 3, 4, 5, 0, 1, 2])
    assert len(reduced(build.model(), inputs={"x": array(30, 16), "index": index}).nodes) == 1


def test_sequences_between_nodes() -> None:
    build = ModelBuilder(6, 8)
    build.chain(4)
    sequence = build.add("SplitToSequence", axis=0, keepdims=1)
    build.add("SequenceAt", build.weight("at", np.array(1)))
    build.add("ReduceMax", axes=[1], keepdims=1, name="culprit")
    build.add("Mul", "b")
    build.add_over("SequenceInsert", [sequence, build.last])
    build.add("ConcatFromSequence", axis=0)
    assert reduced(build.model()).nodes == ("culprit (ReduceMax)",)


def test_a_sequence_can_be_an_input_of_what_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()

    def only_of_sequence(module: Module) -> Module:
        return wrong_maximum(module) if any(i.op.name == "sequence_at" for i in module.walk()) else module

    plant(monkeypatch, only_of_sequence)
    build = ModelBuilder(6, 8)
    build.chain(4)
    build.add("SplitToSequence", axis=0, keepdims=1)
    build.add("SequenceAt", build.weight("at", np.array(1)))
    build.add("ReduceMax", axes=[1], keepdims=1)
    build.add("Mul", "b")
    build.chain(4)
    found = reduced(build.model())
    assert ops(found.model) == ["SequenceAt", "ReduceMax"]
    (value,) = found.inputs.values()
    assert isinstance(value, list)
    found.save(tmp_path)
    assert exit_code(tmp_path) == 1


@pytest.mark.parametrize(("size", "beside"), [(16, True), (4_300_000, False)])
def test_weights_outside_of_the_message(tmp_path: Path, *, size: int, beside: bool) -> None:
    """In a file beside the model; or in the model's own, of which the large ones of over 16 MiB are left there."""
    build = ModelBuilder(1, 8)
    build.chain(4)
    build.add("ReduceMax", axes=[1], keepdims=1)
    build.add("Mul", build.weight("wide", array(1, size)))
    path = tmp_path / "model.onnx"
    onnx.save(build.model(), path, save_as_external_data=beside, location="weights.bin", size_threshold=16)
    assert len(reduced(path).nodes) == 1


def test_functions_of_the_model_are_looked_into() -> None:
    body = [
        helper.make_node("Tanh", ["a"], ["t"]),
        helper.make_node("ReduceMax", ["t"], ["m"], keepdims=1),
        helper.make_node("Sub", ["t", "m"], ["c"]),
    ]
    build = ModelBuilder(2, 8)
    build.chain(4)
    build.add("Centre", domain="local")
    build.chain(4)
    model = build.model()
    model.functions.append(helper.make_function("local", "Centre", ["a"], ["c"], body, [helper.make_opsetid("", 17)]))
    model.opset_import.append(helper.make_opsetid("local", 1))
    assert ops(reduced(model).model) == ["ReduceMax"]


def test_the_values_between_are_the_true_ones() -> None:
    """What is left is fed with what the nodes before it give, by the onnx package's own evaluator."""
    build = ModelBuilder(2, 8)
    build.chain(8)
    chain = build.last
    build.add("ReduceMax", axes=[1], keepdims=1)
    model = build.model()
    x = array(2, 8, seed=5)
    seen: list[Mapping[str, Any]] = []

    def check(model: onnx.ModelProto, inputs: Mapping[str, Any]) -> bool:
        seen.append(inputs)
        return ops(model)[-1:] == ["ReduceMax"]

    found = reduce_model(model, inputs={"x": x}, check=check)
    assert found is not None
    assert found.kind == "check"
    model.graph.output[0].name = chain
    (expected,) = map(np.asarray, ReferenceEvaluator(model).run(None, {"x": x}))
    given = next(inputs[chain] for inputs in seen if chain in inputs)
    np.testing.assert_allclose(given, expected, rtol=1e-5)


def test_against_onnxruntime() -> None:
    found = reduced(with_maximum(5, 5, 2, 8).model(), against="onnxruntime", inputs=InputRequest(seed=3))
    assert found.nodes == ("culprit (ReduceMax)",)
    assert "against='onnxruntime'" in found.script


def test_constants_are_no_nodes_of_what_is_left() -> None:
    build = ModelBuilder(2, 8)
    value = numpy_helper.from_array(array(8))
    for _ in range(4):
        before = build.last
        build.add_over("Mul", [before, build.add_over("Constant", [], value=value)])
    build.add("ReduceMax", axes=[1], keepdims=1)
    assert ops(reduced(build.model()).model) == ["ReduceMax"]


def test_what_does_not_fail_is_not_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    model = with_maximum(3, 3, 2, 8).model()
    assert reduce_model(model, targets=TARGETS, tolerance=Tolerance(atol=100)) is None
    monkeypatch.undo()
    assert reduce_model(model, targets=TARGETS) is None


def test_the_second_case_may_be_the_one_that_fails() -> None:
    build = ModelBuilder("N", 1)
    build.add("Tanh")
    build.add("ReduceMax", axes=[0], keepdims=1)
    assert reduce_model(build.model(), targets=TARGETS, dims={"N": (1, 5)}) is None, "of one element it is right"
    assert len(reduced(build.model(), dims={"N": (1, 5)}, cases=2).nodes) == 1


def test_the_script_asks_of_dims_that_are_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = reduced(with_maximum(3, 3, "N", 8).model(), dims={"N": "1..9"})
    found.save(tmp_path)
    assert exit_code(tmp_path) == 1
    assert "the failure is there" in capsys.readouterr().out


def test_few_checks_are_told() -> None:
    found = reduced(with_maximum(17, 17, 2, 8).model(), checks=4)
    assert found.exhausted
    assert found.checks == 4
    assert 1 < len(found.nodes) < 36
    assert "no more checks" in str(found)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"against": "outputs.npz"}, "no outputs for parts"),
        ({"checks": 0}, "at least 1"),
        ({"dims": {"M": 3}}, "no dim called"),
        ({"check": ""}, "empty command"),
        ({"check": "'"}, "can't be read"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, Any], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        reduce_model(with_maximum(1, 1, "N", 8).model(), targets=TARGETS, **arguments)


def test_a_program_is_refused() -> None:
    with pytest.raises(UsageError, match="ONNX model is needed"):
        reduce_model(argosy.load_onnx(with_maximum(1, 1, "N", 8).model()))


def test_code_for_the_cpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plant(monkeypatch, wrong_maximum, CpuTarget)
    found = reduce_model(with_maximum(5, 6, 4, 8).model(), targets=["cpu"])
    assert found is not None
    assert found.nodes == ("culprit (ReduceMax)",)
    found.save(tmp_path)
    assert exit_code(tmp_path) == 1
