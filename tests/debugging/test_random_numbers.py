"""Faults in models with random numbers, which are other ones in each run: in the very run that was compared."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import numpy as np
import onnx
import pytest

import argosy
from argosy.debugging import Bisection, bisect
from argosy.targets.cpu.solutions.random import PhiloxNumbers
from tests.debugging.faults.fault import changed_kernels
from tests.debugging.faults.network import Network
from tests.debugging.test_bisection import plant

RUN: Final = 2
"""Of the case that is bisected."""
INPUTS: Final = {"x": np.random.default_rng(3).uniform(0.2, 0.8, (4, 16)).astype(np.float32)}


def model() -> onnx.ModelProto:
    """All kinds of random nodes, and a product with one behind them, which a rule removes."""
    net = Network("random")
    x = net.input("x", [4, 16])
    noise = net.op("RandomNormal", name="normal", shape=[4, 16], seed=1.0, scale=0.5)
    like = net.op("RandomUniformLike", x, name="uniform", low=0.1, high=0.9, seed=2.0)
    bits = net.op("Bernoulli", net.op("Mul", x, like), name="bernoulli", seed=3.0)
    dropped = net.op(
        "Dropout", net.op("Add", x, noise), net.constant(0.4), net.constant(True, "bool"), name="dropout", seed=4
    )
    drawn = net.op("Multinomial", net.op("Log", x), name="multinomial", sample_size=16, seed=5.0, dtype=6)
    found = net.op("Add", net.op("Mul", dropped, bits), net.op("Cast", drawn, to=1))
    found = net.op("Mul", found, net.constant(1.0), name="one")
    net.output(net.op("Tanh", net.op("MatMul", found, net.weight(16, 8))))
    return net.model()


def bisected(number: int = RUN) -> Bisection:
    program = argosy.load_onnx(model())
    artifact = argosy.compile(program, targets=("cpu",))
    return bisect(program, artifact, INPUTS, device="cpu", number=number)


def test_right_code_agrees_in_every_run_and_instruction_by_instruction() -> None:
    report = argosy.verify(model(), targets=("cpu",), device="cpu", inputs=INPUTS, cases=3, per_instruction=True)
    assert report.passed
    assert all(entry.passed and not entry.rounding for entry in report.instructions), str(report)
    assert bisected().agrees


@pytest.mark.parametrize("number", [0, RUN])
def test_a_wrong_rule_behind_random_numbers_is_found(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    plant(monkeypatch, "multiply_by_one")
    answer = bisected(number)
    assert answer.nodes == ("one",)
    assert answer.blame is not None
    assert answer.blame.part == "rule:multiply_by_one"
    assert answer.cured


def test_numbers_that_are_the_same_in_every_run_are_found_in_later_runs() -> None:
    def fixed(kernel: Any) -> Any:
        return dataclasses.replace(kernel, text=kernel.text.replace("(uint64)temporary0[0]", "0ul"))

    with changed_kernels(PhiloxNumbers, fixed)():
        report = argosy.verify(model(), targets=("cpu",), device="cpu", inputs=INPUTS, cases=RUN + 1)
        assert [case.passed for case in report.cases] == [True, False, False]
        assert bisected(0).agrees
        answer = bisected()
    assert answer.nodes[-1] in ("normal", "uniform", "bernoulli", "dropout", "multinomial")
    assert answer.blame is not None
    assert answer.blame.where == answer.nodes[-1]
    assert answer.blame.part == "solution:philox numbers"
