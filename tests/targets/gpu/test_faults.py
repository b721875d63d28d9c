"""What kernels refuse on a device: the run ends with an error that names the node, and the next one is as if new."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.errors import UsageError
from argosy.ir import Builder, Program, TensorType
from argosy.ir.dtype import BOOL, DTYPES, FLOAT32, INT64
from argosy.ops.index import Gather
from argosy.ops.requirement import Require
from argosy.options import CompileOptions
from argosy.runtime.gpu.faults import first_fault
from tests.targets.cpu.test_faults import CASES, Build, X, ints

interpreted_run = pytest.importorskip("tests.targets.gpu.interpreted").interpreted_run

STRICT = CompileOptions(strict=True)
REFUSED = (
    "gather", "gather below", "gather_elements", "gather_nd", "slice by 0", "slice along no axis",
    "slice along an axis twice", "pad along no axis", "pad along an axis twice", "pad away more than there is",
    "reduce along no axis", "reduce along no axis, which goes", "squeeze no axis", "squeeze an axis of 3",
    "unsqueeze no axis", "unsqueeze an axis twice", "reshape", "reshape to fewer", "reshape to two unknown sizes",
    "reshape to negative sizes", "reshape to an axis that there is not", "split", "reverse_sequence",
    "reverse_sequence below", "range by 0",
    "compress", "topk",
)  # fmt: skip


def run_of(build: Build, arguments: list[Any]) -> Any:
    builder = Builder()
    parameters = [
        builder.parameter(f"x{index}", TensorType(DTYPES[str(value.dtype)], value.shape))
        for index, value in enumerate(arguments)
    ]
    return interpreted_run(Program(builder.module({"y": build(builder, *parameters)})), options=STRICT)


@pytest.mark.parametrize("case", REFUSED)
def test_a_fault_names_the_node(case: str) -> None:
    build, arguments = CASES[case]
    run = run_of(build, arguments)
    with pytest.raises(UsageError, match="node") as caught:
        run({f"x{index}": value for index, value in enumerate(arguments)})
    shape = list(np.shape(arguments[-1]))
    assert f"{arguments[-1].dtype}{shape}" in caught.value.hint, "it does not tell what the node read"


def test_a_fault_tells_the_index_and_ends_with_its_run() -> None:
    run = run_of(lambda b, x, i: b.add(Gather(0), x, i, source="node"), [X, ints(0, 0)])
    with pytest.raises(UsageError, match="the index -4 is out of range"):
        run({"x0": X, "x1": ints(0, -4)})
    np.testing.assert_array_equal(run({"x0": X, "x1": ints(2, -3)})["y"], X[[2, 0]])


def test_the_first_of_two_faults_counts() -> None:
    builder = Builder()
    x = builder.parameter("x0", TensorType(FLOAT32, (3, 4)))
    parts = [builder.parameter(f"x{place}", TensorType(INT64, (2,))) for place in (1, 2)]
    picked = [builder.add(Gather(0), x, part, source=f"node {name}") for part, name in zip(parts, "ab", strict=True)]
    run = interpreted_run(Program(builder.module({"a": picked[0], "b": picked[1]})), options=STRICT)
    with pytest.raises(UsageError, match="node a"):
        run({"x0": X, "x1": ints(0, 3), "x2": ints(0, 7)})
    with pytest.raises(UsageError, match="node b"):
        run({"x0": X, "x1": ints(0, 1), "x2": ints(0, 7)})


@pytest.mark.parametrize("value", [0, 1, -1, 1 << 40, -(1 << 40)])
def test_a_word_holds_a_code_and_a_number_with_its_sign(value: int) -> None:
    word = (3 << 56) | (value & ((1 << 56) - 1))
    assert first_fault([0, word, 1 << 56]) == (1, 3, value)
    assert first_fault([0, 0]) is None


def test_a_requirement_that_does_not_hold_ends_the_run() -> None:
    builder = Builder()
    good, x = builder.parameter("good", TensorType(BOOL, (1,))), builder.parameter("x", TensorType(FLOAT32, (3,)))
    builder.add_all(Require(True, "it is not good"), good, source="node")
    run = interpreted_run(Program(builder.module({"y": builder.pointwise("neg", x)})), options=STRICT)
    values = np.ones(3, np.float32)
    np.testing.assert_array_equal(run({"good": np.array([True]), "x": values})["y"], -values)
    with pytest.raises(UsageError, match="node"):
        run({"good": np.array([False]), "x": values})
