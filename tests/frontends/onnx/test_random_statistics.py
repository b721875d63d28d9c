"""The random ops of ONNX, in all their types, against the distributions that the standard states."""

from __future__ import annotations

import math
from typing import Any, Final

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import argosy
from tests.frontends.onnx.one_node import NEWEST, run
from tests.goodness import ALARM, chi_square, independent, kolmogorov_smirnov, mean_and_variance, normal_cdf

SIZE: Final = 60_000
FLOATS: Final = {
    "float16": (TensorProto.FLOAT16, np.dtype(np.float16)),
    "float": (TensorProto.FLOAT, np.dtype(np.float32)),
    "double": (TensorProto.DOUBLE, np.dtype(np.float64)),
    "bfloat16": (TensorProto.BFLOAT16, np.dtype(ml_dtypes.bfloat16)),
}
NUMBERS: Final = [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16]
"""Element types of Bernoulli's output: floats, integers, bool."""


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("like", [False, True])
def test_random_normal(name: str, like: bool) -> None:
    number, kind = FLOATS[name]
    options: dict[str, Any] = {"mean": -1.0, "scale": 2.0, "dtype": number, "seed": 3.0}
    given: Any = np.zeros((SIZE,), np.float32)
    x = run("RandomNormalLike", given, **options) if like else run("RandomNormal", shape=[SIZE], **options)
    assert x.dtype == kind
    assert mean_and_variance(x, -1.0, 4.0, 48.0) > ALARM
    if kind.itemsize >= 4:
        assert kolmogorov_smirnov(x, lambda value: normal_cdf((value + 1) / 2)) > ALARM


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("like", [False, True])
def test_random_uniform(name: str, like: bool) -> None:
    number, kind = FLOATS[name]
    options: dict[str, Any] = {"low": 2.0, "high": 6.0, "dtype": number, "seed": 3.0}
    given: Any = np.zeros((SIZE,), np.float32)
    x = run("RandomUniformLike", given, **options) if like else run("RandomUniform", shape=[SIZE], **options)
    assert x.dtype == kind
    assert mean_and_variance(x, 4.0, 16 / 12, 256 / 80) > ALARM
    if kind.itemsize >= 4:
        assert kolmogorov_smirnov(x, lambda value: min(max((value - 2) / 4, 0.0), 1.0)) > ALARM


def share_score(hits: int, share: float, size: int) -> float:
    """How likely a number of hits as odd as this one is."""
    return math.erfc(abs(hits - size * share) / math.sqrt(2 * size * share * (1 - share)))


@pytest.mark.parametrize("number", NUMBERS)
def test_bernoulli_gives_every_type(number: int) -> None:
    x = run("Bernoulli", np.full(SIZE, 0.375, np.float32), dtype=number, seed=1.0)
    assert x.dtype == (np.dtype(ml_dtypes.bfloat16) if number == 16 else helper.tensor_dtype_to_np_dtype(number))
    wide = x.astype(np.float64)
    assert set(np.unique(wide)) == {0.0, 1.0}
    assert share_score(int(wide.sum()), 0.375, SIZE) > ALARM


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("share", [0.03125, 0.5, 0.875])
def test_bernoulli_takes_every_float(name: str, share: float) -> None:
    x = run("Bernoulli", np.full(SIZE, share, FLOATS[name][1])).astype(np.float64)
    assert share_score(int(x.sum()), share, SIZE) > ALARM


def test_bernoulli_reads_one_probability_for_each_element() -> None:
    shares = np.tile(np.array([0.0, 0.25, 0.75, 1.0], np.float32), (SIZE, 1))
    counts = run("Bernoulli", shares).astype(np.float64).sum(axis=0)
    assert (counts[0], counts[3]) == (0, SIZE)
    assert share_score(int(counts[1]), 0.25, SIZE) > ALARM
    assert share_score(int(counts[2]), 0.75, SIZE) > ALARM


@pytest.mark.parametrize("name", ["float16", "float", "double"])
@pytest.mark.parametrize("number", [TensorProto.INT32, TensorProto.INT64])
def test_multinomial(name: str, number: int) -> None:
    shares = np.array([[0.1, 0.4, 0.05, 0.25, 0.2], [0.2, 0.2, 0.2, 0.2, 0.2]])
    logits = (np.log(shares) + 3).astype(FLOATS[name][1])
    exact = np.exp(logits.astype(np.float64))
    x = run("Multinomial", logits, sample_size=SIZE, dtype=number, seed=2.0)
    assert x.dtype == helper.tensor_dtype_to_np_dtype(number)
    for row, weights in zip(x, exact, strict=True):
        assert chi_square(np.bincount(row, minlength=5), weights / weights.sum()) > ALARM
    pairs = np.bincount(x[1][::2] * 5 + x[1][1::2], minlength=25)
    assert chi_square(pairs, np.full(25, 1 / 25)) > ALARM


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("ratio", [0.25, 0.75])
def test_dropout_in_training(name: str, ratio: float) -> None:
    kind = FLOATS[name][1]
    x = np.full(SIZE, 3.0, kind)
    y, mask = run("Dropout", x, np.array(ratio, np.float32), np.array(True), outputs=["y", "mask"], seed=4)
    assert (y.dtype, mask.dtype) == (kind, np.bool_)
    np.testing.assert_array_equal(y.astype(np.float32)[mask], np.float32(kind.type(3.0 / (1.0 - ratio))))
    assert not y.astype(np.float32)[~mask].any()
    assert share_score(int((~mask).sum()), ratio, SIZE) > ALARM
    assert share_score(int((mask[::2] & mask[1::2]).sum()), (1 - ratio) ** 2, SIZE // 2) > ALARM


def in_a_loop(seed: float | None) -> onnx.ModelProto:
    """A random op in a loop, and the same op beside it."""
    given: dict[str, Any] = {} if seed is None else {"seed": seed}

    def node(name: str) -> onnx.NodeProto:
        return helper.make_node("RandomUniform", [], [name], shape=[30_000], **given)

    scalar = helper.make_tensor_value_info
    body = helper.make_graph(
        [node("drawn"), helper.make_node("Identity", ["go"], ["on"])],
        "body",
        [scalar("i", TensorProto.INT64, ()), scalar("go", TensorProto.BOOL, ())],
        [scalar("on", TensorProto.BOOL, ()), scalar("drawn", TensorProto.FLOAT, None)],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["n", ""], ["each"], body=body), node("beside")],
        "loop",
        [],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("each", "beside")],
        [helper.make_tensor("n", TensorProto.INT64, (), [3])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", NEWEST)])


@pytest.mark.parametrize("seed", [None, 5.0])
def test_iterations_runs_and_nodes_are_independent_and_sessions_repeat(seed: float | None) -> None:
    artifact = argosy.compile(in_a_loop(seed), targets=["ref"])
    session = argosy.Session(artifact)
    first, second = session.run({}), session.run({})
    draws = [*first["each"], first["beside"], *second["each"], second["beside"]]
    for index, one in enumerate(draws):
        for other in draws[:index]:
            assert independent(one, other) > ALARM
    again = argosy.Session(artifact).run({})
    for name, value in first.items():
        np.testing.assert_array_equal(again[name], value)
    if seed is not None:
        other_seed = argosy.Session(argosy.compile(in_a_loop(seed + 1), targets=["ref"])).run({})
        assert (other_seed["each"] != first["each"]).mean() > 0.99
