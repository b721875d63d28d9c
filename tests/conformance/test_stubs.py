"""No backend passes by doing nothing, or nearly the right thing: every kind of stub fails every case it is given."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt
from onnx.reference import ReferenceEvaluator

from tests.conformance import baseline
from tests.conformance.__main__ import main
from tests.conformance.cases import Case, DataSet, find_case
from tests.conformance.judge import judge, shorten
from tests.conformance.pool import run_cases
from tests.conformance.runners import Run

Outputs = dict[str, Any]

# One float output; two outputs of different types; bools; integers; a sequence; a file with two graph inputs.
CASES = [
    "node/test_add", "node/test_top_k", "node/test_isnan", "node/test_argmax_default_axis_random",
    "node/test_split_to_sequence_1", "simple/test_single_relu_model", "pytorch-operator/test_operator_conv",
]  # fmt: skip


def case_called(name: str) -> Case:
    case = find_case(name)
    assert case is not None
    return case


@dataclass(frozen=True)
class Honest:
    """The reference evaluator of the onnx package, whose outputs `spoil` may change before they are handed over."""

    spoil: Callable[[Outputs], Any] = dict

    def prepare(self, model: onnx.ModelProto) -> Run:
        evaluator = ReferenceEvaluator(model)
        names = [entry.name for entry in model.graph.output]

        def run(inputs: Mapping[str, Any]) -> Any:
            results: Sequence[Any] = evaluator.run(None, dict(inputs))  # type: ignore[assignment]
            return self.spoil(dict(zip(names, results, strict=True)))

        return run


def leaves(change: Callable[[Any], Any]) -> Callable[[Outputs], Outputs]:
    """A spoiler that changes every array, those in sequences too."""

    def of(value: Any) -> Any:
        return [of(item) for item in value] if isinstance(value, list) else change(np.asarray(value))

    return lambda outputs: {name: of(value) for name, value in outputs.items()}


def not_finite(array: Any) -> Any:
    """NaN where the type has one; else another value."""
    spoilt = np.array(array, order="C")  # so that reshape is a view
    spoilt.reshape(-1)[:1] = np.nan if spoilt.dtype.kind == "f" else ~spoilt.reshape(-1)[:1]
    return spoilt


SPOILERS: dict[str, Callable[[Outputs], Any]] = {
    "nothing": lambda _outputs: {},
    "none": lambda _outputs: None,
    "a list": lambda outputs: list(outputs.values()),
    "missing": lambda outputs: dict(list(outputs.items())[1:]),
    "extra": lambda outputs: {**outputs, "more": np.zeros(1)},
    "renamed": lambda outputs: {f"{name}_": value for name, value in outputs.items()},
    "absent": dict.fromkeys,
    "empty": leaves(lambda array: array.reshape(-1)[:0]),
    "constant": leaves(
        lambda array: np.full_like(array, array.reshape(-1)[0] + 7 if array.dtype.kind != "b" else True)
    ),
    "wrong type": leaves(lambda array: array.astype(np.float64 if array.dtype != np.float64 else np.float32)),
    "wrong shape": leaves(lambda array: array[None]),
    "not finite": leaves(not_finite),
    "lists for arrays": leaves(lambda array: array.tolist()),
}


@pytest.mark.parametrize("name", CASES)
def test_right_answers_pass(name: str) -> None:
    assert judge(case_called(name), Honest()).reason == ""


@pytest.mark.parametrize("spoiler", SPOILERS)
@pytest.mark.parametrize("name", CASES)
def test_spoilt_answers_fail(name: str, spoiler: str) -> None:
    outcome = judge(case_called(name), Honest(SPOILERS[spoiler]))
    assert not outcome.passed
    assert "Error" not in outcome.reason, "the comparison itself must see it"


def test_swapped_outputs_fail() -> None:
    swapped = Honest(lambda outputs: dict(zip(outputs, reversed(outputs.values()), strict=True)))
    assert not judge(case_called("node/test_top_k"), swapped).passed
    reordered = Honest(lambda outputs: dict(reversed(outputs.items())))
    assert "order" in judge(case_called("node/test_top_k"), reordered).reason


@dataclass(frozen=True)
class Raises:
    """Raises in one of the two steps."""

    error: BaseException
    early: bool

    def prepare(self, model: onnx.ModelProto) -> Run:
        if self.early:
            raise self.error

        def run(inputs: Mapping[str, Any]) -> Any:
            raise self.error

        return run


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize(
    "error",
    [
        BackendIsNotSupposedToImplementIt("not me"),
        NotImplementedError(),
        SystemExit(0),
        pytest.skip.Exception("skipped"),
        pytest.xfail.Exception("expected"),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_exception_excuses(error: BaseException, early: bool) -> None:
    reason = judge(case_called("node/test_add"), Raises(error, early)).reason
    assert reason.startswith(type(error).__name__)


def test_inputs_cannot_be_changed() -> None:
    def prepare(model: onnx.ModelProto) -> Run:
        def run(inputs: Mapping[str, Any]) -> Any:
            next(iter(inputs.values()))[...] = 0

        return run

    runner = Honest()
    object.__setattr__(runner, "prepare", prepare)
    assert "read-only" in judge(case_called("node/test_add"), runner).reason


def test_a_case_without_expectations_fails() -> None:
    case = case_called("node/test_add")
    model, _ = case.read()
    for sets in ((), (DataSet({}, {}),)):
        empty = Case("node", "empty", 0.0, 0.0, lambda sets=sets: (model, sets))  # type: ignore[misc]
        assert "expects nothing" in judge(empty, Honest()).reason


@dataclass(frozen=True)
class Misbehaves:
    """Hangs in one case, ends the process in another, and is right in the rest."""

    def prepare(self, model: onnx.ModelProto) -> Run:
        op = model.graph.node[0].op_type
        if op == "Add":
            time.sleep(3600)
        if op == "IsNaN":
            import os  # noqa: PLC0415

            os._exit(0)
        return Honest().prepare(model)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_worker_that_hangs_or_dies_costs_one_case() -> None:
    names = ["node/test_add", "node/test_isnan", "node/test_sub", "node/test_mul", "node/test_div", "node/test_exp"]
    cases = [case_called(name) for name in names]
    outcomes = {
        outcome.id: outcome.reason for outcome in run_cases(cases, partial(judge, runner=Misbehaves()), limit=1.0)
    }
    assert set(outcomes) == set(names)
    assert outcomes.pop("node/test_add") == "took longer than 1 s"
    assert outcomes.pop("node/test_isnan") == "the process died"
    assert set(outcomes.values()) == {""}


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_the_command_fails_below_its_bar(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--only", "^node/test_(add|sub)$", "--workers", "1"]
    assert main([*arguments, "--at-least", "2"]) == 0
    assert main([*arguments, "--at-least", "3"]) == 1
    assert "ref: 2 of 2 cases pass" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_the_command_fails_when_a_case_gets_worse(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = "node/test_bernoulli_seed"  # its expected output comes from numpy's generator: nobody can pass it
    monkeypatch.setattr(baseline, "read", lambda _target: (failing,))
    assert main(["--only", f"^{failing}$", "--workers", "1"]) == 1
    assert f"passed before: {failing}" in capsys.readouterr().out


def test_reasons_are_shortened() -> None:
    assert shorten("a\n  b") == "a b"
    assert len(shorten("x" * 1000)) == 240
    assert shorten("UnsupportedError: model:\n - n: ai.onnx::Foo, opset 3\n - m: ai.onnx::Foo, opset 3") == (
        "unsupported: ai.onnx::Foo"
    )
