"""`argosy why`: the text for people, and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
from onnx import TensorProto, helper

import argosy
from tests.cli.conftest import Call


def test_all_nodes(call: Call, model: Path) -> None:
    told = call("why", model, "--arch", "x86-64-v3,gfx942")
    assert told.code == 0
    lines = told.out.splitlines()
    assert lines[:5] == [
        "on x86-64-v3",
        "  node                 op       became",
        "  mm                   MatMul   tiled dot, with Relu (node 1 → 'r')",
        "  Relu (node 1 → 'r')  Relu     tiled dot, with mm",
        "  sm                   Softmax  softmax rows",
    ]
    assert lines[5].startswith("on gfx942 (before Triton has its say")


def test_one_node(call: Call, model: Path, tmp_path: Path) -> None:
    told = call("why", model, "--node", "Softmax", "--arch", "x86-64-v3", "-o", tmp_path / "why.txt")
    assert told.out == ""
    begin = """\
sm (Softmax) → y
  imported as
    softmax : float32[N, 300]  of r
  on x86-64-v3: softmax rows
    pass 4, normalize_attributes (normalise)
      - softmax : float32[N, 300]  of r
      + softmax {axis = 1} : float32[N, 300]  of r
      rule count_axis_from_front
"""
    text = (tmp_path / "why.txt").read_text()
    assert text.startswith(begin)
    assert "+ softmax {axis = 1} : float32[N, 300]  of r, in one kernel's loops of sm" in text
    assert "by      softmax rows" in text
    assert ", output 'y'" in text


def test_json_is_that_of_python(call: Call, model: Path) -> None:
    told = json.loads(call("why", model, "--node", "mm", "--node", "1", "--arch", "gfx942", "--fp16", "--json").out)
    found = argosy.why(model, ["mm", "1"], targets=["gfx942"], precision="fp16")
    assert told == json.loads(json.dumps(found.to_json()))
    assert [node["name"] for node in told["nodes"]] == ["mm", "Relu (node 1 → 'r')"]


def test_an_artifact_tells_what_is_in_it(call: Call, model: Path, artifact: Path, tmp_path: Path) -> None:
    sizes = tmp_path / "sizes.argosy"
    assert call("compile", model, "--arch", "x86-64-v3", "--dim", "N=1,8", "-o", sizes, "--quiet").code == 0
    told = [line for line in call("why", sizes).out.splitlines() if line.startswith("on ")]
    assert sorted(told) == [f"on x86-64-v3, fp32{size}" for size in ("", ", N=1", ", N=8")]
    told = call("why", sizes, "--node", "mm", "--dim", "N=8", "--arch", "x86-64-v3").out.splitlines()
    assert [line for line in told if line.startswith("  on ")] == [
        "  on x86-64-v3, fp32, N=8: tiled dot, with Relu (node 1 → 'r')"
    ]
    assert "    + dot : float32[8, 300]  of x, w" in "\n".join(told)
    assert "on ref" in call("why", artifact).out, "it holds no code"


def test_what_an_artifact_has_not(call: Call, artifact: Path) -> None:
    for words, said in (
        (("--arch", "x86-64-v3"), "it has no code for x86-64-v3"),
        (("--fp16",), "--fp16 says how to compile"),
        (("--dim", "K=1"), "no dim called 'K'"),
    ):
        answer = call("why", artifact, *words)
        assert answer.code == 2
        assert said in answer.err


def test_options_are_those_of_a_compile(call: Call, model: Path) -> None:
    told = call("why", model, "--node", "mm", "--arch", "x86-64-v3", "--dim", "N=1,8").out
    for begin in ("", ", N=1", ", N=8"):
        assert f"\n  on x86-64-v3{begin}: tiled dot" in told
    answer = call("why", model, "--node", "mm", "--arch", "x86-64-v3", "--without", "pass:fuse_loops")
    assert "fuse_loops" not in answer.out
    assert call("why", model, "--without", "pass:fuse_loop").code == 2


def test_what_is_wrong_is_told(call: Call, model: Path) -> None:
    answer = call("why", model, "--node", "softmaxx")
    assert answer.code == 2
    assert "did you mean 'Softmax'?" in answer.err
    assert call("why", model, "--arch", "gfx943").code == 2


def test_nodes_without_an_instruction_are_counted_and_long_names_cut(call: Call, tmp_path: Path) -> None:
    name = "/encoder/with/a/name/of/many/parts/that/nobody/wants/to/see/in/full/Exp"
    nodes = [
        helper.make_node("Constant", [], ["c"], name="constant", value_float=1.0),
        helper.make_node("Exp", ["x"], ["n"], name=name),
        helper.make_node("Add", ["n", "c"], ["y"], name="add"),
    ]
    ends = [helper.make_tensor_value_info(each, TensorProto.FLOAT, [4]) for each in "xy"]
    path = tmp_path / "long.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "long", ends[:1], ends[1:])), path)
    lines = call("why", path, "--arch", "x86-64-v3").out.splitlines()
    assert lines[-1].endswith("nothing needs it: 1 Constant")
    assert not any(line.startswith("  constant") for line in lines)
    shown = lines[2].split()[0]
    assert shown.startswith("…/")
    assert name.endswith(shown[1:])
    assert shown[:20] in lines[3], "where others name it, too"
    assert max(map(len, lines)) == 100
    assert lines[3].endswith("…"), "--node and --json tell the rest"
    assert name in call("why", path, "--node", shown[2:], "--arch", "x86-64-v3").out
