"""Instructions against float64, and what is to be told of them where the model or the passes change their results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import argosy
from argosy.errors import UsageError
from argosy.ir import Builder, Program, TensorType
from argosy.ir.dtype import FLOAT32, UINT8
from argosy.ops.matmul import Dot
from argosy.ops.quantize import Dequantize, Quantize
from argosy.verification import InstructionReport, Report
from tests.debugging.faults.network import Network
from tests.verification.test_instructions import plant

GENERATOR = np.random.default_rng(11)


def verified(given: Any, inputs: dict[str, Any] | None = None, against: str = "ref") -> Report:
    return argosy.verify(
        given, targets=("cpu",), device="cpu", inputs=inputs, against=against, dims=None, per_instruction=True
    )


def entries(report: Report) -> dict[str, InstructionReport]:
    return {entry.node: entry for entry in report.instructions}


def test_errors_against_float64_are_those_of_each_result_alone_and_in_the_run() -> None:
    """1 + x loses half of the digits of x: exact for what it reads, in float64 the sum isn't that of the product."""
    factors = GENERATOR.uniform(0.5, 1.0, (2, 64)).astype(np.float32)
    build = Builder()
    x = build.parameter("x", TensorType(FLOAT32, (64,)))
    product = build.pointwise("mul", x, build.constant(factors[1]), source="product")
    total = build.pointwise("add", product, build.constant(np.float32(4096.0)), source="total")
    rest = build.pointwise("sub", total, build.constant(np.float32(4096.0)), source="rest")
    found = entries(verified(Program(build.module({"y": rest})), {"x": factors[0]}, "ref64"))

    exact = factors[0].astype(np.float64) * factors[1].astype(np.float64)
    single = (factors[0] * factors[1]).astype(np.float64)
    assert found["product"].error == pytest.approx(np.abs(single - exact).max() / exact.max(), rel=1e-6)
    assert found["product"].error == found["product"].accumulated_error
    true_total = (4096 + exact).astype(np.float32)
    assert found["rest"].error == 0.0, "the difference of two near floats is exact (Sterbenz)"
    assert true_total.dtype == np.float32
    in_run = np.float32(factors[0] * factors[1] + np.float32(4096)) - np.float32(4096)
    assert found["rest"].accumulated_error == pytest.approx(np.abs(in_run - exact).max() / exact.max(), rel=1e-6)
    assert found["rest"].accumulated_error > 1e-5


def test_what_an_instruction_reads_is_the_truth_in_its_own_type() -> None:
    """A halving of numbers that float32 can't hold: the error of what it reads isn't its own."""
    build = Builder()
    x = build.parameter("x", TensorType(FLOAT32, (32,)))
    third = build.pointwise("div", x, build.constant(np.float32(3.0)), source="third")
    half = build.pointwise("mul", third, build.constant(np.float32(0.5)), source="half")
    inputs = {"x": np.arange(1, 33, dtype=np.float32)}
    found = entries(verified(Program(build.module({"y": half})), inputs, "ref64"))
    assert 0 < found["third"].error < 2.0**-24
    assert found["half"].error == 0.0
    assert 0 < found["half"].accumulated_error < 2.0**-24
    assert not found["half"].rounding


def test_only_references_that_know_what_lies_between_can_tell_of_it() -> None:
    build = Builder()
    x = build.parameter("x", TensorType(FLOAT32, (2,)))
    with pytest.raises(UsageError, match="ref or ref64"):
        argosy.verify(
            Program(build.module({"y": build.pointwise("exp", x)})), targets=("cpu",), device="cpu",
            against=Fixed(), per_instruction=True,
        )  # fmt: skip


class Fixed:
    """A reference with one answer."""

    name = "fixed"

    def answer(self, inputs: Any, case: int) -> dict[str, Any]:
        del inputs, case
        return {"y": np.ones(2, np.float32)}


def test_what_passes_make_of_a_node_is_not_taken_for_it() -> None:
    """The factors behind a convolution go into its weights: what the kernel gives is scaled already."""
    net = Network("scaled")
    x = net.input("x", [1, 8, 9, 9])
    made = net.op("Conv", x, net.weight(8, 8, 3, 3), net.weight(8), name="conv")
    net.output(net.op("Mul", made, net.weight(1, 8, 1, 1, low=2.0, high=3.0), name="scale"))
    report = verified(net.model())
    assert all(entry.passed for entry in report.instructions), str(report)
    assert {node for node, entry in entries(report).items() if entry.op == "conv"} == {"conv"}


def edges(columns: int, depth: int) -> tuple[Program, dict[str, Any]]:
    """Sums that are halves but for less than float32 tells, and the codes that they become: on which side is chance."""
    weights = GENERATOR.uniform(-1, 1, (depth, columns)).astype(np.float32)
    rest = np.round(weights[:-1].sum(axis=0, dtype=np.float64)) + 0.5 - weights[:-1].sum(axis=0, dtype=np.float64)
    weights[-1] = rest
    build = Builder()
    x = build.parameter("x", TensorType(FLOAT32, (1, depth)))
    value = build.add(Dot(), x, build.constant(weights), source="sums")
    value = build.pointwise("sub", value, build.constant(np.round(weights.sum(axis=0))), source="near")
    scale, zero = build.constant(np.float32(1.0)), build.constant(np.uint8(128))
    value = build.add(Quantize(dtype=UINT8), value, scale, zero, source="codes")
    value = build.add(Dequantize(dtype=FLOAT32), value, scale, zero, source="values")
    value = build.pointwise("mul", value, build.constant(np.float32(1.0)), source="one")
    return Program(build.module({"y": value})), {"x": np.ones((1, depth), np.float32)}


def test_codes_that_fall_on_either_side_of_an_edge_are_no_fault() -> None:
    found = entries(verified(*edges(256, 512)))
    assert found["values"].accumulated_error > 0.05, "a step is more than the rule allows, and some differ"
    assert found["values"].inherent
    assert all(entry.passed for entry in found.values())


def test_a_fault_behind_such_codes_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    found = entries(verified(*edges(256, 512)))
    assert [node for node, entry in found.items() if entry.mismatches] == ["one"]
    assert found["values"].passed
