"""The page about limits of cross-compiling has every message, word for word, and no other."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import argosy
from argosy.artifact.manifest import Requirements, VariantRecord
from argosy.cli.main import make_parser
from argosy.cli.options.compile import compile_options, targets
from argosy.cli.respell import respell
from argosy.cli.verb import VERBS
from argosy.compiler import compile_program
from argosy.drivers.discovery import DeviceInfo
from argosy.errors import ArgosyError
from argosy.ir import Builder, Program
from argosy.ops.strings import StringConcat
from argosy.options import CompileOptions
from argosy.runtime.gpu import fitting
from argosy.runtime.gpu.device import DeviceMemoryError
from argosy.runtime.selection import judge
from argosy.targets.base import find_arch
from argosy.targets.gpu.arch import find_gpu
from argosy.targets.gpu.memory import check_memory

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cross-compiling-limits.md"
MI308X = DeviceInfo("hip", 0, "AMD Instinct MI308X", "gfx942", 80, 64 << 30, 70125424, "0000:01:00.0")
H100 = DeviceInfo("cuda", 0, "NVIDIA H100", "sm_90", 132, 80 << 30, 12080, "0000:01:00.0")


def error(act: Callable[[], object]) -> str:
    with pytest.raises(ArgosyError) as caught:
        act()
    return caught.value.what


def command_line(*words: str) -> Callable[[], str]:
    verb = VERBS.get("compile")
    assert verb is not None
    return lambda: error(lambda: targets(make_parser(verb).parse(respell("compile", ["m.onnx", *words]))))


def api(**fields: object) -> Callable[[], str]:
    return lambda: error(lambda: argosy.make_target("gpu", **fields))


def params(numbers: str, archs: str = "gfx942") -> Callable[[], str]:
    return command_line("--arch", archs, "--gpu-arch-params", numbers)


def warning() -> str:
    verb = VERBS.get("compile")
    assert verb is not None
    with mock.patch("argosy.cli.options.compile.log") as log:
        compile_options(make_parser(verb).parse(respell("compile", ["m.onnx", "--exhaustive-tune"])), ())
    (call,) = log.warning.call_args_list
    return str(call.args[0])


def too_large() -> str:
    row = find_gpu("rx7600")
    assert row is not None
    return error(lambda: check_memory(24_000_000_000, row, strict=True))


def host_step() -> str:
    b = Builder()
    strings = b.tensor_parameter("s", "string", [2])
    program = Program(b.module({"t": b.add(StringConcat(), strings, strings, source="StringConcat (node 0 → 't')")}))
    return error(lambda: compile_program(program, (find_arch("gfx942"),), CompileOptions(strict=True)))


def judged(info: DeviceInfo | None, family: str = "amd", arch: str = "gfx942", **fields: Any) -> Callable[[], str]:
    record = VariantRecord("0" * 64, family, arch, arch, **fields)

    def reason() -> str:
        with mock.patch.object(fitting, "devices", return_value=(info,) if info else ()):
            (choice,) = [choice for choice in judge([record]).choices if choice.variant]
        return choice.reason

    return reason


def contexts() -> str:
    """What all of them say, with the name of the first."""
    context = find_arch("gfx942").context()
    names = ("copy_to", "copy_from", "allocate", "finish", "get_queue", "wait_for")
    said = {error(getattr(context, name)).replace(name, names[0]) for name in names}
    (text,) = said
    return text


WHILE_COMPILING = (
    command_line("--gpu-arch", "gfx942", "--gpu-wavefront-size", "32"),
    params("{max_threads_per_block:2048}"),
    params("{max_threads_per_block:32}"),
    params("{num_chiplets:305}"),
    params("{num_cu:0}"),
    command_line("--gpu-arch-params", "{num_cu:80}"),
    params("{num_cu:80}", "gfx942,sm_90"),
    params("gfx950={num_cu:80}"),
    params("{num_cus:80}"),
    command_line("--gpu-arch", "gfx900"),
    api(gpu_arch="rdna4"),
    api(),
    contexts,
    warning,
    too_large,
    host_step,
)
WHERE_LOADED = (
    judged(None),
    judged(MI308X, arch="gfx90a"),
    judged(MI308X, products=("num_cu=304",)),
    judged(H100, "nvidia", "sm_90", requirements=Requirements(minimum_driver="13.0")),
    judged(MI308X, requirements=Requirements(memory=1 << 40)),
    lambda: str(DeviceMemoryError(MI308X.name, 1 << 20, 4096).what),
)


def messages() -> list[list[str]]:
    """Those of each table of the page."""
    parts = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    return [re.findall(r"^\| `([^`]+)` \|", part, re.MULTILINE) for part in parts]


@pytest.mark.parametrize(
    ("table", "place"),
    [(0, place) for place in range(len(WHILE_COMPILING))] + [(1, p) for p in range(len(WHERE_LOADED))],
)
def test_the_page_has_the_message(table: int, place: int) -> None:
    said = (WHILE_COMPILING, WHERE_LOADED)[table][place]()
    pattern = re.escape(messages()[table][place]).replace("…", ".+")
    assert re.fullmatch(pattern, said), said


def test_the_page_has_no_other() -> None:
    assert [len(table) for table in messages()] == [len(WHILE_COMPILING), len(WHERE_LOADED)]
