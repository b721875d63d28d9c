"""The entry: help, suggestions, exit codes, and what becomes of errors of every kind."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from argosy import __version__
from argosy.cli.main import main, make_parser
from argosy.cli.respell import respell
from argosy.cli.verb import VERBS
from tests.cli import models
from tests.cli.conftest import Call

VERB_NAMES = sorted(name for name, _ in VERBS.items())
# Processor time of the whole process for `argosy --help`, and what a busy machine may add to it.
HELP_SECONDS = 0.25


def test_the_verbs_are_those_of_the_design() -> None:
    wanted = "read params ops compile run verify perf list inspect merge doctor arches"
    assert set(wanted.split()) <= set(VERB_NAMES)


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_help_lists_every_verb(call: Call, words: list[str]) -> None:
    answer = call(*words)
    assert answer.code == 0
    assert all(f"\n  {name} " in answer.out for name in VERB_NAMES)
    assert "mismatch" in answer.out, "exit codes are told"


@pytest.mark.parametrize("name", VERB_NAMES)
def test_each_verb_has_help_with_examples_and_the_common_options(call: Call, name: str) -> None:
    answer = call(name, "--help")
    assert answer.code == 0
    assert answer.out.startswith(f"usage: argosy {name}")
    assert f"argosy {name}" in answer.out.partition("examples:")[2]
    assert all(option in answer.out for option in ("--json", "--log-level", "--log-file", "--quiet"))


@pytest.mark.parametrize("name", VERB_NAMES)
def test_examples_parse(name: str, tmp_path: Path) -> None:
    verb = VERBS.get(name)
    assert verb is not None
    for command, _ in verb.examples:
        program, own, *words = command.split()
        assert (program, own) == ("argosy", name)
        make_parser(verb).parse(respell(name, words))


def test_version(call: Call) -> None:
    assert call("--version").out == f"argosy {__version__}\n"


def test_help_has_colours_only_where_they_are_wanted(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b" not in call("--help").out, "no terminal, no colour"
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1mModels:\x1b[0m" in call("--help").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in call("run", "--help").out


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["rnu", "x"], "did you mean 'run'?"),
        (["run", "x", "--inptu", "y"], "did you mean '--input'?"),
        (["verify", "x", "--agianst=ref"], "did you mean '--against'?"),
        (["ops", "Reluu"], "did you mean 'Relu'?"),
        (["ops", "--target", "rfe"], "did you mean 'ref'?"),
        (["arches", "rfe"], "did you mean 'ref'?"),
        (["--json", "list", "x"], "argosy list --json"),
        (["compile"], "usage: argosy compile MODEL"),
        (["params", "a", "b"], "usage: argosy params FILE"),
        (["compile", "m", "--accuracy", "good"], "usage: argosy compile MODEL"),
        (["run", "no-such-file"], ""),
        (["perf", "m", "-n", "many"], "usage:"),
    ],
)
def test_mistakes_on_the_command_line_end_with_2_and_a_hint(call: Call, words: list[str], hint: str) -> None:
    answer = call(*words)
    assert answer.code == 2
    assert answer.err.startswith("argosy: error: ")
    assert hint in answer.err
    assert not answer.out


def test_a_misspelt_pass_is_suggested(call: Call, model: Path) -> None:
    answer = call("read", model, "--apply-pass", "fold_constant")
    assert answer.code == 2
    assert "did you mean 'fold_constants'?" in answer.err


def test_each_class_of_error_has_its_exit_code(call: Call, model: Path, artifact: Path, tmp_path: Path) -> None:
    (tmp_path / "noise.onnx").write_bytes(b"\x07" * 64)
    (tmp_path / "noise.argosy").write_bytes(b"PK\x03\x04" + b"\x07" * 64)
    unknown = models.unknown_ops(tmp_path / "unknown.onnx")
    assert call("params", model).code == 0
    assert call("compile", tmp_path / "noise.onnx").code == 3
    unsupported = call("compile", unknown)
    assert unsupported.code == 3
    assert unsupported.err.count("org.example::Frobnicate") == 2, "every unsupported node is listed"
    assert call("list", tmp_path / "noise.argosy").code == 5
    assert call("list", model).code == 5
    assert call("run", artifact, "--device", "cuda:0").code == 6
    assert call("compile", model, "-o", tmp_path / "absent" / "x.argosy").code == 7
    assert call("params", model, "--log-file", tmp_path / "absent" / "log").code == 7


def test_a_defect_ends_with_70_and_its_traceback_is_in_the_log(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr("argosy.cli.verbs.params.interface_of", fail)
    log = tmp_path / "log.txt"
    assert main(["params", str(model), "--log-file", str(log)]) == 70
    err = capsys.readouterr().err
    assert "ZeroDivisionError: by nothing" in err
    assert "Traceback" not in err
    assert "Traceback" in log.read_text()
    assert main(["params", str(model), "--log-level", "debug"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_ends_with_130(call: Call, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("argosy.cli.verbs.params.interface_of", interrupt)
    assert call("params", model).code == 130


def test_logging_is_as_it_was_afterwards(call: Call, model: Path) -> None:
    logger = logging.getLogger("argosy")
    before = list(logger.handlers), logger.level, logger.propagate
    assert call("params", model, "--log-level", "5").code == 0
    assert (list(logger.handlers), logger.level, logger.propagate) == before


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = [sys.executable, "-m", "argosy", "ops", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        err = process.stderr.read()
    assert process.returncode in (0, 141)
    assert not err


def test_help_is_quick_and_loads_nothing_heavy() -> None:
    program = (
        "import time, sys, json\n"
        "from argosy.cli.main import main\n"
        "main(['--help'])\n"
        "print(json.dumps([time.process_time(), sorted(sys.modules)]))"
    )
    best = HELP_SECONDS
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        seconds, loaded = json.loads(done.stdout.splitlines()[-1])
        best = min(best, seconds)
        assert not {"numpy", "msgspec", "onnx", "argosy.compiler", "argosy.runtime"} & set(loaded)
    assert best < HELP_SECONDS


@pytest.mark.parametrize("name", VERB_NAMES)
def test_help_of_a_verb_has_two_forms(call: Call, name: str) -> None:
    assert call("help", name).out == call(name, "--help").out


def test_a_terminal_without_our_letters_gets_others(model: Path) -> None:
    command = [sys.executable, "-X", "utf8=0", "-m", "argosy", "read", str(model)]
    done = subprocess.run(command, env={"PYTHONIOENCODING": "ascii"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "Relu (node 1 ? 'r')" in done.stdout


BASE_ONLY = """
import sys
for absent in ("onnx", "onnxruntime", "google.protobuf"):
    sys.modules[absent] = None
from argosy.cli.main import main
print([main(words) for words in {commands}], file=sys.stderr)
"""


def test_artifacts_need_the_base_package_only(artifact: Path, model: Path) -> None:
    file = str(artifact)
    good = [["run", file, "--batch", "2"], ["list", file], ["inspect", file], ["params", file], ["read", file, "-O"]]
    good += [["perf", file, "--batch", "1", "-n", "2"], ["verify", file, "--batch", "1"], ["doctor", file], ["arches"]]
    missing = [["run", str(model)], ["ops"]]
    program = BASE_ONLY.format(commands=[*good, *missing])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == str([0] * len(good) + [7] * len(missing))
    assert "pip install 'argosy[onnx]'" in done.stderr
