"""The convolutions that are measured beside ONNX Runtime: each a valid model, and a row with what both took."""

from __future__ import annotations

import numpy as np
import onnx

from benchmarks.cpu.convolutions import PROBLEMS, Problem, line, measure, model_of
from tests.targets.cpu.loops import needs_compiler


def test_every_problem_is_a_valid_model_of_its_own_name() -> None:
    assert len({problem.name for problem in PROBLEMS}) == len(PROBLEMS)
    for problem in PROBLEMS:
        model, feeds = model_of(problem, np.random.default_rng(0))
        onnx.checker.check_model(model, full_check=True)
        assert {value.name for value in model.graph.input} == set(feeds), problem.name


@needs_compiler
def test_a_row_has_both_times_and_how_far_the_results_differ() -> None:
    row = measure(Problem("small", (1, 4, 9, 9), (8, 4, 3, 3)), rounds=1)
    assert row["ratio"] == row["ort"] / row["ours"] > 0
    assert row["difference"] < 1e-5
    assert row["kernels"]
    assert line(row).startswith("small")
