"""Which variant a machine runs: an answer and a reason for each, decided by features alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import argosy
from argosy import host_cpu
from argosy.artifact.manifest import Requirements, VariantRecord
from argosy.artifact.plan import BufferRecord
from argosy.errors import DeviceError
from argosy.runtime.selection import Selection, judge
from argosy.targets.cpu.arch import ARCHS, CpuArch, find_cpu, native
from tests.runtime.kernels import artifact, call, plan, planned, straight

LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "znver4", "sapphirerapids", "neoverse-n1", "neoverse-v2")


def variant(level: CpuArch, **fields: Any) -> VariantRecord:
    common: dict[str, Any] = {
        "arch": level.name,
        "words": level.name,
        "system": level.system,
        "requirements": level.requirements(),
    }
    return VariantRecord(key=level.name, family=level.family, **(common | fields))


def row(name: str) -> CpuArch:
    found = find_cpu(name)
    assert found is not None
    return found


def pretend(monkeypatch: pytest.MonkeyPatch, name: str, system: str = "linux") -> None:
    """Be a machine that has just what a level asks for."""
    arch = row(name)
    monkeypatch.setattr(host_cpu, "isa", lambda: arch.isa)
    monkeypatch.setattr(host_cpu, "system", lambda: system)
    monkeypatch.setattr(host_cpu, "cpu_features", lambda: arch.features)


def judged(*names: str, **options: Any) -> Selection:
    return judge([variant(row(name)) for name in names], **options)


@pytest.mark.parametrize(
    ("machine", "order"),
    [
        ("x86-64-v2", ["x86-64-v2", "ref"]),
        ("x86-64-v3", ["x86-64-v3", "x86-64-v2", "ref"]),
        ("znver4", ["znver4", "x86-64-v4", "x86-64-v3", "x86-64-v2", "ref"]),
        ("sapphirerapids", ["sapphirerapids", "x86-64-v4", "x86-64-v3", "x86-64-v2", "ref"]),
        ("neoverse-v2", ["neoverse-v2", "neoverse-n1", "ref"]),
        ("apple-m1", ["neoverse-n1", "ref"]),  # which has nothing that makes a kernel faster
    ],
)
def test_the_highest_level_that_fits_runs(monkeypatch: pytest.MonkeyPatch, machine: str, order: list[str]) -> None:
    pretend(monkeypatch, machine)
    selection = judged(*LEVELS)
    assert [choice.words for choice in selection.fitting] == order
    assert selection.fitting[0].answer == "optimal"
    assert {choice.answer for choice in selection.fitting[1:]} == {"works, recompile preferred"}
    assert len(selection.choices) == len(LEVELS) + 1


def test_every_refusal_has_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "x86-64-v3")
    reasons = {choice.words: choice.reason for choice in judged(*LEVELS, "x86-64-v3-windows").choices}
    assert reasons["x86-64-v4"] == "this CPU lacks avx512bw, avx512cd, avx512dq, avx512f and 1 more"
    assert reasons["neoverse-n1"] == "its instruction set is aarch64, this CPU's x86_64"
    assert reasons["x86-64-v3-windows"] == "it is for windows, this is linux"
    assert reasons["x86-64-v2"] == "this CPU can also do avx, avx2, fma, f16c"
    assert reasons["x86-64-v3"] == "it uses what this CPU can do"


def test_exact_refuses_lower_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "znver4")
    assert [choice.words for choice in judged("x86-64-v3", "znver4", exact=True).fitting] == ["znver4", "ref"]
    assert [choice.words for choice in judged("x86-64-v3", exact=True).fitting] == ["ref"]


def test_devices_and_native_code(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "znver4")
    assert [choice.words for choice in judged("znver4", device="cpu").fitting] == ["znver4"]
    assert [choice.words for choice in judged("znver4", device="ref").fitting] == ["ref"]
    assert [choice.words for choice in judged("znver4", native_code=False).fitting] == ["ref"]
    assert [choice.words for choice in judged("znver4", device="cuda:1").fitting] == []
    with pytest.raises(DeviceError, match="no device 'tpu:1'"):
        judged("znver4", device="tpu:1")


def test_special_sizes_come_before_general_ones_of_a_level(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "znver4")
    rows = [
        variant(row("x86-64-v4"), dims={"N": 4}),
        variant(row("znver4")),
        variant(row("znver4"), dims={"N": 4}),
    ]
    found = [(choice.words, bool(choice.variant and choice.variant.dims)) for choice in judge(rows).fitting]
    assert found == [("znver4", True), ("znver4", False), ("x86-64-v4", True), ("ref", False)]


def test_a_system_that_tells_nothing_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "x86-64-v2")
    monkeypatch.setattr(host_cpu, "cpu_features", frozenset)
    (first, _) = judged("x86-64-v2").choices[::-1]
    assert first.reason == "linux doesn't tell what this CPU can do"


def test_names_decide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "x86-64-v3")
    strange = variant(row("x86-64-v3"), arch="level-of-tomorrow", words="tomorrow")
    assert judge([strange]).fitting[0].words == "tomorrow"
    asks = variant(row("x86-64-v3"), requirements=Requirements(features=("avx99",)))
    assert "lacks avx99" in judge([asks]).choices[-1].reason


def test_an_artifact_for_this_cpu_runs_and_one_for_another_does_not() -> None:
    record = plan(
        {"x": 0}, {"y": 1}, [BufferRecord("input", "float32[4]"), planned("float32[4]")],
        straight(call("scale", (0,), (1,), (4, 2), scratch=64)),
    )  # fmt: skip
    session = argosy.Session(artifact(record))
    assert session.variant == f"{native().name}, fp32"
    x = np.arange(4, dtype=np.float32)
    assert session.run({"x": x})["y"].tolist() == [0, 2, 4, 6]
    other = next(arch for arch in ARCHS.values() if arch.isa != native().isa)
    with pytest.raises(DeviceError, match="no variant runs here(.|\n)*its instruction set is"):
        argosy.Session(artifact(record, family=other.family, requirements=other.requirements()))
