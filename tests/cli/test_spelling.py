"""MIGraphX's options, each tried on our parsers; and our own that this version refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.cli.later import LATER, LATER_VERBS
from argosy.cli.main import make_parser
from argosy.cli.migraphx import MIGRAPHX
from argosy.cli.respell import respell
from argosy.cli.spelling import Spelling
from argosy.cli.verb import VERBS
from argosy.errors import UsageError
from tests.cli import models
from tests.cli.conftest import Call

# Every option in the help of MIGraphX's driver, and those that later versions document.
DRIVER = [
    "-h",
    "--help",
    "--log-level",
    "--log-file",
    "--onnx",
    "--tf",
    "--migraphx",
    "--migraphx-json",
    "--test",
    "--batch",
    "--nhwc",
    "--nchw",
    "--output-names",
    "--skip-unknown-operators",
    "--debug-symbols",
    "-t",
    "--trim",
    "-s",
    "--trim-size",
    "--input-dim",
    "--dim-param",
    "--dyn-input-dim",
    "--default-dyn-dim",
    "-O",
    "--optimize",
    "-p",
    "--apply-pass",
    "--mlir",
    "--replace-literals",
    "--strip-context",
    "--text",
    "--json",
    "--binary",
    "--cpp",
    "--python",
    "--py",
    "-g",
    "--graphviz",
    "--netron",
    "--brief",
    "-o",
    "--output",
    "--fill0",
    "--fill1",
    "--load-arg",
    "--gpu",
    "--cpu",
    "--ref",
    "--enable-offload-copy",
    "--disable-fast-math",
    "--exhaustive-tune",
    "--fp16",
    "--bf16",
    "--int8",
    "--fp8",
    "--int4-weights",
    "--rms-tol",
    "--atol",
    "--rtol",
    "-i",
    "--per-instruction",
    "-r",
    "--reduce",
    "-b",
    "--bisect",
    "--ref-use-double",
    "-c",
    "--compiled-model",
    "-n",
    "--iterations",
    "-d",
    "--detailed",
    "-l",
    "--list",
    "--gpu-arch",
    "--gpu-num-cus",
    "--gpu-num-chiplets",
    "--gpu-wavefront-size",
    "--gpu-arch-params",
    "--recompilable",
    "--enable-symbolic",
    "--split-sizes",
    "--weight-params",
    "--bake-weights",
    "--encode-weights",
    "--no-rebuild",
]

LINES = [
    pytest.param(row, name, verb, id=f"{verb} {name}") for row in MIGRAPHX for name in row.names for verb in row.verbs
]


def parse(verb_name: str, words: list[str]) -> object:
    verb = VERBS.get(verb_name)
    assert verb is not None
    return make_parser(verb).parse(respell(verb_name, words))


def test_every_option_of_the_driver_has_a_row() -> None:
    named = {name for row in MIGRAPHX for name in row.names}
    assert not set(DRIVER) - named
    assert not named - set(DRIVER), "a row for an option that the driver does not have"


@pytest.mark.parametrize(("row", "name", "verb"), LINES)
def test_the_state_of_a_row_is_what_the_parser_does(row: Spelling, name: str, verb: str) -> None:
    words = ([] if verb == "ops" else ["FILE"]) + [name, *row.sample]
    if row.state == "refused":
        with pytest.raises(UsageError, match=r"argosy .* --help") as caught:
            parse(verb, words)
        assert row.told in str(caught.value)
        return
    parse(verb, words)
    verb_row = VERBS.get(verb)
    assert verb_row is not None
    shown = {option for action in make_parser(verb_row)._actions for option in action.option_strings}
    assert (name in shown) == (row.state == "same"), "what we have is the same, what we rewrite is not in our help"


@pytest.mark.parametrize("row", LATER, ids=lambda row: row.names[0])
def test_options_of_later_versions_are_refused_and_not_shown(row: Spelling) -> None:
    for verb_name in row.verbs:
        verb = VERBS.get(verb_name)
        assert verb is not None
        for name in row.names:
            with pytest.raises(UsageError, match="this version"):
                parse(verb_name, ["FILE", name])
            assert name not in make_parser(verb).options()


@pytest.mark.parametrize(
    ("words", "ours"),
    [
        (["--input-dim", "@x", "1", "3", "@y", "2", "m.onnx"], ["--input-shape=x=1,3", "--input-shape=y=2", "m.onnx"]),
        (["--dim-param", "@N", "4"], ["--dim=N=4"]),
        (["--dim-param", "@N", "{min:1, max:8, optimals:[1,4]}"], ["--dim=N=1..8", "--dim=N=1,4"]),
        (["--input", "@0", "1", "3", "m.onnx"], ["--input=@0 1 3", "m.onnx"]),
        (["--input", "x=a.npy", "m.onnx"], ["--input", "x=a.npy", "m.onnx"]),
        (["m.onnx", "--ref", "--onnx"], ["m.onnx", "--arch=ref"]),
        (["--load-arg", "@x", "x.npy"], ["--input=x=x.npy"]),
        (["--", "--onnx"], ["--", "--onnx"]),
    ],
)
def test_respelling(words: list[str], ours: list[str]) -> None:
    assert respell("run", words) == ours


def test_a_command_line_of_migraphx_runs(call: Call, tmp_path: Path) -> None:
    model = models.classifier(tmp_path / "model.onnx")
    answer = call("run", "--onnx", model, "--ref", "--input-dim", "@x", "3", "4", "--fill1", "x")
    assert answer.code == 0
    assert "float32[3, 300]" in answer.out
    assert "filled with 1" in answer.out
    assert call("time", model, "--dim-param", "@N", "2", "-n", "2").code == 0
    assert call("onnx", "--list").code == 0


@pytest.mark.parametrize("name", LATER_VERBS)
def test_verbs_of_later_versions_are_refused_by_name(call: Call, name: str) -> None:
    answer = call(name, "x")
    assert answer.code == 2
    assert f"this version has no verb {name!r}" in answer.err
    assert VERBS.get(name) is None, "it is here now: take it off the list"
