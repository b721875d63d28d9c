"""`compile --separate` and `compile --fleet`: a file for each arch, code for the devices of machines, who runs what."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from argosy.artifact.manifest import Requirements, VariantRecord
from argosy.drivers.discovery import DeviceInfo
from argosy.drivers.machine import Machine, read_machine, this_machine
from argosy.errors import CompileError
from argosy.runtime.selection import judge
from argosy.targets.cpu.arch import find_cpu
from argosy.targets.gpu.target import GpuTarget
from benchmarks.models import catalog
from tests.cli.conftest import Call
from tests.targets import mirror


def device(name: str, arch: str, units: int, *, problem: str = "") -> DeviceInfo:
    kind, driver = ("hip", 70_000_000) if arch.startswith("gfx") else ("cuda", 13_000)
    return DeviceInfo(kind, 0, name, arch, units, 64 << 30, driver, "0000:01:00.0", problem)


def machine(*gpus: DeviceInfo, level: str = "x86-64-v3") -> Machine:
    row = find_cpu(level)
    assert row is not None
    return Machine(system="linux", isa="x86_64", features=row.features, gpus=gpus)


def written(folder: Path, **machines: Machine) -> list[Path]:
    """Files as `argosy doctor --json` writes them, with the sections for people left out."""
    files = [folder / f"{name}.json" for name in machines]
    for file, each in zip(files, machines.values(), strict=True):
        file.write_bytes(msgspec.json.encode({"machine": each}))
    return files


# ---------------------------------------------------------------------------------------------------------- separate
def test_each_arch_gets_a_file(call: Call, model: Path, tmp_path: Path) -> None:
    pattern = tmp_path / "dist/{arch}/{name}.argosy"
    answer = call("compile", model, "--arch", "mirror1,mirror2", "--separate", "-o", pattern)
    assert answer.code == 0
    for arch in ("mirror1", "mirror2"):
        path = tmp_path / "dist" / arch / "model.argosy"
        assert str(path) in answer.out
        variants = json.loads(call("list", path, "--json").out)["variants"]
        assert [each["arch"] for each in variants] == [arch]
    merged = tmp_path / "all.argosy"
    assert call("merge", *(tmp_path / f"dist/mirror{n}/model.argosy" for n in (1, 2)), "-o", merged).code == 0


def test_files_have_their_place_without_a_pattern(call: Call, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(model.parent)
    told = json.loads(call("compile", model, "--arch", "mirror1,mirror2", "--separate", "--json").out)
    assert told["files"] == {arch: f"dist/{arch}/model.argosy" for arch in ("mirror1", "mirror2")}
    assert "failed" not in told


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("one.argosy", "gives mirror1 and mirror2 the same file one.argosy"),
        ("{name}.argosy", "gives mirror1 and mirror2 the same file model.argosy"),
        ("{arch}-{what}.argosy", "is no pattern: 'what'"),
        ("{arch.argosy", "is no pattern"),
    ],
)
def test_a_pattern_tells_archs_apart(call: Call, model: Path, pattern: str, said: str) -> None:
    answer = call("compile", model, "--arch", "mirror1,mirror2", "--separate", "-o", pattern)
    assert answer.code == 2
    assert said in answer.err
    assert "{arch}" in answer.err


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """mirror2 can't be compiled for."""
    lower = mirror.MirrorTarget.lower

    def fail(self: mirror.MirrorTarget, *given: Any) -> Any:
        if self.arch == "mirror2":
            raise CompileError("the tool ends with 1", where="/conv1", hint="leave it out")
        return lower(self, *given)

    monkeypatch.setattr(mirror.MirrorTarget, "lower", fail)


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("order", ["mirror1,mirror2", "mirror2,mirror1"])
def test_one_arch_that_fails_keeps_no_other_from_its_file(call: Call, model: Path, tmp_path: Path, order: str) -> None:
    pattern = tmp_path / "{arch}.argosy"
    answer = call("compile", model, "--arch", order, "--separate", "-o", pattern)
    assert answer.code == 4
    assert "mirror2 gets no code: /conv1: the tool ends with 1\n  leave it out" in answer.err
    assert (tmp_path / "mirror1.argosy").is_file()
    assert not (tmp_path / "mirror2.argosy").exists()


@pytest.mark.usefixtures("broken")
def test_one_arch_that_fails_is_left_out_of_a_common_file(call: Call, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "fleet.argosy"
    answer = call("compile", model, "--arch", "mirror2,mirror1", "-o", path, "--json")
    told = json.loads(answer.out)
    assert answer.code == 4
    hint, _, folder = told["failed"]["mirror2"].pop("hint").partition("\nreproducer: ")
    assert told["failed"] == {"mirror2": {"what": "the tool ends with 1", "where": "/conv1"}}
    assert hint == "leave it out"
    assert Path(folder, "README.txt").is_file()
    assert [each["arch"] for each in json.loads(call("list", path, "--json").out)["variants"]] == ["mirror1"]


@pytest.mark.usefixtures("broken")
def test_where_nothing_compiles_nothing_is_written(call: Call, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "fleet.argosy"
    assert call("compile", model, "--arch", "mirror2", "-o", path).code == 4
    assert not path.exists()


def test_files_are_written_as_they_are_ready(
    call: Call, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who ends a long build keeps what was done, whole."""
    lower = mirror.MirrorTarget.lower

    def interrupted(self: mirror.MirrorTarget, *given: Any) -> Any:
        if self.arch == "mirror2":
            assert call("verify", tmp_path / "mirror1.argosy").code == 0
            raise KeyboardInterrupt
        return lower(self, *given)

    monkeypatch.setattr(mirror.MirrorTarget, "lower", interrupted)
    answer = call("compile", model, "--arch", "mirror1,mirror2", "--separate", "-o", tmp_path / "{arch}.argosy")
    assert answer.code == 130
    assert sorted(path.name for path in tmp_path.glob("*.argosy")) == ["mirror1.argosy"]


# ------------------------------------------------------------------------------------------------------------- fleet
def test_doctor_describes_this_machine(call: Call, tmp_path: Path) -> None:
    node = tmp_path / "node.json"
    node.write_text(call("doctor", "--json").out, encoding="utf-8")
    assert read_machine(node) == this_machine()


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "does not describe a machine"), ('{"machine": {"isa": 3}}', "does not describe a machine"), (None, "read")],
)
def test_what_describes_no_machine_is_refused(call: Call, model: Path, tmp_path: Path, text: str, said: str) -> None:
    node = tmp_path / "node.json"
    if text is not None:
        node.write_text(text, encoding="utf-8")
    answer = call("compile", model, "--fleet", node)
    assert answer.code == 2
    assert said in answer.err
    assert str(node) in answer.err


def test_machines_have_names_of_their_own(call: Call, model: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    files = [*written(tmp_path / "a", node=machine()), *written(tmp_path / "b", node=machine())]
    assert "two files of --fleet are called node" in call("compile", model, "--fleet", *files).err


@pytest.mark.parametrize(
    ("name", "arch", "units", "words"),
    [
        ("NVIDIA H200", "sm_90", 132, "sm_90 (h200)"),
        ("NVIDIA H100 PCIe", "sm_90", 114, "sm_90 (num_cu=114)"),
        ("NVIDIA A100-SXM4-80GB", "sm_80", 108, "sm_80"),
        ("NVIDIA L40S", "sm_89", 142, "sm_89 (l40s)"),
        ("AMD Instinct MI300X", "gfx942", 304, "gfx942"),
        ("AMD Instinct MI300X", "gfx942", 38, "gfx942 (num_cu=38, num_chiplets=1)"),  # one of eight partitions
        ("AMD Radeon RX 7900 XTX", "gfx1100", 96, "gfx1100"),
        ("something new", "gfx1201", 64, "gfx1201"),
    ],
)
def test_a_device_is_a_target_with_its_numbers(name: str, arch: str, units: int, words: str) -> None:
    (target,) = GpuTarget.for_machine(machine(device(name, arch, units)))
    assert isinstance(target, GpuTarget)
    assert target.arch == arch
    assert target._words() == words


def test_devices_without_code_are_named(caplog: pytest.LogCaptureFixture) -> None:
    gpus = (device("RX 580", "gfx803", 36), device("MI300X", "gfx942", 304, problem="two say different things"))
    with caplog.at_level(logging.WARNING):
        assert not list(GpuTarget.for_machine(machine(*gpus)))
    first, second = (record.message for record in caplog.records)
    assert first.startswith("RX 580 gets no code: gfx803 can't be compiled for")
    assert second == "MI300X gets no code: two say different things"


def test_each_machine_is_told_what_it_runs(call: Call, model: Path, tmp_path: Path) -> None:
    files = written(tmp_path, old=machine(level="x86-64-v2"), new=machine())
    answer = call("compile", model, "--fleet", *files, "-o", tmp_path / "m.argosy", "--json")
    assert answer.code == 0
    told = json.loads(answer.out)["fleet"]
    assert {name: each["variant"] for name, each in told.items()} == {
        "old": "x86-64-v2, fp32", "new": "x86-64-v3, fp32",
    }  # fmt: skip
    assert {each["answer"] for each in told.values()} == {"optimal"}


def test_code_for_just_this_device_comes_first() -> None:
    """Of two variants of an arch, that with the device's number of units runs, in whichever order they are."""
    part, whole = (
        VariantRecord(
            str(units),
            "amd",
            "gfx942",
            f"for {units}",
            products=(f"num_cu={units}",),
            requirements=Requirements(("gfx942",)),
        )
        for units in (38, 304)
    )
    there = machine(device("AMD Instinct MI300X", "gfx942", 304))
    for order in ((part, whole), (whole, part)):
        choices = judge(order, machine=there).choices
        assert [choice.words for choice in choices] == ["for 304", "for 38", "ref"]
        assert choices[0].answer == "optimal"
        assert choices[1].reason == "it is compiled for 38 compute units, AMD Instinct MI300X has 304"


# ------------------------------------------------------------------------------------------------------------ resume
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="the package triton (extra gpu) is missing")
def test_a_build_that_was_killed_goes_on_with_what_it_had_compiled(tmp_path: Path) -> None:
    source, cache, path = tmp_path / "m.onnx", tmp_path / "cache", tmp_path / "m.argosy"
    source.write_bytes(catalog.make("bert_small").SerializeToString())
    command = [sys.executable, "-m", "argosy", "compile", str(source), "--arch", "gfx942", "--jobs", "1", "-o"]
    environment = {**os.environ, "ARGOSY_CACHE": str(cache)}  # noqa: TID251 - for another process

    def kernels() -> dict[Path, int]:
        """The entries of the cache, and their inodes: who writes one again makes a new file."""
        return {each: each.stat().st_ino for each in (cache / "kernels").rglob("*") if each.is_file()}

    with subprocess.Popen(
        [*command, str(path)], env=environment, stdout=subprocess.DEVNULL, start_new_session=True
    ) as killed:
        while killed.poll() is None and len(kernels()) < 2:
            time.sleep(0.05)
        os.killpg(killed.pid, signal.SIGKILL)
    before = kernels()
    assert before
    assert not path.exists()
    subprocess.run([*command, str(path)], env=environment, stdout=subprocess.DEVNULL, check=True)
    after = kernels()
    assert len(after) > len(before)
    assert {each: after[each] for each in before} == before
    again = tmp_path / "again.argosy"
    subprocess.run([*command, str(again)], env=environment, stdout=subprocess.DEVNULL, check=True)
    assert again.read_bytes() == path.read_bytes()
