"""`argosy inspect --code`: what the kernels of a variant are, and how they came about."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import argosy
from argosy.artifact.artifact import Artifact
from tests.cli.conftest import Call
from tests.targets.gpu.test_archs import small_net

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="the package triton (extra gpu) is not installed"
)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("code") / "net.argosy"
    argosy.compile(small_net(), targets=("gfx1201", "sm_90"), precision="fp16", strict=True).save(path)
    return path


def test_a_table_has_a_line_for_each_kernel(call: Call, compiled: Path) -> None:
    text = call("inspect", compiled, "--code").out
    assert text.count("gfx1201  0x4e") == len(Artifact.open(compiled).plan(key_of(compiled, "gfx1201")).code)
    assert "code of sm_90, fp16" in text


def key_of(path: Path, arch: str) -> str:
    return next(variant.key for variant in Artifact.open(path).variants if variant.arch == arch)


@pytest.mark.parametrize(
    ("arch", "stage", "matrix"), [("gfx1201", "amdgcn", "v_wmma_f32_16x16x16_f16"), ("sm_90", "ptx", "mma")]
)
def test_a_kernel_is_made_again_to_the_same_bytes(
    call: Call, compiled: Path, arch: str, stage: str, matrix: str
) -> None:
    told = json.loads(call("inspect", compiled, "--variant", arch, "--code", "--kernel", "conv3x3", "--json").out)
    (kernel,) = told["code"][key_of(compiled, arch)]
    assert kernel["same"] is True
    assert kernel["entry"] in kernel["source"]
    assert "tl.dot(" in kernel["source"]
    assert {"ttir", "ttgir", "llir", stage} <= set(kernel["stages"])
    assert kernel["assembly"] == kernel["stages"][stage]
    assert all(name.startswith(matrix) or matrix in name for name in kernel["matrix_instructions"])
    assert sum(kernel["matrix_instructions"].values()) > 0
    assert kernel["registers"] > 0
    assert kernel["source_node"].startswith("Conv")
    text = call("inspect", compiled, "--variant", arch, "--code", "--kernel", "conv3x3").out
    for title in ("---- source", "---- ttir", "---- assembly", "same: True"):
        assert title in text


def test_a_name_that_no_kernel_has_is_an_error(call: Call, compiled: Path) -> None:
    answer = call("inspect", compiled, "--variant", "sm_90", "--code", "--kernel", "nothing")
    assert answer.code == 2
    assert "--code lists them" in answer.err


def test_what_a_variant_needs_is_told(call: Call, tmp_path: Path) -> None:
    kinds = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1024, 1024)) for name in "xy"]
    strings = [helper.make_tensor_value_info(name, TensorProto.STRING, (2,)) for name in "st"]
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("StringConcat", ["s", "s"], ["t"])]
    graph = helper.make_graph(nodes, "needs", [kinds[0], strings[0]], [kinds[1], strings[1]])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), tmp_path / "needs.onnx")
    text = call("compile", tmp_path / "needs.onnx", "--gpu-arch", "gfx942", "-o", tmp_path / "needs.argosy").out
    assert "1 host step (string_concat)" in text
    told = json.loads(call("list", tmp_path / "needs.argosy", "--json").out)["variants"][0]["needs"]
    assert told["host_steps"] == {"string_concat": 1}
    # x and y are alive at once: nothing else lies on the device.
    assert told["device_memory"] >= 2 * 4 * 1024 * 1024


@pytest.mark.parametrize(("least", "said"), [(0, "device memory by the sizes of a run"), (64, "at least 524 kB of")])
def test_host_steps_are_named_by_what_they_do_and_memory_is_the_least(
    call: Call, tmp_path: Path, least: int, said: str
) -> None:
    def kind(name: str, dtype: int, *dims: str | int) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, dtype, dims)

    inputs = [kind("x", TensorProto.FLOAT, "N", 1024), kind("c", TensorProto.COMPLEX128, 2, 3)]
    outputs = [kind("y", TensorProto.FLOAT, "N", 1024), kind("d", TensorProto.COMPLEX128, 3, 2)]
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Transpose", ["c"], ["d"])]
    graph = helper.make_graph(nodes, "needs", inputs, outputs)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), tmp_path / "m.onnx")
    words = (
        "compile",
        tmp_path / "m.onnx",
        "--gpu-arch",
        "gfx942",
        "--dim",
        f"N={least}..512",
        "-o",
        tmp_path / "m.argosy",
    )
    text = call(*words).out
    assert f"gfx942, fp32 needs {said}" in text
    assert "1 host step (transpose)" in text
    (variant,) = json.loads(call("list", tmp_path / "m.argosy", "--json").out)["variants"]
    assert variant["needs"] == {"host_steps": {"transpose": 1}, "device_memory": 8192 * least, "by_size": True}


def test_the_memory_of_a_device_is_weights_inputs_and_arena(call: Call, tmp_path: Path) -> None:
    weight = numpy_helper.from_array(np.ones((1024, 512), np.float32), "w")
    kinds = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, (256, 1024)),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, (256, 512)),
    ]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "m", kinds[:1], kinds[1:], [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    assert call("compile", tmp_path / "m.onnx", "--gpu-arch", "gfx942", "-o", tmp_path / "m.argosy").code == 0
    told = json.loads(call("list", tmp_path / "m.argosy", "--json").out)["variants"][0]["needs"]
    least = 4 * (1024 * 512 + 256 * 1024 + 256 * 512)
    # What parts of split sums take comes on top.
    assert least <= told["device_memory"] <= least + (8 << 20)
    assert "arena device" in call("inspect", tmp_path / "m.argosy", "--plan").out
