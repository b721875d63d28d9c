"""`argosy inspect --code`: what the kernels of a variant are, and how they came about."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

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
