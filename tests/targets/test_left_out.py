"""Parts of the compiler that are left out when asked: the code is another, the numbers are the same."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

import argosy
from argosy.artifact.plan import CallStep, PlanRecord, steps_in
from argosy.compiler import compile_variants, resolve_targets
from argosy.errors import UsageError
from argosy.ir import Builder, Program, TensorType
from argosy.ir.dtype import FLOAT32
from argosy.ops.convolution import Conv
from argosy.options import STAGES, CompileOptions
from argosy.runtime.planned_memory import PlannedMemory
from argosy.targets.base import Lowered

SHAPE = (1, 8, 9, 9)
GENERATOR = np.random.default_rng(3)
FILTER = (GENERATOR.standard_normal((8, 8, 3, 3)) / 8).astype(np.float32)
GIVEN = GENERATOR.standard_normal(SHAPE).astype(np.float32)


def program() -> Program:
    """Convolutions in a row, with an x * 1 that a rule removes, weights that are negated at load, and a join."""
    build = Builder()
    value = build.parameter("x", TensorType(FLOAT32, SHAPE))
    weight = build.pointwise("neg", build.constant(FILTER))
    one = build.constant(np.ones((), np.float32))
    for number in range(4):
        value = build.add(Conv((1, 1), (1, 1, 1, 1), (1, 1)), value, weight, source=f"conv{number}")
        value = build.pointwise("mul", build.pointwise("tanh", value), one)
    return Program(build.module({"y": value}))


def expected() -> np.ndarray:
    """By torch's definition of a convolution: sums of products of shifted images."""
    value = GIVEN.astype(np.float64)
    for _ in range(4):
        padded = np.pad(value, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = [padded[0, :, i : i + 9, j : j + 9] for i in range(3) for j in range(3)]
        stacked = np.stack(windows, axis=1).reshape(72, 81)
        value = np.tanh((-FILTER.astype(np.float64)).reshape(8, 72) @ stacked).reshape(SHAPE)
    return value


def lowered(*without: str) -> Lowered:
    (made,) = compile_variants(program(), [(resolve_targets(["cpu"])[0], {})], CompileOptions(without=without))
    return made


def ran(*without: str) -> np.ndarray:
    artifact = argosy.Artifact.open(argosy.compile(program(), targets=("cpu",), without=without).to_bytes())
    found = argosy.Session(artifact, device="cpu").run({"x": GIVEN})["y"]
    assert isinstance(found, np.ndarray)
    return found


@pytest.mark.parametrize("stage", STAGES)
def test_no_stage_is_needed_for_the_numbers(stage: str) -> None:
    assert np.abs(ran(f"stage:{stage}") - expected()).max() < 1e-5


def test_a_solution_that_is_left_out_gives_way_to_the_next() -> None:
    taken: list[str] = []
    for _ in range(3):
        found = lowered(*(f"solution:{name}" for name in taken))
        names = {choice.solution for choice in found.choices if "conv1" in choice.nodes}
        assert len(names) == 1, "the convolution is done in one way"
        assert not names & set(taken)
        assert np.abs(ran(*(f"solution:{name}" for name in taken)) - expected()).max() < 1e-5
        taken += names
    assert any(why.startswith(f"{taken[0]}: it is left out") for choice in found.choices for why in choice.declined)


def test_a_choice_names_its_nodes_and_kernels() -> None:
    found = lowered()
    (choice,) = [choice for choice in found.choices if "conv2" in choice.nodes]
    plan = found.variant.plan
    blocks = [block for body in (plan.body, *(module.body for module in plan.prepare)) for block in body]
    called = {step.entry for step in steps_in(blocks) if isinstance(step, CallStep)}
    assert choice.kernels
    assert set(choice.kernels) <= called


def test_memory_is_not_shared_where_that_is_left_out() -> None:
    def arena(plan: PlanRecord) -> int:
        return PlannedMemory(plan, "").placement({}).size

    apart, shared = lowered("stage:memory").variant.plan, lowered().variant.plan
    buffers = sum(buffer.kind == "planned" for buffer in apart.buffers)
    assert buffers >= 3
    assert arena(apart) >= buffers * GIVEN.nbytes > arena(shared)


def test_nothing_is_done_at_load_where_that_is_left_out() -> None:
    folded = "pass:fold_constants"
    assert any(choice.at_load for choice in lowered(folded).choices)
    assert not any(choice.at_load for choice in lowered(folded, "stage:load").choices)
    assert np.abs(ran(folded, "stage:load") - expected()).max() < 1e-5


@pytest.mark.parametrize("part", ["rule:multiply_by_one", "pass:simplify_algebra"])
def test_a_rule_or_pass_that_is_left_out_does_nothing(part: str) -> None:
    def multiplications(found: Lowered) -> int:
        instructions = [
            inner for choice in found.choices for m in choice.instruction.op.modules() for inner in m.walk()
        ]
        return sum(getattr(getattr(inner.op, "formula", None), "primitive", "") == "mul" for inner in instructions)

    assert multiplications(lowered()) == 0
    assert multiplications(lowered(part)) == 4


def test_another_code_is_another_variant() -> None:
    records = [lowered(*without).variant.record for without in ((), ("stage:load",), ("stage:memory",))]
    assert len({record.key for record in records}) == 3
    again = [CompileOptions.of_numeric(record.numeric).without for record in records]
    assert again == [(), ("stage:load",), ("stage:memory",)]
    assert all(msgspec.json.encode(record) for record in records)


@pytest.mark.parametrize(
    ("without", "told"),
    [
        (["fuse_loops"], "which is no part"),
        (["pass:fuse_loop"], "did you mean 'fuse_loops'"),
        (["rule:multiply_by_two"], "did you mean 'multiply_by_one'"),
        (["solution:direct"], "there is no solution 'direct'"),
        (["stage:memoir"], "did you mean 'memory'"),
    ],
)
def test_a_part_that_there_is_not_is_refused(without: Sequence[str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        argosy.compile(program(), targets=("cpu",), without=without)
