"""Losses against ONNX Runtime and numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.errors import ModelError
from tests.frontends.onnx.against_onnxruntime import assert_agrees
from tests.frontends.onnx.one_node import program, run

RNG = np.random.default_rng(0)
REDUCTIONS = pytest.mark.parametrize("reduction", ["mean", "sum", "none"])


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


@REDUCTIONS
@pytest.mark.parametrize("shape", [(3, 5), (2, 5, 4), (2, 5, 3, 4)], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignored", [None, 2, -100])
def test_losses(reduction: str, shape: Any, weighted: bool, ignored: int | None) -> None:
    labels = RNG.integers(0, 5, (shape[0], *shape[2:]))
    if ignored is not None:
        labels.reshape(-1)[::3] = ignored
    weight = RNG.random(5).astype(np.float32) if weighted else None
    options: Any = {"reduction": reduction, "opset": 13, "rtol": 1e-4, "atol": 1e-5}
    if ignored is not None:
        options["ignore_index"] = ignored
    assert_agrees("NegativeLogLikelihoodLoss", floats(*shape), labels, weight, **options)
    assert_agrees("SoftmaxCrossEntropyLoss", floats(*shape), labels, weight, outputs=("y", "log_prob"), **options)


@REDUCTIONS
def test_half_precision_rounds_once(reduction: str) -> None:
    x, labels = floats(4, 9).astype(np.float16), RNG.integers(0, 9, 4)
    found = run("SoftmaxCrossEntropyLoss", x, labels, reduction=reduction)
    wanted = run("SoftmaxCrossEntropyLoss", x.astype(np.float32), labels, reduction=reduction)
    np.testing.assert_array_equal(found, wanted.astype(np.float16))


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ([floats(2, 4), np.zeros(1, np.int32)], r"the labels tensor is int32\[1\], expected \[2\]"),
        ([floats(2, 4, 3), np.zeros((2, 4), np.int64)], r"the labels tensor is int64\[2, 4\], expected \[2, 3\]"),
        ([floats(2, 4), np.zeros(2, np.int64), floats(3)], r"the weight is float32\[3\], expected \[4\]"),
        ([floats(2, 4), np.zeros(2, np.int64), np.ones(4)], "the weight has type float64, expected float32"),
        ([floats(2), np.zeros(2, np.int64)], r"expected \[N, C, ...\]"),
    ],
)
def test_inputs_are_checked(inputs: Any, words: str) -> None:
    for op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"):
        with pytest.raises(ModelError, match=words):
            program(op, inputs)
