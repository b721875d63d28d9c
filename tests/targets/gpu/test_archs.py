"""A net of every kind of anchor, compiled strictly for archs of all families; what comes out is what the rows say.

What code objects say of themselves is compared with the plan that starts them: the parameter block byte by byte.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import argosy
from argosy.artifact.artifact import Artifact
from argosy.artifact.plan import (
    Block,
    IfBlock,
    LaunchStep,
    LoopBlock,
    PlanRecord,
    PointerArgument,
    ScratchArgument,
    StraightBlock,
)
from argosy.targets.gpu.arch import ARCHS, GpuArch
from argosy.targets.gpu.lower import SPILLS
from argosy.targets.gpu.remaking import remade_kernels
from argosy.toolchains.gpu_code_object import CodeFacts, facts_of, matrix_instructions
from benchmarks.models import catalog, real
from tests.targets.gpu.test_toolchain import MACH

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="the package triton (extra gpu) is not installed"
)

# No matrix unit, the first with one, datacentre and desktop parts of both vendors, both portable forms.
SAMPLE = ("gfx906", "gfx90a", "gfx950", "gfx1151", "gfx1201", "gfx11-generic", "sm_75", "sm_90", "compute_80")


@functools.cache
def small_net() -> bytes:
    """A convolution of an image, one row of a product with it, and attention with a norm over a sequence."""
    rng = np.random.default_rng(0)
    weights: list[onnx.TensorProto] = []

    def weight(name: str, *shape: int) -> str:
        weights.append(numpy_helper.from_array(rng.standard_normal(shape, np.float32) * 0.1, name))
        return name

    node = helper.make_node
    nodes = [
        node("Conv", ["x", weight("wc", 64, 32, 3, 3), weight("bc", 64)], ["c"], pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"]),
        node("GlobalAveragePool", ["r"], ["p"]),
        node("Flatten", ["p"], ["f"]),
        node("Gemm", ["f", weight("wg", 64, 64), weight("bg", 64)], ["g"]),
        node("Tanh", ["g"], ["y"]),
        node("MatMul", ["s", weight("wq", 64, 64)], ["h"]),
        node("Transpose", ["h"], ["t"], perm=[0, 2, 1]),
        node("MatMul", ["s", "t"], ["scores"]),
        node("Softmax", ["scores"], ["w"], axis=-1),
        node("MatMul", ["w", "h"], ["a"]),
        node("Add", ["a", "s"], ["b"]),
        node("LayerNormalization", ["b", weight("scale", 64), weight("shift", 64)], ["z"], axis=-1),
    ]
    inputs = {"x": (1, 32, 8, 8), "s": (1, 64, 64)}
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "z")],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def launches(blocks: Sequence[Block]) -> Iterator[LaunchStep]:
    for block in blocks:
        match block:
            case StraightBlock():
                yield from (step for step in block.steps if isinstance(step, LaunchStep))
            case IfBlock():
                yield from launches((*block.then, *block.otherwise))
            case LoopBlock():
                yield from launches(block.body)


def all_launches(plan: PlanRecord) -> list[LaunchStep]:
    return list(launches((*(block for record in plan.prepare for block in record.body), *plan.body)))


def check_code(artifact: Artifact, row: GpuArch) -> dict[str, CodeFacts]:
    """Every kernel is for the arch, fits it, and takes the parameters that its launch gives; the facts by entry."""
    (variant,) = artifact.variants
    plan = artifact.plan(variant.key)
    found: dict[str, CodeFacts] = {}
    for step in all_launches(plan):
        code = plan.code[step.code]
        facts = facts_of(code.form, artifact.entry(variant.key, code.path))
        found[step.entry] = facts
        assert facts.entry == step.entry
        check_form(facts, row)
        assert step.block[0] % row.wave_size == 0
        assert step.block[0] <= row.max_threads_per_block
        assert step.shared + (facts.shared or 0) <= row.shared_memory_per_block
        check_parameters(step, facts)
    return found


def check_form(facts: CodeFacts, row: GpuArch) -> None:
    assert facts.wave_size == row.wave_size
    if row.vendor == "amd":
        assert facts.form == "hsaco"
        assert facts.flags is not None
        assert facts.flags & 0xFF == MACH[row.name]
        assert facts.arch == row.name
    elif row.portable:
        assert (facts.form, facts.arch) == ("ptx", row.name.replace("compute_", "sm_"))
        return
    else:
        assert (facts.form, facts.arch) == ("cubin", row.name)
    assert facts.registers is not None
    assert 0 < facts.registers <= row.registers_per_thread


def check_parameters(step: LaunchStep, facts: CodeFacts) -> None:
    """Arguments of the plan lie where the code has its parameters, pointers where it has pointers."""
    assert facts.parameter_bytes == step.parameter_bytes
    places = {parameter.offset: parameter for parameter in facts.parameters}
    assert len(places) == len(facts.parameters)
    for argument in step.arguments:
        parameter = places[argument.offset]
        pointer = isinstance(argument, (PointerArgument, ScratchArgument)) or getattr(argument, "value", "") == "fault"
        assert parameter.pointer in (None, pointer)
        assert parameter.size == (8 if pointer else {"int32": 4, "int64": 8}[argument.type])  # type: ignore[union-attr]
    # The two last are scratch memory and a profiler's, which a launch may leave empty.
    given = {argument.offset for argument in step.arguments}
    assert {parameter.offset for parameter in facts.parameters[:-2]} <= given


def check_matrix(artifact: Artifact, row: GpuArch, dtype: str) -> None:
    """Kernels of products, convolutions and attention use the row's matrix instructions, and are made again."""
    (variant,) = artifact.variants
    plan = artifact.plan(variant.key)
    made = remade_kernels(artifact.program().main, variant)
    op = row.matrix_op(dtype)
    products = [name for name, kernel in made.items() if "tl.dot(" in kernel.source]
    assert products
    for code in plan.code:
        name = code.path.removeprefix("code/").rpartition(".")[0]
        assert made[name].code == artifact.entry(variant.key, code.path)
        counted = matrix_instructions(made[name].stages["amdgcn" if row.vendor == "amd" else "ptx"])
        assert bool(counted) == (op is not None and name in products), name
        # Tiles of few rows take the smaller instructions of the generation before.
        assert op is None or all(each.startswith((op.mnemonic, "mma.sync.")) for each in counted), counted


def compiled(name: str, precision: str = "fp16") -> Artifact:
    return argosy.compile(small_net(), targets=(name,), precision=precision, strict=True)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_small_net_is_code_for_the_arch(name: str) -> None:
    artifact, row = compiled(name), ARCHS[name]
    for facts in check_code(artifact, row).values():
        assert facts.spilled <= SPILLS[0], facts.entry


@pytest.mark.parametrize("name", ["gfx950", "gfx1201", "sm_90"])
def test_products_of_a_net_use_matrix_instructions_and_are_made_again_to_the_same_bytes(name: str) -> None:
    check_matrix(compiled(name), ARCHS[name], "fp16")


def test_two_folders_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = []
    for folder in (tmp_path / "one", tmp_path / "two" / "deeper"):
        folder.mkdir(parents=True)
        monkeypatch.chdir(folder)
        monkeypatch.setenv("ARGOSY_CACHE", str(folder / "cache"))
        (folder / "net.onnx").write_bytes(small_net())
        artifact = argosy.compile("net.onnx", targets=("gfx1201", "compute_80"), precision="fp16", strict=True)
        artifact.save("net.argosy")
        files.append((folder / "net.argosy").read_bytes())
    assert files[0] == files[1]
    assert b"deeper" not in files[1]


@pytest.mark.nightly
@pytest.mark.parametrize("precision", ["fp16", "bf16", "fp32"])
@pytest.mark.parametrize("name", ARCHS)
def test_a_small_net_is_code_for_every_arch(name: str, precision: str) -> None:
    artifact = compiled(name, precision)
    check_code(artifact, ARCHS[name])
    check_matrix(artifact, ARCHS[name], precision)


LARGE = {
    "resnet50": ({"batch": 1}, 60),
    "bert_base": ({"batch": 1, "sequence": 128}, 90),
    "mobilenet_v2": ({"batch": 1}, 60),
    "decoder_small": ({}, 80),
}
"""Models by name: the sizes they are compiled for, and how many kernels a run may start."""


def check_model(model: str | bytes | Path, name: str, sizes: dict[str, int], most: int) -> None:
    artifact = argosy.compile(model, targets=(name,), precision="fp16", dims=sizes, strict=True)
    check_code(artifact, ARCHS[name])
    plan = artifact.plan(artifact.variants[0].key)
    run = list(launches(plan.body))
    assert len(run) <= most
    # None only moves its operand: that is part of what computes with it.
    assert not [step.entry for step in run if step.entry.startswith(("reorder", "transpose_", "copy"))]


@pytest.mark.nightly
@pytest.mark.parametrize("model", LARGE)
@pytest.mark.parametrize("name", ARCHS)
def test_large_models_are_code_for_every_arch(model: str, name: str) -> None:
    sizes, most = LARGE[model]
    check_model(catalog.make(model).SerializeToString(), name, dict(sizes), most)


PER_CHANGE = [model for model in real.models() if model.set == "per-change"]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ARCHS)
def test_real_models_are_code_for_every_arch(name: str) -> None:
    """All of one arch in one test, so that kernels that they share are compiled once."""
    failed = {}
    for model in PER_CHANGE:
        try:
            check_code(argosy.compile(model.path(), targets=(name,), precision="fp16", strict=True), ARCHS[name])
        except argosy.errors.ArgosyError as error:
            failed[model.id] = str(error)
    assert not failed
