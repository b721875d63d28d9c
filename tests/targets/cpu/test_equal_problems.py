"""Equal layers are lowered once and repeated; layers that only look equal are not, and every result is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import argosy
from argosy.ir import Builder, Module, Program, Value
from argosy.ir.signature import module_signature
from argosy.ops.control import Scan
from argosy.ops.matmul import Dot
from argosy.ops.reduce import Softmax
from argosy.targets.cpu.script import Script
from argosy.targets.cpu.solution import Problem, Solution, Steps
from tests.targets.cpu.loops import needs_compiler

SIZE = 48
RNG = np.random.default_rng(5)


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def layer(build: Builder, x: Value, weight: Value, bias: Value) -> Value:
    product = build.add(Dot(None), x, weight)
    return build.add(Softmax(1), build.pointwise(lambda p, b: (p + b).tanh(), product, bias))


def softmax(values: Any) -> Any:
    powers = np.exp(values - values.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that gets the op of a problem whenever a solution writes its steps."""
    seen: list[str] = []
    write = Script.write

    def noted(self: Script, solution: Solution, problem: Problem, steps: Steps) -> Any:
        seen.append(problem.anchor_instruction.op.name)
        return write(self, solution, problem, steps)

    monkeypatch.setattr(Script, "write", noted)
    return seen


@needs_compiler
def test_layers_with_other_weights_are_lowered_once(lowered: list[str]) -> None:
    weights, biases = [floats(SIZE, SIZE) for _ in range(4)], [floats(SIZE) for _ in range(4)]
    build = Builder()
    value = build.tensor_parameter("x", "float32", [SIZE, SIZE])
    for weight, bias in zip(weights, biases, strict=True):
        value = layer(build, value, build.constant(weight), build.constant(bias))
    artifact = argosy.compile(Program(build.module({"y": value})), targets=("cpu",), strict=True)
    assert sorted(lowered) == ["dot", "softmax"]
    x = floats(SIZE, SIZE)
    expected = x.astype(np.float64)
    for weight, bias in zip(weights, biases, strict=True):
        expected = softmax(np.tanh(expected @ weight + bias))
    found = argosy.Session(artifact, device="cpu").run({"x": x})["y"]
    np.testing.assert_allclose(found, expected, 1e-4, 1e-5)


@needs_compiler
def test_a_layer_whose_weight_is_an_input_or_whose_operands_are_one_is_not_a_repetition(lowered: list[str]) -> None:
    held, bias, x, given = floats(SIZE, SIZE), floats(SIZE), floats(SIZE, SIZE), floats(SIZE, SIZE)
    build = Builder()
    left = build.tensor_parameter("x", "float32", [SIZE, SIZE])
    right = build.tensor_parameter("w", "float32", [SIZE, SIZE])
    constants = build.constant(held), build.constant(bias)
    results = [
        layer(build, left, constants[0], constants[1]),
        layer(build, left, right, constants[1]),
        layer(build, right, left, constants[1]),
        layer(build, left, left, constants[1]),
    ]
    module = build.module([(f"y{place}", value) for place, value in enumerate(results)])
    artifact = argosy.compile(Program(module), targets=("cpu",), strict=True)
    assert 2 <= lowered.count("dot") <= 3
    found = argosy.Session(artifact, device="cpu").run({"x": x, "w": given})
    pairs = [(x, held), (x, given), (given, x), (x, x)]
    for place, (first, second) in enumerate(pairs):
        expected = softmax(np.tanh(first.astype(np.float64) @ second + bias))
        np.testing.assert_allclose(found[f"y{place}"], expected, 1e-4, 1e-5, err_msg=f"result {place}")


def scaled(
    name: str = "x", size: int = 3, factor: float = 2.0, *, names: bool = False, kind: str = "float32"
) -> Module:
    build = Builder("scaled")
    x = build.tensor_parameter(name, kind, [size])
    origin: dict[str, Any] = {"names": ("other",), "source": "node 7"} if names else {}
    return build.module({name: build.pointwise(lambda v: v * factor, x, **origin)})


def test_signatures_see_meaning_alone() -> None:
    assert module_signature(scaled()) == module_signature(scaled("other", names=True))
    different = [scaled(size=4), scaled(factor=3.0), scaled(factor=2), scaled(factor=-0.0), scaled(factor=0.0)]
    different.append(scaled(kind="float64"))
    signatures = [module_signature(module) for module in (scaled(), *different)]
    assert len(set(signatures)) == len(signatures)


def test_signatures_see_which_operand_is_which() -> None:
    def difference(*, turned: bool) -> Module:
        build = Builder("difference")
        x, y = (build.tensor_parameter(name, "float32", [3]) for name in "xy")
        return build.module({"d": build.pointwise("sub", *((y, x) if turned else (x, y)))})

    assert module_signature(difference(turned=False)) != module_signature(difference(turned=True))


def test_signatures_tell_bodies_apart_by_identity() -> None:
    def scan() -> Module:
        body = Builder("body")
        element = body.tensor_parameter("e", "float32", [])
        build = Builder("scan")
        op = Scan(body.module({"r": element}), 0, (0,), (False,), (0,), (False,))
        return build.module({"y": build.add(op, build.tensor_parameter("x", "float32", [4]))})

    assert module_signature(scan()) != module_signature(scan())
