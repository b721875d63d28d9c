"""A net of every kind of anchor, compiled strictly for archs of all families; what comes out is what the rows say.

What code objects say of themselves is compared with the plan that starts them: the parameter block byte by byte.
`tests/models/test_gpu_archs.py` does this with large models and real ones.
"""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import argosy
from argosy.artifact.artifact import Artifact
from argosy.targets.gpu.arch import ARCHS, GpuArch
from argosy.targets.gpu.lower import SPILLS
from argosy.targets.gpu.remaking import remade_kernels
from argosy.toolchains.gpu_code_object import CodeFacts
from tests.targets.gpu.code_checks import check_code, check_matrix

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


def compiled(name: str, precision: str = "fp16") -> Artifact:
    return argosy.compile(small_net(), targets=(name,), precision=precision, strict=True)


def facts(artifact: Artifact, row: GpuArch) -> dict[str, CodeFacts]:
    (variant,) = artifact.variants
    return check_code(artifact.plan(variant.key), lambda path: artifact.entry(variant.key, path), row)


def check_made_again(artifact: Artifact, row: GpuArch) -> None:
    """Kernels are made again to the same bytes; those of products use the row's matrix instructions."""
    (variant,) = artifact.variants
    made = remade_kernels(artifact.program().main, variant)
    for code in artifact.plan(variant.key).code:
        name = code.path.removeprefix("code/").rpartition(".")[0]
        assert made[name].code == artifact.entry(variant.key, code.path)
    form = "amdgcn" if row.vendor == "amd" else "ptx"
    sources = {name: kernel.source for name, kernel in made.items()}
    assert any("tl.dot(" in source for source in sources.values())
    check_matrix(sources, {name: kernel.stages[form] for name, kernel in made.items()}, row)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_small_net_is_code_for_the_arch(name: str) -> None:
    for found in facts(compiled(name), ARCHS[name]).values():
        assert found.spilled <= SPILLS[0], found.entry


@pytest.mark.parametrize("name", ["gfx950", "gfx1201", "sm_90"])
def test_products_of_a_net_use_matrix_instructions_and_are_made_again_to_the_same_bytes(name: str) -> None:
    check_made_again(compiled(name), ARCHS[name])


@pytest.mark.parametrize("name", ["mi325x", "h200"])
def test_kernels_for_a_product_are_made_again_to_the_same_bytes(name: str) -> None:
    """Whose numbers are those of the arch's usual product, and bandwidth is not."""
    artifact = compiled(name)
    (variant,) = artifact.variants
    made = remade_kernels(artifact.program().main, variant)
    for code in artifact.plan(variant.key).code:
        entry = code.path.removeprefix("code/").rpartition(".")[0]
        assert made[entry].code == artifact.entry(variant.key, code.path)


def test_two_folders_and_numbers_of_processes_give_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []
    for folder, jobs in ((tmp_path / "one", 1), (tmp_path / "two" / "deeper", 4)):
        folder.mkdir(parents=True)
        monkeypatch.chdir(folder)
        monkeypatch.setenv("ARGOSY_CACHE", str(folder / "cache"))
        (folder / "net.onnx").write_bytes(small_net())
        archs = ("gfx1201", "compute_80")
        artifact = argosy.compile("net.onnx", targets=archs, precision="fp16", strict=True, jobs=jobs)
        artifact.save("net.argosy")
        files.append((folder / "net.argosy").read_bytes())
    assert files[0] == files[1]
    assert b"deeper" not in files[1]


@pytest.mark.nightly
@pytest.mark.parametrize("precision", ["fp16", "bf16", "fp32"])
@pytest.mark.parametrize("name", ARCHS)
def test_a_small_net_is_code_for_every_arch(name: str, precision: str) -> None:
    artifact = compiled(name, precision)
    facts(artifact, ARCHS[name])
    check_made_again(artifact, ARCHS[name])
