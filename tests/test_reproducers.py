"""What a failing compiler leaves behind: faults planted in each part of it, and seen again by the command in README."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import onnx
import pytest

import argosy
from argosy import reproducers
from argosy.cli.main import main, make_parser
from argosy.cli.options.compile import compile_options, targets
from argosy.cli.verb import VERBS
from argosy.compiler import compile_each, compile_program, compile_what_can_be, load_onnx, resolve_targets
from argosy.debugging import reduce_model
from argosy.errors import ArgosyError, InternalError, ModelError, UsageError
from argosy.ir import Builder, Program
from argosy.options import CompileOptions, Dimensions
from argosy.passes import simplify_algebra
from argosy.passes.eliminate_common import EliminateCommon
from argosy.passes.spell_masks import SpellMasks
from argosy.reproducers import KEPT, compile_case, option_words
from argosy.rewrite.pattern import any_, op
from argosy.rewrite.rule import RuleSet, rule
from argosy.targets.base import Target, find_arch, make_target
from argosy.targets.cpu import target as cpu_target
from argosy.targets.cpu.solutions.dot import TiledDot
from argosy.targets.gpu import variant as gpu_variant
from argosy.targets.gpu.solution import SOLUTIONS as GPU_SOLUTIONS
from argosy.toolchains.triton import CompiledKernel, Refused, TritonSource, compile_kernels
from argosy.toolchains.zig import Source
from tests.cli import models

CPU, GPU = "x86-64-v2", "gfx942"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARGOSY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return models.classifier(tmp_path / "model.onnx")


def boom(*_: object, **__: object) -> NoReturn:
    raise ZeroDivisionError("planted")


def in_a_pass(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(EliminateCommon, "run", boom)


def in_a_rule(patch: pytest.MonkeyPatch) -> None:
    @rule(op("softmax", any_("x")))
    def planted() -> NoReturn:
        """A softmax is a fault."""
        boom()

    patch.setattr(simplify_algebra, "_RULES", RuleSet((planted,)))


def in_a_solution(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TiledDot, "lower", boom)


def in_c(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cpu_target, "variant_sources", lambda *_: [Source("planted", "int f(void) { return nothing; }\n")])


def in_triton(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gpu_variant, "compile_kernels", lambda sources, *_, **__: [Refused("planted")] * len(sources))


def in_a_triton_process(patch: pytest.MonkeyPatch) -> None:
    def broken(sources: Sequence[TritonSource], *given: Any, **options: Any) -> list[CompiledKernel | Refused]:
        return compile_kernels([dataclasses.replace(each, text="planted +") for each in sources], *given, **options)

    patch.setattr(gpu_variant, "compile_kernels", broken)


def in_a_thread(patch: pytest.MonkeyPatch) -> None:
    for _, solution in GPU_SOLUTIONS.walk():
        patch.setattr(solution, "applies", boom)


CASES: dict[Callable[[pytest.MonkeyPatch], None], tuple[str, str, str, int]] = {
    in_a_pass: (CPU, "eliminate_common", "pass eliminate_common: ZeroDivisionError: planted", 70),
    in_a_rule: (CPU, "simplify_algebra", "pass simplify_algebra: rule planted at sm: ZeroDivisionError: planted", 70),
    in_a_solution: (CPU, "compile", "Relu (node 1 → 'r'): ZeroDivisionError: planted", 70),
    in_c: (CPU, "zig", "planted: the C compiler refused it: kernels.c:1:22: error: ", 4),
    in_triton: (GPU, "triton", "mm: no kernel can do this node: ", 4),
    in_a_triton_process: (GPU, "triton", "mm: no kernel can do this node: ", 4),
    in_a_thread: (GPU, "compile", "mm: ZeroDivisionError: planted", 70),
}
EVIDENCE = {
    "eliminate_common": "before-eliminate_common.txt",
    "simplify_algebra": "before-simplify_algebra.txt",
    "zig": "kernels.c",
}


def folder_of(text: str) -> Path:
    """The folder that the last line of a message names."""
    return Path(text.rstrip().splitlines()[-1].strip().removeprefix("reproducer: "))


def again(folder: Path, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """What the command in a folder's README says."""
    (line,) = (line for line in (folder / "README.txt").read_text().splitlines() if line.startswith("  argosy "))
    patch.chdir(folder)
    capsys.readouterr()
    code = main(shlex.split(line)[1:])
    return code, capsys.readouterr().err


@pytest.mark.parametrize("plant", CASES, ids=lambda plant: plant.__name__)
def test_a_failure_of_each_part_is_seen_again(
    plant: Callable[[pytest.MonkeyPatch], None],
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arch, stage, told, code = CASES[plant]
    plant(monkeypatch)
    assert main(["compile", str(model), "--arch", arch, "--fp16", "--strict", "--dim", "N=3"]) == code
    first = capsys.readouterr().err
    assert f"argosy: error: {told}" in first or f"gets no code: {told}" in first
    folder = folder_of(first)
    assert folder.name.startswith(f"{stage}-")
    files = {path.name for path in folder.iterdir()}
    assert {"README.txt", "program.txt", "program.npz", "options.json", "versions.json", "error.txt"} <= files
    if stage == "triton":
        reasons = {path.read_text().splitlines()[0] for path in folder.glob("*.py")}
        assert reasons
        assert all(line.startswith("# gfx942: ") and ("planted" in line or "SyntaxError" in line) for line in reasons)
    elif stage in EVIDENCE:
        assert EVIDENCE[stage] in files
    assert told.split(": ")[-1] in (folder / "error.txt").read_text()
    assert "Traceback" in (folder / "error.txt").read_text()
    assert json.loads((folder / "options.json").read_text())["options"]["precision"] == "fp16"
    assert json.loads((folder / "versions.json").read_text())["numpy"] == np.__version__
    # With the program alone the same comes again, and is known to be the same.
    assert again(folder, monkeypatch, capsys) == (code, first)
    monkeypatch.undo()
    monkeypatch.setenv("ARGOSY_CACHE", str(folder.parent.parent))
    assert again(folder, monkeypatch, capsys) == (0, "")
    assert (folder / "again.argosy").is_file()


def test_an_error_in_python_names_the_folder_in_its_hint(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_pass(monkeypatch)
    with pytest.raises(InternalError, match="pass eliminate_common: ZeroDivisionError: planted") as caught:
        argosy.compile(model, targets=[CPU])
    assert caught.value.hint.startswith("reproducer: ")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert (folder_of(str(caught.value)) / "before-eliminate_common.npz").is_file()


def test_one_arch_that_fails_keeps_no_other_from_its_code(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, chosen = load_onnx(model), resolve_targets([GPU, CPU])
    monkeypatch.setattr(SpellMasks, "run", boom)  # a pass of the GPU alone
    artifact, failures = compile_what_can_be(program, chosen, CompileOptions())
    assert [variant.arch for variant in artifact.variants] == [CPU]
    assert {target.arch: type(error) for target, error in failures.items()} == {GPU: InternalError}
    assert (folder_of(failures[chosen[0]].hint) / "before-spell_masks.txt").is_file()
    made = dict(compile_each(program, chosen, CompileOptions()))
    assert isinstance(made[chosen[0]], ArgosyError)
    assert not isinstance(made[chosen[1]], ArgosyError)


def test_recompiling_leaves_one_too(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    argosy.compile(model, targets=[CPU]).save(tmp_path / "old.argosy")
    in_a_solution(monkeypatch)
    with pytest.raises(InternalError, match="ZeroDivisionError: planted\n  reproducer: "):
        argosy.recompile(tmp_path / "old.argosy", tmp_path / "new.argosy")
    assert not (tmp_path / "new.argosy").exists()


def test_a_handler_that_fails_leaves_the_model(
    model: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Builder, "pointwise", boom)
    assert main(["params", str(model), "--dim", "N=2"]) == 70
    first = capsys.readouterr().err
    folder = folder_of(first)
    assert (folder / "model.onnx").read_bytes() == model.read_bytes()
    code, told = again(folder, monkeypatch, capsys)
    assert code == 70
    assert told.replace("model.onnx: ", "").splitlines()[0] == first.replace(f"{model}: ", "").splitlines()[0]
    for given in (model.read_bytes(), onnx.load(model)):
        with pytest.raises(InternalError, match="planted\n  reproducer: "):
            load_onnx(given)
    assert len(list((cache / "reproducers").iterdir())) <= 3


def test_what_is_not_ours_leaves_nothing(model: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError):
        argosy.compile(b"no model", targets=[CPU])
    with pytest.raises(UsageError):
        argosy.compile(model, targets=[CPU], dims={"M": 2})
    for fault in (MemoryError(), OSError(28, "No space left on device"), KeyboardInterrupt()):

        def fails(*_: object, fault: BaseException = fault) -> NoReturn:
            raise fault

        with monkeypatch.context() as patch:
            patch.setattr(EliminateCommon, "run", fails)
            with pytest.raises(type(fault)):
                argosy.compile(model, targets=[CPU])
    assert not (cache / "reproducers").exists()


def test_a_kernel_that_is_declined_is_no_failure(model: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_triton(monkeypatch)
    assert argosy.compile(model, targets=[GPU]).variants
    assert not (cache / "reproducers").exists()


def test_reading_with_passes_leaves_one(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    in_a_pass(monkeypatch)
    for words in (["-O"], ["-p", "eliminate_common"], ["--arch", "gfx90a", "--bf16"]):
        assert main(["read", str(model), *words]) == 70
        first = capsys.readouterr().err
        assert again(folder_of(first), monkeypatch, capsys) == (70, first)


def test_the_newest_folders_are_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = Builder()
    program = Program(build.module({"y": build.parameter("x", build.constant(1).type)}))
    folders = []
    for number in range(KEPT + 3):
        with pytest.raises(InternalError) as caught:  # noqa: SIM117 - what the context raises is looked at
            with reproducers.leaving_reproducer(lambda: compile_case(program, (), CompileOptions())):
                raise ValueError(f"number {number} of <object at 0x{number:x}>")
        folders.append(folder_of(str(caught.value)))
        os.utime(folders[-1], (number, number))
        if number == 2:  # met again: it is new now
            with (
                pytest.raises(InternalError),
                reproducers.leaving_reproducer(lambda: compile_case(program, (), CompileOptions())),
            ):
                raise ValueError("number 0 of <object at 0x7f>")
    assert len(set(folders)) == KEPT + 3
    assert {*(cache / "reproducers").iterdir()} == {folders[0], *folders[4:]}


def test_a_folder_that_cannot_be_written_is_told(model: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write_text("no folder")
    monkeypatch.setattr(cpu_target, "lower_module", boom)
    with pytest.raises(InternalError, match="ZeroDivisionError: planted\n  no reproducer could be written: "):
        argosy.compile(model, targets=[CPU])


def test_no_folder_is_left_where_none_is_wanted(model: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_target, "lower_module", boom)
    with pytest.raises(InternalError, match="^ZeroDivisionError: planted$"):
        compile_program(load_onnx(model), [find_arch(CPU)], CompileOptions(reproducers=False))
    assert reduce_model(model, targets=[CPU], checks=5) is not None
    assert not (cache / "reproducers").exists()


OPTIONS: dict[str, Any] = {
    "precision": "bf16",
    "dims": Dimensions.of({"N": (1, 8), "M": 4, "K": "1..512"}),
    "accuracy": "exact",
    "allow_tf32": True,
    "fast_math": True,
    "mode": "eager",
    "slim": True,
    "debug": True,
    "jobs": 3,
    "without": ("pass:fold_scales", "stage:memory"),
}


def test_options_and_targets_are_told_as_a_command_line_has_them() -> None:
    assert {*OPTIONS, "strict", "reproducers"} == {field.name for field in dataclasses.fields(CompileOptions)}
    chosen: tuple[Target, ...] = (
        find_arch(CPU),
        make_target("gpu", gpu_arch="mi300x", gpu_num_cu=100, gpu_wavefront_size=64),
    )
    parser = make_parser(next(each for _, each in VERBS.items() if each.name == "compile"))
    for options in (
        CompileOptions(**OPTIONS),
        CompileOptions(strict=True, dims=Dimensions((), (("x", (2, 3)), ("s", ())), 8)),
    ):
        arguments = parser.parse(
            ["m", *(word for each in chosen for word in each.command_words()), *option_words(options)]
        )
        assert targets(arguments) == chosen
        assert compile_options(arguments, chosen) == options


def test_what_a_pass_finds_wrong_with_a_model_that_was_read_is_left_too(
    monkeypatch: pytest.MonkeyPatch, cache: Path, model: Path
) -> None:
    """It may be the pass that is wrong: the error is the model's, and there is a folder."""

    def run(*_: object) -> NoReturn:
        raise ModelError("the rank of a weight contradicts itself")

    monkeypatch.setattr(EliminateCommon, "run", run)
    with pytest.raises(ModelError, match="contradicts itself") as caught:
        argosy.compile(model, targets=(CPU,))
    folder = Path(caught.value.hint.rpartition("reproducer: ")[2])
    assert folder.parent == cache / "reproducers"
    assert (folder / "before-eliminate_common.txt").is_file()
