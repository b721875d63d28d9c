"""Faults that a test plants are found: the first wrong node, and the part of the compiler that makes it wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import argosy
from argosy.artifact import lifetimes as lifetimes_module
from argosy.debugging import Bisection, bisect
from argosy.errors import InternalError, UsageError
from argosy.ir import Builder, Program, TensorType
from argosy.ir.dtype import BOOL, FLOAT32, INT64
from argosy.ir.module import Module, Value
from argosy.ops.control import If, Loop
from argosy.ops.matmul import Dot
from argosy.passes import simplify_algebra
from argosy.passes.manager import PassContext
from argosy.rewrite.rule import RuleSet
from argosy.runtime import body
from argosy.targets.cpu.solutions.dot import TiledDot
from argosy.targets.cpu.target import CpuTarget
from argosy.verification import Tolerance

LAYERS = 40
SIZE = 24
GENERATOR = np.random.default_rng(1)
WEIGHTS = [(GENERATOR.standard_normal((SIZE, SIZE)) / 5).astype(np.float32) for _ in range(LAYERS)]


def chain(marked: int, change: Callable[[Builder, Value], Value]) -> Program:
    """Layers in a row, each beside a branch that joins three layers on; layer `marked` is followed by a change."""
    build = Builder()
    value = skip = build.tensor_parameter("x", FLOAT32, ("N", SIZE))
    for number, weight in enumerate(WEIGHTS):
        value = build.add(Dot(), value, build.constant(weight), source=f"dot{number}")
        value = build.pointwise("tanh", value, source=f"tanh{number}")
        if number == marked:
            value = change(build, value)
        if number % 3 == 2:
            value = skip = build.pointwise("add", value, skip, source=f"join{number}")
    return Program(build.module({"y": value}))


def times_one(build: Builder, value: Value) -> Value:
    return build.pointwise("mul", value, build.constant(np.ones((), np.float32)), source="one")


def widened(build: Builder, value: Value) -> Value:
    wide = build.constant(np.ones((SIZE, 2 * SIZE), np.float32))
    narrow = build.constant(np.full((2 * SIZE, SIZE), 0.01, np.float32))
    return build.add(Dot(), build.add(Dot(), value, wide, source="wide"), narrow, source="narrow")


def plant(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    """Let a rule of the algebra negate what it should keep."""

    def wrong(**captures: Any) -> Value:
        found: Value = captures["build"].pointwise("neg", captures["x"])
        return found

    rules = simplify_algebra._RULES.rules
    parameters = next(each.parameters for each in rules if each.name == rule)
    planted = tuple(
        dataclasses.replace(each, build=wrong, parameters=tuple({"build", *parameters})) if each.name == rule else each
        for each in rules
    )
    monkeypatch.setattr(simplify_algebra, "_RULES", RuleSet(planted))


def found(program: Program, inputs: dict[str, Any]) -> Bisection:
    return bisect(program, argosy.compile(program, targets=("cpu",)), inputs, device="cpu")


def rows(count: int = 3) -> dict[str, Any]:
    return {"x": GENERATOR.standard_normal((count, SIZE)).astype(np.float32)}


def test_there_is_nothing_to_find_in_right_code() -> None:
    answer = found(chain(7, times_one), rows())
    assert answer.agrees
    assert "nothing to look for" in str(answer)


@pytest.mark.parametrize("marked", [0, 7, 38, 39])
def test_a_wrong_rule_is_found_wherever_it_fires(marked: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program = chain(marked, times_one)
    plant(monkeypatch, "multiply_by_one")
    answer = found(program, rows())
    assert answer.nodes == ("one",)
    assert answer.blame is not None
    assert answer.blame.part == "rule:multiply_by_one"
    assert answer.cured
    assert answer.compiles <= 6, "passes are tried without compiling"


def test_a_wrong_solution_is_found_in_few_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    plant_idle(monkeypatch)
    program = chain(20, widened)
    answer = found(program, rows())
    assert answer.blame is not None
    assert (answer.nodes, answer.blame.part) == (("wide",), "solution:tiled dot")
    assert answer.cured
    assert answer.compiles <= 7 + 3 * 7, "halving, and what is left out in turn"


def test_a_part_that_ends_with_an_error_is_no_right_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the whole a product gives wrong numbers, with less around it no code can be made for it."""
    plant_idle(monkeypatch, refuses=lambda nodes: len(nodes) < LAYERS and "wide" in nodes)
    answer = found(chain(20, widened), rows())
    assert answer.nodes == ("wide",)
    assert answer.blame is not None
    assert answer.blame.part == "code:dot"
    assert "refused here" in answer.blame.why
    assert "refused here" in answer.error


def test_a_fault_behind_a_part_that_ends_with_an_error_is_found_too(monkeypatch: pytest.MonkeyPatch) -> None:
    plant_idle(monkeypatch, refuses=lambda nodes: "tanh3" in nodes and "wide" not in nodes)
    answer = found(chain(20, widened), rows())
    assert answer.following is not None, str(answer)
    assert (answer.nodes, answer.following.nodes) == (("tanh3",), ("wide",))
    assert answer.blame is not None
    assert answer.following.blame is not None
    assert (answer.blame.kind, answer.following.blame.part) == ("code", "solution:tiled dot")
    assert "refused here" in answer.error
    assert not answer.following.error
    assert answer.following.cured


def test_a_pass_that_fails_on_a_part_is_to_blame(monkeypatch: pytest.MonkeyPatch) -> None:
    right = simplify_algebra.SimplifyAlgebra.run

    def run(self: Any, module: Module, context: PassContext) -> Module:
        nodes = {step.source for step in module.instructions}
        if "tanh3" in nodes and "one" not in nodes:
            raise ZeroDivisionError("one is missing")
        return right(self, module, context)

    plant(monkeypatch, "multiply_by_one")
    monkeypatch.setattr(simplify_algebra.SimplifyAlgebra, "run", run)
    answer = found(chain(30, times_one), rows())
    assert answer.nodes == ("tanh3",)
    assert answer.blame is not None
    assert answer.blame.part == "pass:simplify_algebra"
    assert "one is missing" in answer.error


def plant_idle(monkeypatch: pytest.MonkeyPatch, refuses: Callable[[set[str]], bool] = lambda _: False) -> None:
    """Let the wide product compute nothing, and no code be made for programs whose nodes are refused."""
    right, right_module = TiledDot.lower, CpuTarget.lower

    def lower_module(self: Any, module: Module, *more: Any) -> Any:
        if refuses({step.source for step in module.walk() if step.source}):
            raise InternalError("refused here")
        return right_module(self, module, *more)

    def lower(self: Any, problem: Any, config: Any, steps: Any) -> None:
        wide = problem.anchor_instruction.result().shape[-1] == 2 * SIZE
        right(self, problem, config, _Idle(steps) if wide else steps)

    monkeypatch.setattr(CpuTarget, "lower", lower_module)
    monkeypatch.setattr(TiledDot, "lower", lower)


class _Idle:
    """Steps whose kernel has nothing to do: its result is whatever lies there."""

    def __init__(self, steps: Any) -> None:
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._steps, name)

    def call(self, kernel: Any, reads: Any, writes: Any) -> None:
        self._steps.call(dataclasses.replace(kernel, chunks=0), reads, writes)


def test_buffers_that_share_memory_wrongly_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = lifetimes_module.lifetimes

    def forgetful(buffers: Any, *arguments: Any, **options: Any) -> Any:
        lives = right(buffers, *arguments, **options)
        return {
            root: life if buffers[root].arena else lifetimes_module.Lifetime(life.start, life.start)
            for root, life in lives.items()
        }

    monkeypatch.setattr(body, "lifetimes", forgetful)
    answer = found(chain(0, times_one), rows())
    assert answer.blame is not None
    assert answer.blame.part == "stage:memory"
    assert answer.cured


def test_a_fault_inside_a_branch_is_found_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def branch(factor: float) -> Any:
        build = Builder("branch")
        value = build.parameter("captured", TensorType(FLOAT32, (4,)))
        value = build.pointwise("tanh", value, source="inner_tanh")
        value = build.pointwise("mul", value, build.constant(np.float32(factor)), source="inner_one")
        return build.module({"out": build.pointwise("exp", value, source="inner_exp")})

    build = Builder()
    value = build.parameter("x", TensorType(FLOAT32, (4,)))
    condition = build.parameter("c", TensorType(BOOL, ()))
    value = build.pointwise("exp", value, source="before")
    value = build.add(If(branch(1.0), branch(2.0)), condition, value, value, source="choice")
    program = Program(build.module({"y": build.pointwise("tanh", value, source="after")}))
    plant(monkeypatch, "multiply_by_one")
    answer = found(program, {"x": np.arange(4, dtype=np.float32), "c": np.array(True)})
    assert answer.nodes == ("inner_one",)
    assert answer.blame is not None
    assert answer.blame.part == "rule:multiply_by_one"


def test_a_fault_inside_a_loop_is_found_there(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = Builder("body")
    inner.parameter("i", TensorType(INT64, ()))
    again = inner.parameter("again", TensorType(BOOL, ()))
    state = inner.parameter("state", TensorType(FLOAT32, (4,)))
    state = inner.pointwise("tanh", state, source="inner_tanh")
    state = inner.pointwise("mul", state, inner.constant(np.float32(1.0)), source="inner_one")
    build = Builder()
    value = build.parameter("x", TensorType(FLOAT32, (4,)))
    count = build.parameter("n", TensorType(INT64, ()))
    loop = Loop(inner.module([("again", again), ("state", state)]), 1)
    value = build.add(loop, count, None, value, source="loop")
    program = Program(build.module({"y": value}))
    plant(monkeypatch, "multiply_by_one")
    answer = found(program, {"x": np.arange(1, 5, dtype=np.float32), "n": np.array(3)})
    assert answer.nodes == ("inner_one",)


@pytest.mark.parametrize("wrong", [False, True])
def test_a_rule_that_is_stricter_than_rounding_is_told(monkeypatch: pytest.MonkeyPatch, wrong: bool) -> None:
    if wrong:
        plant(monkeypatch, "multiply_by_one")
    program, inputs = chain(7, times_one), rows()
    artifact = argosy.compile(program, targets=("cpu",))
    answer = bisect(program, artifact, inputs, device="cpu", tolerance=Tolerance(atol=0.0))
    if wrong:
        assert not answer.rounding, "a negated value is no rounding"
        assert answer.following is not None
        answer = answer.following
    assert answer.rounding
    assert "the rule is stricter" in str(answer)


def cancelling() -> Program:
    """A product, and a sum and difference with a large number that lose most of its digits."""
    build = Builder()
    value = build.parameter("x", TensorType(FLOAT32, (SIZE,)))
    for number in range(4):
        value = build.pointwise("tanh", value, source=f"tanh{number}")
    value = build.pointwise("add", value, build.constant(np.float32(1e6)), source="lost")
    value = build.pointwise("sub", value, build.constant(np.float32(1e6)), source="back")
    return Program(build.module({"y": build.pointwise("exp", value, source="last")}))


def test_against_float64_a_model_may_be_to_blame_itself() -> None:
    program, inputs = cancelling(), {"x": np.linspace(-2, 2, SIZE, dtype=np.float32)}
    artifact = argosy.compile(program, targets=("cpu",))
    assert bisect(program, artifact, inputs, device="cpu").agrees, "ref loses as much"
    answer = bisect(program, artifact, inputs, device="cpu", against="ref64")
    assert answer.nodes == ("lost", "back")
    assert answer.blame is not None
    assert (answer.blame.part, answer.blame.without) == ("model:rounding", ())
    assert 1 / 64 < answer.differences[0].largest <= 1 / 32, "half a step of float32 at a million"


def test_only_ref_and_ref64_tell_what_lies_between() -> None:
    program = chain(0, times_one)
    with pytest.raises(UsageError, match="ref or ref64"):
        bisect(program, argosy.compile(program, targets=("cpu",)), rows(), device="cpu", against="onnxruntime")


def test_against_float64_faults_are_found_as_against_ref(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, "multiply_by_one")
    program = chain(7, times_one)
    artifact = argosy.compile(program, targets=("cpu",))
    answer = bisect(program, artifact, rows(), device="cpu", against="ref64")
    assert answer.nodes == ("one",)
    assert answer.blame is not None
    assert answer.blame.part == "rule:multiply_by_one"
    assert answer.cured
