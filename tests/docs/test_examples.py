"""The examples compute what they say, without onnx."""

from __future__ import annotations

import importlib.util
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import argosy
from argosy.targets.gpu.arch import ARCHS
from tests.targets.gpu.test_toolchain import MACH

ROOT = Path(__file__).resolve().parents[2]


def test_programs_are_built_and_run_without_onnx() -> None:
    code = (
        "import runpy, sys\n"
        "sys.modules['onnx'] = None\n"  # an import of it fails
        f"runpy.run_path({str(ROOT / 'examples/build_a_program.py')!r}, run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "loop: last = [8. 8. 8.]" in done.stdout
    assert "branch: y = [-0. -1. -2. -3.]" in done.stdout


@pytest.mark.parametrize("n", [1, 7])
def test_the_perceptron_computes_what_numpy_does(n: int) -> None:
    example = runpy.run_path(str(ROOT / "examples/build_a_program.py"))
    program = example["perceptron"]()
    weights = [literal.array() for literal in program.literals]
    w1, b1, w2, b2 = weights
    x = np.random.default_rng(1).standard_normal((n, 16), np.float32)
    expected = np.maximum(x @ w1 + b1, 0) @ w2 + b2
    found = argosy.Session(argosy.compile(program, targets=["ref"])).run({"x": x})["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="the package triton (extra gpu) is missing")
@pytest.mark.parametrize("arch", ["gfx906", "gfx942", "gfx1151", "gfx12-generic", "sm_75", "sm_121", "compute_80"])
def test_a_chain_of_pointwise_ops_is_one_kernel_for_the_arch(arch: str) -> None:
    facts = runpy.run_path(str(ROOT / "examples/pointwise_proof.py"))["proof"](arch)
    assert facts.entry.startswith("add_mul_sub")
    if ARCHS[arch].vendor == "amd":
        assert facts.flags & 0xFF == MACH[arch]


@pytest.mark.nightly
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="the package triton (extra gpu) is missing")
def test_the_proof_holds_for_every_arch(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples/pointwise_proof.py"))["main"]([])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(ARCHS)
