"""Code for single sizes beside the general code: one program, one set of weights, the choice made at each run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from onnx import helper

import argosy
from argosy.artifact.plan import (
    BufferKind,
    BufferRecord,
    CallStep,
    PlanRecord,
    PointerArgument,
    PrepareRecord,
    ScalarArgument,
    StraightBlock,
)
from argosy.artifact.program import LiteralRef
from argosy.errors import UsageError
from argosy.ir import Builder, Program
from argosy.ops.matmul import Dot
from argosy.runtime.executor import Executor
from argosy.runtime.shared_weights import missing_steps, recipes
from tests.cli import models

SIZES = (1, 8)


def feed(rows: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(rows).standard_normal((rows, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.classifier(tmp_path_factory.mktemp("specialised") / "model.onnx")


@pytest.fixture(scope="module")
def artifact(path: Path) -> argosy.Artifact:
    compiled = argosy.compile(path, targets=["cpu"], dims={"N": SIZES})
    return argosy.Artifact.open(compiled.to_bytes())


def dims_of(artifact: argosy.Artifact) -> list[dict[str, int]]:
    return sorted((dict(variant.dims) for variant in artifact.variants), key=lambda dims: sorted(dims.items()))


def test_the_program_and_its_weights_stay_as_they_are(path: Path, artifact: argosy.Artifact) -> None:
    general = argosy.compile(path, targets=["cpu"])
    assert artifact.model_hash == general.model_hash
    assert artifact.manifest.weights == argosy.Artifact.open(general.to_bytes()).manifest.weights
    assert dims_of(artifact) == [{}, {"N": 1}, {"N": 8}]


def test_a_specialised_plan_has_nothing_left_to_work_out(artifact: argosy.Artifact) -> None:
    for variant in artifact.variants:
        plan = artifact.plan(variant.key)
        assert bool(plan.shapes) == (not variant.dims)
        assert bool(plan.symbols) == (not variant.dims)


@pytest.mark.parametrize("rows", [8, 3, 1, 2])
def test_every_size_runs_and_the_exact_code_goes_first(artifact: argosy.Artifact, rows: int) -> None:
    session = argosy.Session(artifact, threads=1)
    x = feed(rows)
    np.testing.assert_allclose(session.run({"x": x})["y"], models.classify(x), rtol=1e-5, atol=1e-7)
    loaded = [variant.dims.get("N", 0) for variant in artifact.variants if variant.key in session._loaded]
    assert sorted(loaded) == ([0, rows] if rows in SIZES else [0])


def test_the_choice_is_told(artifact: argosy.Artifact) -> None:
    session = argosy.Session(artifact)
    assert ", N=" not in session.variant
    lines = session.why.splitlines()
    assert [line[0] for line in lines] == ["→", "→", "→", " "]
    assert {line.rpartition("; ")[2] for line in lines[:2]} == {"for runs with N = 1", "for runs with N = 8"}
    assert lines[2].startswith(f"→ {session.variant}: optimal")
    assert lines[3].startswith("  ref: ")


def two_inputs(dims: tuple[str | int, ...], other: tuple[str | int, ...]) -> onnx.ModelProto:
    """c = a + b, without the dims being checked."""
    graph = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["c"])],
        "g",
        [helper.make_tensor_value_info("a", 1, dims), helper.make_tensor_value_info("b", 1, other)],
        [helper.make_tensor_value_info("c", 1, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_several_dims_give_every_combination() -> None:
    model = two_inputs(("N", "M"), ("N", "M"))
    artifact = argosy.compile(model, targets=["cpu"], dims={"N": "1,2", "M": "3,4,3"})
    assert len(artifact.variants) == 5
    assert {tuple(sorted(variant.dims.items())) for variant in artifact.variants} == {
        (), *((("M", m), ("N", n)) for n in (1, 2) for m in (3, 4)),
    }  # fmt: skip
    session = argosy.Session(artifact)
    for shape in ((1, 3), (2, 4), (2, 5), (7, 3)):
        a = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        np.testing.assert_array_equal(session.run({"a": a, "b": a})["c"], a + a)
    assert len(session._loaded) == 3


def test_a_size_may_be_bound_while_another_is_specialised() -> None:
    artifact = argosy.compile(two_inputs(("N", "M"), ("N", "M")), targets=["cpu"], dims={"N": 2, "M": (3, 4)})
    assert dims_of(artifact) == [{}, {"M": 3}, {"M": 4}]
    assert str(artifact.manifest.inputs[0].type) == "float32[2, M]"


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ({"K": (1, 2)}, "no dim called 'K'"),
        ({"N": tuple(range(1, 10)), "M": tuple(range(1, 10))}, "more than 64 combinations"),
    ],
)
def test_a_wish_that_makes_no_sense_is_refused(dims: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        argosy.compile(two_inputs(("N", "M"), ("N", "M")), targets=["cpu"], dims=dims)


def test_artifacts_of_other_sizes_merge(path: Path, tmp_path: Path) -> None:
    for name, dims in (("first", {"N": (1, 2)}), ("second", {"N": (2, 3)})):
        argosy.compile(path, targets=["cpu"], dims=dims).save(tmp_path / f"{name}.argosy")
    parts = [argosy.Artifact.open(tmp_path / f"{name}.argosy") for name in ("first", "second")]
    merged = parts[0].merge(parts[1], path=tmp_path / "merged.argosy")
    assert dims_of(merged) == [{}, {"N": 1}, {"N": 2}, {"N": 3}]


def held(session: argosy.Session) -> dict[int, dict[str, int]]:
    """Addresses of the prepared buffers by type, for each variant that a session has loaded, by its size."""
    found: dict[int, dict[str, int]] = {}
    for variant in session._artifact.variants:
        loaded = session._loaded.get(variant.key)
        if isinstance(loaded, Executor):
            buffers = session._artifact.plan(variant.key).buffers
            found[variant.dims.get("M", 0)] = {
                f"{buffer.type} {number}": loaded._holdings.resident[number].address
                for number, buffer in enumerate(buffers)
                if buffer.kind == "prepared"
            }
    return found


def test_variants_share_what_they_prepare_alike() -> None:
    """Products of many rows pack their weights; a product whose weight depends on the size prepares its own."""
    rng = np.random.default_rng(3)
    weights = [rng.standard_normal((64, 64)).astype(np.float32) for _ in range(3)]
    build = Builder()
    value = x = build.tensor_parameter("x", "float32", ["M", 64])
    for weight in weights:
        value = build.pointwise("tanh", build.add(Dot(None), value, build.constant(weight)))
    program = Program(build.module({"y": build.pointwise("add", value, x)}))
    artifact = argosy.Artifact.open(argosy.compile(program, targets=["cpu"], dims={"M": (32, 48)}).to_bytes())
    session = argosy.Session(artifact, threads=1)
    for rows in (32, 48, 7, 32):
        given = rng.standard_normal((rows, 64)).astype(np.float32)
        expected = given.astype(np.float64)
        for weight in weights:
            expected = np.tanh(expected @ weight)
        np.testing.assert_allclose(session.run({"x": given})["y"], expected + given, 1e-4, 1e-5)
    found = held(session)
    assert found.keys() == {0, 32, 48}
    assert len(found[0]) == len(weights)
    assert len({address for variant in found.values() for address in variant.values()}) == len(weights)


def test_other_weights_other_kernels_and_other_levels_are_not_shared() -> None:
    def plan(
        entry: str = "pack_1", digest: str = "a" * 64, kind: BufferKind = "prepared", number: int = 7
    ) -> PlanRecord:
        pointers = (PointerArgument(0, 0), PointerArgument(8, 1), ScalarArgument(16, "int64", number))
        step = CallStep(0, entry, 1, 24, pointers, (0,), (1,))
        weight = BufferRecord("weight", "float32[4]", literal=LiteralRef(digest, "float32", (4,)))
        prepare = PrepareRecord("weights", (1,), (StraightBlock((step,)),))
        return PlanRecord((), (), (weight, BufferRecord(kind, "float32[16]")), (), prepare=(prepare,))

    (variant, *_) = argosy.compile(two_inputs((4,), (4,)), targets=["x86-64-v3"]).variants
    found = recipes(plan(), variant)
    assert list(found) == [1]
    small = msgspec.structs.replace(variant, key="other", words="other", dims={"N": 1})
    assert recipes(plan(), small) == found
    assert recipes(plan(kind="planned"), variant) == {}
    for other in (plan("pack_2"), plan(digest="b" * 64), plan(number=8)):
        assert recipes(other, variant)[1] != found[1]
    assert recipes(plan(), msgspec.structs.replace(variant, arch="other"))[1] != found[1]


def test_only_what_is_missing_is_made() -> None:
    def step(reads: tuple[int, ...], *writes: int) -> CallStep:
        return CallStep(0, "kernel_1", 1, 0, (), reads, writes)

    steps = (step((0,), 1), step((1,), 2), step((1, 2), 3), step((0,), 4))
    blocks = (StraightBlock(steps),)
    assert missing_steps(blocks, [1, 2, 3, 4], []) == blocks
    assert missing_steps(blocks, [3], [1, 2, 4]) == (StraightBlock((steps[2],)),)
    assert missing_steps(blocks, [3, 4], [2]) == (StraightBlock((steps[0], steps[2], steps[3])),)
    assert missing_steps(blocks, [], [1, 2, 3, 4]) == ()
