"""Fusing keeps every result, bit by bit, of random programs of views, arithmetic, reductions and gathers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.errors import ModelError
from argosy.ir import Builder, Env, Module, Value
from argosy.ir.interpreter import Interpreter
from argosy.ir.validate import validate
from argosy.ops.fused import Fused
from argosy.ops.index import Gather, NonZero
from argosy.ops.matmul import Dot
from argosy.ops.reduce import Reduce, Softmax
from argosy.ops.requirement import Require
from argosy.ops.signal import Fourier, Frames
from argosy.ops.view import Broadcast, Concat, Pad, Reshape, Split, Transpose
from argosy.passes.fuse_loops import ANCHORS, ELEMENTWISE, TRANSFORMS, FuseLoops
from argosy.passes.manager import PassManager, Phase

Step = Callable[[Builder, list[Value], st.DataObject], Value]
SIDE = 4  # all values are [4, 4] or broadcast to it


def pick(data: st.DataObject, values: list[Value]) -> Value:
    return data.draw(st.sampled_from(values))


def square(value: Value) -> bool:
    return value.shape == (SIDE, SIDE)


STEPS: dict[str, Step] = {
    "add": lambda b, v, d: b.pointwise("add", pick(d, v), pick(d, v)),
    "mul": lambda b, v, d: b.pointwise(lambda x, y: x * y + 0.5, pick(d, v), pick(d, v)),
    "abs": lambda b, v, d: b.pointwise("abs", pick(d, v)),
    "transpose": lambda b, v, d: b.add(Transpose((1, 0)), pick(d, v)),
    "reshape": lambda b, v, d: b.add(
        Reshape((SIDE, SIDE)), b.add(Reshape((2, 8)), pick(d, [value for value in v if square(value)]))
    ),
    "broadcast": lambda b, v, d: b.add(Broadcast((SIDE, SIDE)), pick(d, v)),
    "sum": lambda b, v, d: b.add(Reduce("sum", (d.draw(st.sampled_from([0, 1])),)), pick(d, v)),
    "max": lambda b, v, d: b.add(Reduce("max", (d.draw(st.sampled_from([0, 1])),)), pick(d, v)),
    "dot": lambda b, v, d: b.add(Dot(), *[pick(d, [value for value in v if square(value)]) for _ in range(2)]),
    "gather": lambda b, v, d: b.add(
        Gather(0), pick(d, [value for value in v if square(value)]), b.constant(np.array([3, 0, -1, 1]))
    ),
    "pad": lambda b, v, d: b.add(Pad("constant", (1, 0, -1, 0)), pick(d, [value for value in v if square(value)])),
    "concat": lambda b, v, d: b.add(
        Concat(0), *[b.add(Split(0, 2), pick(d, [value for value in v if square(value)])) for _ in range(2)]
    ),
    "nonzero": lambda b, v, d: b.convert(
        b.add(
            Reduce("max", (0, 1), keep_dims=True),
            b.add(NonZero(), b.pointwise("abs", pick(d, v))),
        ),
        v[0].dtype,
    ),
}


def program(data: st.DataObject) -> Module:
    builder = Builder()
    values = [builder.tensor_parameter(name, "float32", [SIDE, SIDE]) for name in ("x", "y")]
    for name in data.draw(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=12)):
        values.append(STEPS[name](builder, values, data))
    results = data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=3, unique_by=id))
    return builder.module([(f"r{index}", value) for index, value in enumerate([*results, values[-1]])])


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_results_are_kept(data: st.DataObject) -> None:
    module = program(data)
    fused = PassManager((Phase("fuse", (FuseLoops(),)),)).run(module)
    validate(fused)
    rng = np.random.default_rng(7)
    feeds = [rng.standard_normal((SIDE, SIDE)).astype(np.float32) for _ in range(2)]
    for before, after in zip(Interpreter(module).run(feeds, Env()), Interpreter(fused).run(feeds, Env()), strict=True):
        np.testing.assert_array_equal(before, after)
    for instruction in fused.instructions:
        if isinstance(instruction.op, Fused):
            assert sum(inner.op.name in ANCHORS for inner in instruction.op.module.instructions) <= 1
        else:  # what could have been fused was
            assert instruction.op.name in ("nonzero", "concat", "split", "constant")


@pytest.mark.parametrize("rows", [False, True])
def test_an_instruction_without_results_stays(rows: bool) -> None:
    """A requirement has none, and is kept between what is fused."""
    builder = Builder()
    x = builder.tensor_parameter("x", "float32", [SIDE, SIDE])
    good = builder.tensor_parameter("good", "bool", [])
    y = builder.pointwise("exp", x)
    builder.add_all(Require(True, "it is not good"), good)
    module = builder.module([("s", builder.add(Softmax(-1), y))])
    fused = PassManager((Phase("fuse", (FuseLoops(rows=rows),)),)).run(module)
    validate(fused)
    assert [instruction.op.name for instruction in fused.instructions].count("require") == 1
    feed = np.linspace(-1, 1, SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE)
    before, after = (Interpreter(each).run([feed, np.array(True)], Env()) for each in (module, fused))
    np.testing.assert_array_equal(after[0], before[0])
    with pytest.raises(ModelError, match="it is not good"):
        Interpreter(fused).run([feed, np.array(False)], Env())


def test_what_a_transform_reads_joins_it_and_what_takes_its_result_is_apart() -> None:
    builder = Builder()
    x = builder.tensor_parameter("x", "float32", (1, 20, 1))
    frames = builder.add(Frames(8, 4), x)
    spectra = builder.add(Fourier(None, 2), builder.pointwise(lambda value: value * 2.0, frames))
    twice = builder.add(Frames(8, 4), builder.pointwise("abs", x))
    module = builder.module({"y": builder.pointwise("neg", spectra), "z": builder.pointwise("neg", twice)})
    fused = FuseLoops(elementwise=ELEMENTWISE | {"frames"}, transforms=TRANSFORMS)
    found = PassManager((Phase("fuse", (fused,)),)).run(module)
    groups = [i.op.module for i in found.instructions if isinstance(i.op, Fused)]
    names = [[i.op.name for i in group.instructions if i.op.name != "constant"] for group in groups]
    # an element of a signal is in several frames, so what makes it is not computed in each
    assert sorted(names) == [["frames", "pointwise"], ["frames", "pointwise", "dft"], ["pointwise"], ["pointwise"]]
    values = [np.arange(20, dtype=np.float32).reshape(1, 20, 1)]
    for left, right in zip(Interpreter(found).run(values, Env()), Interpreter(module).run(values, Env()), strict=True):
        np.testing.assert_array_equal(left, right)
