"""What an op refuses at run time: native code stops, writes nothing outside, and names the node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from argosy.errors import UsageError
from argosy.ir import Builder, TensorType, Value
from argosy.ir.dtype import DTYPES
from argosy.ops.index import Compress, Gather, GatherElements, GatherND, Range, ScatterElements, ScatterND
from argosy.ops.reduce import Reduce
from argosy.ops.scan import Cumulative
from argosy.ops.slicing import Pad
from argosy.ops.sort import TopK
from argosy.ops.view import Reshape, ReverseSequence, Slice, Split, Squeeze, Unsqueeze
from tests.targets.cpu.against_ref import compiled

X = np.arange(12, dtype=np.float32).reshape(3, 4)
Build = Callable[..., Value]


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


CASES: dict[str, tuple[Build, list[Any]]] = {
    "gather": (lambda b, x, i: b.add(Gather(0), x, i, source="node"), [X, ints(0, 3)]),
    "gather below": (lambda b, x, i: b.add(Gather(1), x, i, source="node"), [X, ints(-5)]),
    "gather_elements": (lambda b, x, i: b.add(GatherElements(0), x, i, source="node"), [X, ints(9).reshape(1, 1)]),
    "gather_nd": (lambda b, x, i: b.add(GatherND(), x, i, source="node"), [X, ints(1, 4).reshape(1, 2)]),
    "scatter_elements": (
        lambda b, x, i, u: b.add(ScatterElements(0), x, i, u, source="node"),
        [X, ints(3).reshape(1, 1), np.ones((1, 1), np.float32)],
    ),
    "scatter_nd": (
        lambda b, x, i, u: b.add(ScatterND("add"), x, i, u, source="node"),
        [X, ints(-4).reshape(1, 1), np.ones((1, 4), np.float32)],
    ),
    "slice by 0": (
        lambda b, x, s, e, a, t: b.add(Slice(), x, s, e, a, t, source="node"),
        [X, ints(0), ints(2), ints(0), ints(0)],
    ),
    "slice along no axis": (
        lambda b, x, s, e, a: b.add(Slice(), x, s, e, a, source="node"),
        [X, ints(0), ints(2), ints(2)],
    ),
    "slice along an axis twice": (
        lambda b, x, s, e, a: b.add(Slice(), x, s, e, a, source="node"),
        [X, ints(0, 0), ints(2, 2), ints(1, -1)],
    ),
    "pad along no axis": (
        lambda b, x, p, a: b.add(Pad("constant"), x, p, None, a, source="node"),
        [X, ints(1, 1), ints(-3)],
    ),
    "pad along an axis twice": (
        lambda b, x, p, a: b.add(Pad("constant"), x, p, None, a, source="node"),
        [X, ints(1, 1, 1, 1), ints(0, -2)],
    ),
    "pad away more than there is": (
        lambda b, x, p: b.add(Pad("constant"), x, p, source="node"),
        [X, ints(0, -5, 0, 3)],
    ),
    "reduce along no axis": (lambda b, x, a: b.add(Reduce("sum"), x, a, source="node"), [X, ints(2)]),
    "reduce along no axis, which goes": (
        lambda b, x, a: b.add(Reduce("max", keep_dims=False), x, a, source="node"),
        [X, ints(-3)],
    ),
    "squeeze no axis": (lambda b, x, a: b.add(Squeeze(), x, a, source="node"), [X[None], ints(3)]),
    "squeeze an axis of 3": (lambda b, x, a: b.add(Squeeze(), x, a, source="node"), [X[None], ints(-2)]),
    "unsqueeze no axis": (lambda b, x, a: b.add(Unsqueeze(), x, a, source="node"), [X, ints(3)]),
    "unsqueeze an axis twice": (lambda b, x, a: b.add(Unsqueeze(), x, a, source="node"), [X, ints(0, -4)]),
    "reshape": (lambda b, x, s: b.add(Reshape(), x, s, source="node"), [X, ints(5, -1)]),
    "reshape to fewer": (lambda b, x, s: b.add(Reshape(), x, s, source="node"), [X, ints(2, 3)]),
    "reshape to two unknown sizes": (lambda b, x, s: b.add(Reshape(), x, s, source="node"), [X, ints(-1, -1)]),
    "reshape to negative sizes": (lambda b, x, s: b.add(Reshape(), x, s, source="node"), [X, ints(-3, -4)]),
    "reshape to an axis that there is not": (
        lambda b, x, s: b.add(Reshape(), x, s, source="node"),
        [X[:0], ints(0, 4, 0)],
    ),
    "split": (lambda b, x, s: b.add(Split(1, 2), x, s, source="node"), [X, ints(1, 2)]),
    "topk": (lambda b, x, k: b.add(TopK(1), x, k, source="node"), [X, ints(5)]),
    "compress": (
        lambda b, x, c: b.add(Compress(0), x, c, source="node"),
        [X, np.array([False, True, False, True])],
    ),
    "cumulative": (lambda b, x, a: b.add(Cumulative("sum"), x, a, source="node"), [X, ints(2)]),
    "reverse_sequence": (
        lambda b, x, n: b.add(ReverseSequence(0, 1), x, n, source="node"),
        [X, ints(4, 5, 0)],
    ),
    "reverse_sequence below": (
        lambda b, x, n: b.add(ReverseSequence(0, 1), x, n, source="node"),
        [X, ints(4, -1, 0)],
    ),
    "range by 0": (
        lambda b, *steps: b.add(Range(), *steps, source="node"),
        [np.array(value, np.int64) for value in (0, 5, 0)],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_fault_names_the_node(case: str) -> None:
    build, arguments = CASES[case]
    builder = Builder()
    parameters = [
        builder.parameter(f"x{index}", TensorType(DTYPES[str(value.dtype)], value.shape))
        for index, value in enumerate(arguments)
    ]
    session = compiled(builder.module({"y": build(builder, *parameters)}))
    with pytest.raises(UsageError, match="node") as caught:
        session.run({f"x{index}": value for index, value in enumerate(arguments)})
    shape = list(np.shape(arguments[-1]))
    assert f"{arguments[-1].dtype}{shape}" in caught.value.hint, "it does not tell what the node read"
