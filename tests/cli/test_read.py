"""`read` and `params`: every format, passes, differences, what cannot be asked."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from argosy.artifact.program import PROGRAM
from argosy.compiler import load_onnx
from argosy.ir.hashing import model_hash
from argosy.ir.parser import parse_program
from argosy.ir.printer import print_program
from argosy.ir.program_files import program_files
from tests.cli import models
from tests.cli.conftest import Call


def test_text_is_the_program_as_imported(call: Call, model: Path) -> None:
    assert call("read", model).out.rstrip() == print_program(load_onnx(model)).rstrip()


def test_an_artifact_reads_like_its_model(call: Call, model: Path, artifact: Path) -> None:
    left, right = (call("read", file).out.splitlines() for file in (artifact, model))
    assert sorted(left) == sorted(right), "metadata may be in another order"
    assert left[4:] == right[4:]
    assert call("params", artifact).out == call("params", model).out


def test_text_reads_back(call: Call, tmp_path: Path) -> None:
    picker = models.picker(tmp_path / "picker.onnx")
    text = call("read", picker).out
    file = tmp_path / "program.txt"
    assert call("read", picker, "-o", file).code == 0
    assert file.read_text().rstrip() == text.rstrip()
    assert call("read", file).out == text
    assert print_program(parse_program(text)).rstrip() == text.rstrip()


def test_json_decodes(call: Call, model: Path) -> None:
    answer = call("read", model, "--json")
    record = PROGRAM.from_json(answer.out.strip().encode(), where="test")
    assert record.modules[0].instructions[-1].op == "softmax"
    assert call("read", model, "--format", "json").out == answer.out


def test_graphviz_has_every_value(call: Call, model: Path) -> None:
    drawing = call("read", model, "--format", "graphviz").out
    assert drawing.startswith("digraph")
    assert drawing.count("{") == drawing.count("}")
    assert drawing.count(" -> ") == 5, "x and w to mm, mm to relu, relu to sm, sm out"


@pytest.mark.parametrize("passes", [[], ["-O"]])
def test_a_script_builds_the_same_program(call: Call, model: Path, tmp_path: Path, passes: list[str]) -> None:
    script = tmp_path / "build.py"
    assert call("read", model, "--format", "python", *passes, "-o", script).code == 0
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip() == call("read", model, *passes).out.rstrip()


@pytest.mark.parametrize("passes", [[], ["-O"]])
def test_a_script_builds_bodies_and_data_dependent_dims(call: Call, tmp_path: Path, passes: list[str]) -> None:
    branching = models.branching(tmp_path / "branching.onnx")
    script, text = tmp_path / "build.py", tmp_path / "program.txt"
    assert call("read", branching, "--format", "python", *passes, "-o", script).code == 0
    assert call("read", branching, *passes, "-o", text).code == 0
    built = runpy.run_path(str(script))["program"]
    assert model_hash(built) == model_hash(parse_program(text.read_text()))


def test_onnx_is_refused(call: Call, model: Path) -> None:
    answer = call("read", model, "--format", "onnx")
    assert answer.code == 2
    assert "does not write ONNX" in answer.err


def test_passes_and_their_differences(call: Call, tmp_path: Path) -> None:
    picker = models.picker(tmp_path / "picker.onnx")
    plain = call("read", picker).out
    assert call("read", picker, "--apply-pass", "eliminate_common", "--diff").out.strip() == ""
    everything = call("read", picker, "-O", "--diff", "--why")
    assert everything.code == 0
    assert everything.err
    assert "before" in everything.out or call("read", picker, "-O").out == plain
    assert call("read", picker, "--after", "fold-constants").code == 0
    assert call("read", picker, "--diff").code == 2
    wrong = call("read", picker, "--apply-pass", "fold_shapes", "--after", "fold_constants")
    assert wrong.code == 2
    assert "fold_shapes" in wrong.err


def test_the_passes_of_an_arch(call: Call, model: Path) -> None:
    told = call("read", model, "--arch", "cpu", "--diff")
    assert told.code == 0
    names = re.findall(r"^--- before (\w+) \((\w+), pass (\d+)\)$", told.out, re.MULTILINE)
    assert names[-1][:2] == ("fuse_loops", "fuse")
    assert [int(number) for *_, number in names] == sorted({int(number) for *_, number in names})
    whole, normal = call("read", model, "--arch", "cpu").out, call("read", model, "-O").out
    assert " = fused(" in whole
    assert " = fused(" not in normal
    assert call("read", model, "--arch", "cpu", "--after", "fold-scales").out.count(" = fused(") == 0
    assert "float16[4, 300]" in call("read", model, "--arch", "gfx942", "--fp16").out
    assert "float16" not in call("read", model, "--arch", "gfx942").out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--arch", "cpu", "--after", "fuse_loop"], "did you mean 'fuse_loops'?"),
        (["--arch", "cpu", "--after", "store_short"], "the pass store_short is not among those that run"),
        (["--after", "store_short"], "--arch NAME runs those of an arch"),
        (["--arch", "rdna3"], "--arch means several: "),
        (["--arch", "ref"], "ref runs no passes"),
        (["--arch", "cpu", "-O"], "leave -O out"),
        (["--fp16"], "--fp16 changes the passes of an arch, and none is named"),
        (["--arch", "gfx943"], "did you mean"),
    ],
)
def test_passes_that_cannot_be_asked_for(call: Call, model: Path, words: list[str], told: str) -> None:
    answer = call("read", model, *words)
    assert answer.code == 2
    assert told in answer.err


def test_trim_leaves_the_end_out(call: Call, model: Path) -> None:
    text = call("read", model, "--trim", "1").out
    assert "softmax" not in text
    assert "return r = %r" in text
    assert call("read", model, "--trim", "9").code == 2


def test_unknown_ops_are_read_as_placeholders_when_asked(call: Call, tmp_path: Path) -> None:
    unknown = models.unknown_ops(tmp_path / "unknown.onnx")
    assert call("read", unknown).code == 3
    answer = call("read", unknown, "--skip-unknown")
    assert answer.code == 0
    assert "org.example::Frobnicate" in answer.out


@pytest.mark.parametrize("content", [b"argosy 1\n\xff", b"argosy 1\nmodule main(", b"# told\nargosy 9\n", b"argosy \n"])
def test_broken_text_is_a_model_error(call: Call, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "program.txt"
    file.write_bytes(content)
    assert call("read", file).code == 3


def test_params(call: Call, model: Path) -> None:
    told = json.loads(call("params", model, "--json").out)
    assert told["inputs"] == [{"name": "x", "type": "float32[N, 4]"}]
    assert told["outputs"] == [{"name": "y", "type": "float32[N, 300]"}]
    assert told["symbols"] == {"N": [0, None]}
    assert "float32[8, 4]" in call("params", model, "--dim", "N=8").out
    assert "N: 1..512" in call("params", model, "--dim", "N=1..512").out
    assert "float32[2, 4]" in call("params", model, "--input-shape", "x=2,4").out
    assert "float32[3, 300]" in call("params", model, "--batch", "3").out


@pytest.mark.parametrize(
    "words", [["--dim", "M=4"], ["--dim", "N"], ["--dim", "N=a"], ["--input-shape", "x=2,5"], ["--dim", "N=9..2"]]
)
def test_impossible_dims_are_usage_errors(call: Call, model: Path, words: list[str]) -> None:
    assert call("params", model, *words).code == 2


def test_a_program_with_its_constants_beside_it_is_read_like_a_model(call: Call, model: Path, tmp_path: Path) -> None:
    for name, content in program_files("kept", load_onnx(model)).items():
        (tmp_path / name).write_bytes(content)
    file = tmp_path / "kept.txt"
    assert call("run", file, "--dim", "N=2", "-o", tmp_path / "out.npz").code == 0
    found = np.load(tmp_path / "out.npz")["y"]
    assert found.shape == (2, 300)
    np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-5)
