"""Which device runs a variant, and why none does: each reason its own, against fake drivers."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.artifact.manifest import Requirements
from argosy.artifact.plan import StraightBlock
from argosy.cli.machine import describe_machine
from argosy.compiler import resolve_targets
from argosy.drivers import topology
from argosy.drivers.discovery import devices, driver_words
from argosy.errors import DeviceError
from argosy.runtime.session import Session
from argosy.targets.base import find_arch
from tests.runtime.gpu.fakes import Fake, artifact, faked, given, launch, numbers, plan, planned

RECORD = plan(
    {"x": 0}, {"y": 1}, [given("float32[8]"), planned("float32[8]")],
    [StraightBlock((launch("scale", [0], [1], [8, 2]),))],
)  # fmt: skip


@pytest.fixture
def hip() -> Iterator[Fake]:
    with faked("hip") as made:
        yield made


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a folder of the kernel's topology: versions, PCI buses, SIMDs."""
    monkeypatch.setattr(topology, "NODES", tmp_path)

    def write(*rows: tuple[int, int, int]) -> None:
        (tmp_path / "0").mkdir()
        (tmp_path / "0" / "properties").write_text("cpu_cores_count 8\ngfx_target_version 0\n")
        for number, (version, bus, simds) in enumerate(rows, 1):
            (tmp_path / str(number)).mkdir()
            text = (
                f"gfx_target_version {version}\nlocation_id {bus << 8}\ndomain 0\nsimd_count {simds}\nsimd_per_cu 2\n"
            )
            (tmp_path / str(number) / "properties").write_text(text)

    return write


def refusal(kind: str, device: str | None = None, **fields: Any) -> str:
    with pytest.raises(DeviceError) as caught:
        Session(artifact(RECORD, kind, **fields), device=device)
    return str(caught.value)


@pytest.mark.parametrize("kind", ["cuda", "hip"])
def test_no_driver(kind: str, tmp_path: Path) -> None:
    with faked(kind, str(tmp_path / "libnone.so")):
        assert "no such file" in refusal(kind).lower()


def test_a_library_that_is_no_driver_is_told(tmp_path: Path) -> None:
    with faked("hip") as fake:
        path = fake.path
    with faked("cuda", path):
        assert "it is too old" in refusal("cuda")


def test_wrong_arch_tells_both(hip: Fake) -> None:
    told = refusal("hip", arch="gfx90a")
    assert "gfx90a" in told
    assert "gfx942" in told


@pytest.mark.parametrize(("kind", "has"), [("cuda", 12080), ("hip", 60300000)])
def test_an_old_driver_is_told_with_what_is_needed(kind: str, has: int) -> None:
    with faked(kind) as fake:
        fake.library.fake_version(has)
        told = refusal(kind, requirements=Requirements(minimum_driver="12.9" if kind == "cuda" else "6.10"))
        fake.library.fake_version(0)
    assert "its driver is too old" in told
    assert ("12.8" if kind == "cuda" else "6.3") in told


def test_a_device_that_is_too_small(hip: Fake) -> None:
    assert f"the code needs {1 << 40}" in refusal("hip", requirements=Requirements(memory=1 << 40))


def test_other_compute_units_work_but_are_told(hip: Fake) -> None:
    session = Session(artifact(RECORD, "hip", products=("num_cu=304",)))
    assert "works, recompile preferred; it is compiled for 304 compute units, Fake GPU has 4" in session.why
    with pytest.raises(DeviceError, match="exact code was asked for"):
        Session(artifact(RECORD, "hip", products=("num_cu=304",)), exact=True)


def test_devices_by_index_and_by_pci_place(hip: Fake) -> None:
    hip.device(1, "gfx942", "0000:06:00.0")
    x = numbers(8)
    for device in ("hip", "hip:0", "hip:1", "hip:0000:06:00.0"):
        assert (Session(artifact(RECORD, "hip"), device=device).run({"x": x})["y"] == 2 * x).all()
    told = refusal("hip", device="hip:2")
    assert "hip:1 at 0000:06:00.0" in told


def test_topology_is_matched_by_place_whatever_the_order(hip: Fake, nodes: Any) -> None:
    hip.device(0, "gfx1201", "0000:06:00.0", units=32, wave=32)
    hip.device(1, "gfx942", "0000:03:00.0", units=304)
    nodes((90402, 3, 608), (120001, 6, 128))
    first, second = devices()
    assert (first.arch, first.units, first.problem) == ("gfx1201", 64, "")
    assert (second.arch, second.units, second.problem) == ("gfx942", 304, "")


def test_hip_and_the_topology_must_agree(hip: Fake, nodes: Any) -> None:
    nodes((90010, 1, 208))
    assert "HIP calls it gfx942, the kernel's topology gfx90a" in refusal("hip")


def test_without_a_topology_pairs_of_units_are_counted_as_two(hip: Fake) -> None:
    hip.device(0, "gfx1100", "0000:01:00.0", units=48, wave=32)
    assert devices()[0].units == 96


def test_doctor_lists_drivers_and_devices(hip: Fake) -> None:
    told = describe_machine()
    assert hip.path in told["drivers"]["AMD"]
    assert told["gpus"]["hip:0"].startswith("Fake GPU, gfx942, 4 compute units, 64 MiB, at 0000:01:00.0")


def test_driver_versions_in_words() -> None:
    assert driver_words("cuda", 13000) == "13.0"
    assert driver_words("cuda", 12090) == "12.9"
    assert driver_words("hip", 70125424) == "7.1"


def test_native_means_every_gpu_that_the_drivers_report(hip: Fake, caplog: pytest.LogCaptureFixture) -> None:
    for index, arch in enumerate(("gfx1100", "gfx942", "gfx1100", "gfx803")):
        hip.device(index, arch, f"0000:0{index}:00.0")
    meant = [target.arch for target in resolve_targets(["native"])]
    assert meant[:2] == ["gfx1100", "gfx942"]
    assert len(meant) == 3
    assert meant[2] == find_arch("cpu").arch
    (told,) = (record.message for record in caplog.records)
    assert told.startswith("Fake 3 gets no code: gfx803 can't be compiled for")


def test_native_leaves_out_what_the_compiler_is_not_installed_for(
    hip: Fake, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    hip.device(0, "gfx942", "0000:01:00.0")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert [target.arch for target in resolve_targets(["native"])] == ["ref"]
    gpu, cpu = (record.message for record in caplog.records)
    assert "triton (extra gpu)" in gpu
    assert "ziglang (extra cpu)" in cpu
