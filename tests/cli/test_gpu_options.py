"""`--gpu-arch` and the numbers beside it, on the command line; `arches` for GPUs."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from argosy.cli.main import make_parser
from argosy.cli.options.compile import targets
from argosy.cli.respell import respell
from argosy.cli.verb import VERBS
from argosy.errors import UsageError
from argosy.targets.base import NOT_BUILT, Target
from argosy.targets.gpu.target import GpuTarget
from tests.cli.conftest import Call


def chosen(*words: str) -> tuple[Target, ...]:
    verb = VERBS.get("compile")
    assert verb is not None
    return targets(make_parser(verb).parse(respell("compile", ["m.onnx", *words])))


def numbers(*words: str) -> dict[str, tuple[int, int, int]]:
    """Compute units, chiplets and threads of a block, by the name that was given."""
    rows = {target.gpu_arch: target.row for target in chosen(*words) if isinstance(target, GpuTarget)}
    return {
        name: (row.product.compute_units or 0, row.product.chiplets, row.max_threads_per_block)
        for name, row in rows.items()
    }


def test_a_gpu_is_named_by_either_option() -> None:
    assert [target.arch for target in chosen("--gpu-arch", "gfx942")] == ["gfx942"]
    assert [target.arch for target in chosen("--arch", "ref,rdna4", "--gpu-arch", "h200")] == [
        "ref", "gfx1200", "gfx1201", "sm_90",
    ]  # fmt: skip
    assert all(target.is_cross_compile for target in chosen("--gpu-arch", "datacenter"))


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--gpu-arch", "gfx942"], {"gfx942": (304, 8, 1024)}),
        (["--gpu-arch", "gfx942", "--gpu-arch-params", "{num_cu:80, num_chiplets:4}"], {"gfx942": (80, 4, 1024)}),
        (["--arch", "gfx942", "--gpu-arch-params", '{"num_cu": 80}'], {"gfx942": (80, 8, 1024)}),
        (
            ["--arch", "gfx942,sm_90", "--gpu-arch-params", "gfx942={num_cu:80}"],
            {"gfx942": (80, 8, 1024), "sm_90": (132, 1, 1024)},
        ),
        (
            ["--arch", "mi300x,mi325x", "--gpu-arch-params", "mi325x={num_cu:80}"],
            {"mi300x": (304, 8, 1024), "mi325x": (80, 8, 1024)},
        ),
        (
            ["--arch", "gfx942,sm_90", "--gpu-arch-params", "*={max_threads_per_block:256}"],
            {"gfx942": (304, 8, 256), "sm_90": (132, 1, 256)},
        ),
        (
            [
                "--arch",
                "gfx942,sm_90",
                "--gpu-arch-params",
                "gfx942={num_cu:80}, sm_90 = {'num_cu':100,num_chiplets:2}",
            ],
            {"gfx942": (80, 8, 1024), "sm_90": (100, 2, 1024)},
        ),
        # A family is each of its archs; what is said of fewer archs counts, in any order.
        (
            ["--arch", "rdna4", "--gpu-arch-params", "gfx1201={num_cu:8}, rdna4={num_cu:20}, *={num_chiplets:2}"],
            {"gfx1200": (20, 2, 1024), "gfx1201": (8, 2, 1024)},
        ),
        (
            ["--arch", "mi300x", "--gpu-arch-params", "mi300x={num_cu:8}", "--gpu-arch-params", "gfx942={num_cu:20}"],
            {"mi300x": (8, 8, 1024)},
        ),
        # A single flag of MIGraphX's gives way to the parameters, in any order.
        (
            ["--gpu-arch", "gfx942", "--gpu-arch-params", "{num_cu:80}", "--gpu-num-cus", "20"],
            {"gfx942": (80, 8, 1024)},
        ),
        (["--gpu-arch", "gfx942", "--gpu-num-cus", "20", "--gpu-num-chiplets=2"], {"gfx942": (20, 2, 1024)}),
        (["--gpu-arch", "gfx942", "--gpu-wavefront-size", "64"], {"gfx942": (304, 8, 1024)}),
        (
            ["--gpu-arch", "gfx942", "--gpu-wavefront-size", "32", "--gpu-arch-params", "{wavefront_size:64}"],
            {"gfx942": (304, 8, 1024)},
        ),
    ],
)
def test_numbers_of_the_command_line(words: list[str], found: dict[str, tuple[int, int, int]]) -> None:
    assert numbers(*words) == found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--gpu-arch-params", "{num_cu:80}"], "no GPU arch"),
        (["--arch", "ref", "--gpu-wavefront-size", "64"], "no GPU arch"),
        (["--gpu-wavefront-size", "0"], "no GPU arch"),
        (["--arch", "ref", "--gpu-num-cus", "64"], "no GPU arch"),
        (["--gpu-arch", "x86-64-v3"], "no GPU"),
        (["--gpu-arch", "gfx900"], "Triton"),
        (["--gpu-arch", "gfx94"], "gfx942"),
        (["--gpu-arch", "gfx942", "--gpu-wavefront-size", "32"], "64"),
        (["--gpu-arch", "gfx942", "--gpu-arch-params", "{num_cus:80}"], "num_cu"),
        (["--gpu-arch", "gfx942", "--gpu-arch-params", "{num_cu:80, num_cu:90}"], "twice"),
        (["--gpu-arch", "gfx942", "--gpu-arch-params", "{num_cu:many}"], "NAME={…}"),
        (["--gpu-arch", "gfx942", "--gpu-arch-params", "num_cu=80"], "NAME={…}"),
        (["--gpu-arch", "gfx942", "--gpu-arch-params", "gfx942{num_cu:80}"], "NAME={…}"),
        (["--gpu-arch", "gfx942", "--gpu-arch-params", "[80]"], "NAME={…}"),
        (["--gpu-arch", "gfx942", "--gpu-arch-params", ""], "NAME={…}"),
        (["--gpu-arch", "gfx942", "--gpu-arch-params", "{num_cu:80} {num_cu:90}"], "NAME={…}"),
        (["--gpu-arch", "gfx942", "--gpu-arch-params", "{num_cu:80},"], "NAME={…}"),
        (["--gpu-arch", "gfx942", "--gpu-arch-params", "{num_cu:8.5}"], "gfx942: num_cu is 8.5"),
        (["--gpu-arch", "gfx942", "--gpu-arch-params", "{num_cu:null}"], "no number for num_cu"),
        (["--gpu-arch", "gfx942", "--gpu-arch-params", "{num_cu:true}"], "whole number"),
        (["--gpu-arch", "gfx942", "--gpu-arch-params", "gfx950={num_cu:80}"], "gfx950"),
        (["--arch", "gfx942,gfx950", "--gpu-arch-params", "{num_cu:80}"], "gfx942, gfx950"),
        (["--arch", "gfx942,gfx950", "--gpu-arch-params", "gfx942={num_cu:80}, {num_cu:80}"], "gfx942, gfx950"),
        (["--arch", "rdna4", "--gpu-arch-params", "rdna3={num_cu:80}"], "'rdna3', which isn't asked for"),
    ],
)
def test_a_mistake_is_a_usage_error(words: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        chosen(*words)
    assert said in str(caught.value)


def test_exit_codes(call: Call, model: Path, artifact: Path) -> None:
    assert call("compile", model, "--gpu-arch-params", "{num_cu:80}").code == 2
    assert call("compile", model, "--gpu-arch", "gfx942", "--gpu-wavefront-size", "32").code == 2
    answer = call("perf", artifact, "--gpu-arch", "gfx942")
    assert answer.code == 2
    assert "--gpu-arch says how to compile" in answer.err


def test_tuning_that_is_not_done_is_said(call: Call, model: Path, tmp_path: Path) -> None:
    answer = call("compile", model, "--arch", "ref", "--exhaustive-tune", "-o", tmp_path / "m.argosy")
    assert answer.code == 0
    assert "nothing is measured" in answer.err


def test_arches_shows_names_numbers_and_reasons(call: Call) -> None:
    rows = {row["name"]: row for row in json.loads(call("arches", "--json").out)}
    assert {"mi300x", "cdna3", "datacenter"} <= set(rows["gfx942"]["names"])
    assert rows["gfx1010"]["tier"] == NOT_BUILT
    text = call("arches").out
    assert "strix-halo" in text
    assert "gfx900" in text
    (meant,) = json.loads(call("arches", "mi300a", "--json").out)
    assert meant["name"] == "gfx942"
    assert {"name": "num_cu", "value": 228, "source": "mi300a"} in meant["numbers"]
    assert "num_cu 228, num_chiplets 6 (mi300a)" in call("arches", "mi300a").out
    assert [row["name"] for row in json.loads(call("arches", "hopper,x86-64-v3", "--json").out)] == [
        "sm_90",
        "x86-64-v3",
    ]
    answer = call("arches", "gfx1030")
    assert answer.code == 2
    assert "Triton" in answer.err


@pytest.mark.skipif(find_spec("triton") is None, reason="the package triton (extra gpu) is not installed")
def test_arches_promises_no_more_than_compile_does(call: Call, model: Path) -> None:
    (row,) = json.loads(call("arches", "gfx942", "--model", model, "--json").out)
    built = row["tier"].startswith(("compiled", "emulated", "run on hardware"))
    assert built == row["model"].startswith("compiles; needs ")
