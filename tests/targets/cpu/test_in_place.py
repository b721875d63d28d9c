"""Results are written where a dead operand lies, there alone where that changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import argosy
from argosy.ir import Builder, Program, Value
from argosy.ir.dtype import dtype
from argosy.ops.scan import Cumulative
from argosy.ops.slicing import Pad, Slice
from argosy.ops.view import Transpose
from tests.targets.cpu.against_ref import check
from tests.targets.cpu.loops import needs_compiler

pytestmark = needs_compiler

SIZE = 24
Chain = Callable[[Builder, Value], Value]


def _own(build: Builder, value: Value) -> Value:
    """A value that has memory of its own and joins no kernel behind it."""
    return build.add(Cumulative("sum"), value, build.constant(np.array(1, np.int64)))


def _cast(to: str) -> Chain:
    return lambda build, value: build.convert(value, dtype(to))


CHAINS: dict[str, tuple[Chain, str, int]] = {
    "one": (lambda build, value: build.pointwise(lambda x: x * 2.0, value), "float32", 1),
    "twice, the same element": (lambda build, value: build.pointwise(lambda x, y: x * y, value, value), "float32", 1),
    "another type as wide": (_cast("int32"), "float32", 1),
    "a wider type": (_cast("float64"), "float32", 0),
    "a narrower type": (_cast("float16"), "float32", 0),
    "more elements": (
        lambda build, value: build.add(Pad("constant", (0, 0, 3, 0)), value), "float32", 0
    ),
    "fewer elements": (
        lambda build, value: build.pointwise(lambda x: x * 2.0, build.add(Slice((0,), (5,), (0,), (1,)), value)),
        "float32",
        0,
    ),
    "another order": (
        lambda build, value: build.pointwise(lambda x: x * 2.0, build.add(Transpose((1, 0)), value)), "float32", 0
    ),
    "its own order and another": (
        lambda build, value: build.pointwise(lambda x, y: x + y, value, build.add(Transpose((1, 0)), value)),
        "float32",
        0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("used_later", [False, True], ids=["last", "used later"])
@pytest.mark.parametrize("symbolic", [False, True], ids=["bound", "symbolic"])
def test_chains(name: str, used_later: bool, symbolic: bool) -> None:
    chain, kind, shared = CHAINS[name]
    build = Builder()
    dims = ["n", "n"] if symbolic else [SIZE, SIZE]
    value = _own(build, build.tensor_parameter("x", kind, dims))
    results = {"y": _own(build, chain(build, value))}
    if used_later:
        results["z"] = build.add(Cumulative("sum", reverse=True), value, build.constant(np.array(0, np.int64)))
    module = build.module(results)
    x = np.random.default_rng(0).standard_normal((SIZE, SIZE)).astype(kind)
    check(module, [([x], {})])
    artifact = argosy.compile(Program(module), targets=("cpu",), strict=True)
    views = sum(buffer.kind == "view" for buffer in artifact.plan(artifact.variants[0].key).buffers)
    assert views == (0 if used_later else shared)
