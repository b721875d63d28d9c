"""Wheels, read by the `packaging` library, pip's rules for tags, and the standards' rules for RECORD."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import zipfile
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.tags import Tag, sys_tags
from packaging.utils import parse_wheel_filename

from argosy import __version__
from argosy.artifact.artifact_file import ArtifactFile
from argosy.packaging.package import Packaged
from argosy.targets.base import known_archs
from tests.packaging.releases import ARCHS, files, wheels


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Packaged]:
    return wheels(tmp_path_factory.mktemp("dist"))


def info(path: Path, name: str) -> bytes:
    return next(raw for file, raw in files(path).items() if file.endswith(f".dist-info/{name}"))


def test_there_is_a_wheel_for_the_model_and_one_for_each_arch(made: dict[str, Packaged]) -> None:
    assert sorted(made) == ["net", "net-device-gfx942", "net-device-sm-90", "net-device-x86-64-v3"]
    assert {wheel.path.parent for wheel in made.values()} == {made["net"].path.parent}
    assert sorted(made["net"].path.parent.iterdir()) == sorted(wheel.path for wheel in made.values())


def test_names_and_metadata_are_valid_and_agree(made: dict[str, Packaged]) -> None:
    versions = set()
    for project, wheel in made.items():
        name, version, build, tags = parse_wheel_filename(wheel.path.name)
        found = Metadata.from_email(info(wheel.path, "METADATA"), validate=True)
        assert (name, build) == (project, ())
        assert found.name == project
        assert found.version == version
        assert found.requires_python is not None
        assert "3.11" in found.requires_python
        lines = info(wheel.path, "WHEEL").decode().splitlines()
        assert {Tag(*line.removeprefix("Tag: ").split("-")) for line in lines if line.startswith("Tag: ")} == tags
        assert "Root-Is-Purelib: true" in lines
        versions.add(version)
    (version,) = versions
    assert version.public == "1.2"
    assert version.local is not None
    assert version.local.startswith("argosy.")


def test_only_code_for_a_cpu_has_a_platform(made: dict[str, Packaged]) -> None:
    tags = {project: {str(tag) for tag in parse_wheel_filename(wheel.path.name)[3]} for project, wheel in made.items()}
    assert tags.pop("net-device-x86-64-v3") == {"py3-none-manylinux_2_17_x86_64", "py3-none-musllinux_1_1_x86_64"}
    assert list(tags.values()) == [{"py3-none-any"}] * 3
    assert Tag("py3", "none", "any") in set(sys_tags())


def test_record_names_every_file_with_its_hash(made: dict[str, Packaged]) -> None:
    for wheel in made.values():
        found = files(wheel.path)
        rows = list(csv.reader(io.StringIO(info(wheel.path, "RECORD").decode())))
        assert [row[0] for row in rows] == list(found)
        assert rows[-1][0].endswith(".dist-info/RECORD")
        assert rows[-1][1:] == ["", ""]
        for name, digest, size in rows[:-1]:
            expected = base64.urlsafe_b64encode(hashlib.sha256(found[name]).digest()).rstrip(b"=").decode()
            assert (digest, size) == (f"sha256={expected}", str(len(found[name])))


def test_every_known_arch_has_an_extra_that_is_pinned(made: dict[str, Packaged]) -> None:
    found = Metadata.from_email(info(made["net"].path, "METADATA"), validate=True)
    known = {info.name for info in known_archs() if info.name != "ref"}
    assert {f"device-{name.replace('_', '-')}" for name in known} == set(found.provides_extra or ())
    assert len(known) > 60
    assert {"gfx1030", "sm_50"} <= known  # what is known and not built for must fail as well
    requirements = found.requires_dist or []
    for extra in found.provides_extra or ():
        (asked,) = [one for one in requirements if one.marker and one.marker.evaluate({"extra": extra})]
        assert asked.name == f"net-{extra}"
        assert str(asked.specifier) == f"=={found.version}"
        assert asked.marker == Marker(f'extra == "{extra}"')
    (runtime,) = [one for one in requirements if not one.marker]
    assert runtime.name == "argosy"
    assert __version__ in runtime.specifier


def test_a_device_wheel_names_its_arch_in_name_metadata_and_content(made: dict[str, Packaged]) -> None:
    for arch in ARCHS:
        project = f"net-device-{arch.replace('_', '-')}"
        path = made[project].path
        found = Metadata.from_email(info(path, "METADATA"), validate=True)
        assert arch in (found.keywords or [])
        assert arch in (found.summary or "")
        assert [str(one) for one in found.requires_dist or []] == [str(Requirement(f"net=={found.version}"))]
        part = ArtifactFile.open(files(path)[f"net/devices/{arch}.argosy"])
        assert [variant.arch for variant in part.manifest.variants] == [arch]
        part.verify()


def test_weights_are_in_the_model_alone(made: dict[str, Packaged]) -> None:
    model = ArtifactFile.open(files(made["net"].path)["net/model.argosy"])
    assert model.manifest.variants == ()
    assert {weight.storage for weight in model.manifest.weights.values()} == {"embedded"}
    part = ArtifactFile.open(files(made["net-device-gfx942"].path)["net/devices/gfx942.argosy"])
    assert {weight.storage for weight in part.manifest.weights.values()} == {"omitted"}
    assert part.manifest.model == model.manifest.model


def test_bytes_are_the_same_in_every_folder_and_nothing_in_them_is_of_the_moment(
    made: dict[str, Packaged], tmp_path: Path
) -> None:
    again = wheels(tmp_path / "elsewhere")
    assert {project: wheel.path.name for project, wheel in made.items()} == {p: w.path.name for p, w in again.items()}
    for project, wheel in made.items():
        assert wheel.path.read_bytes() == again[project].path.read_bytes()
        with zipfile.ZipFile(wheel.path) as archive:
            assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
            assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}
            assert {entry.external_attr >> 16 for entry in archive.infolist()} == {0o100644}
            assert archive.testzip() is None


def test_another_content_is_another_version(made: dict[str, Packaged], tmp_path: Path) -> None:
    versions = {wheel.note.version for wheel in wheels(tmp_path / "other", version="1.3").values()}
    versions |= {wheel.note.version for wheel in wheels(tmp_path / "named", name="other").values()}
    versions |= {wheel.note.version for wheel in made.values()}
    assert len(versions) == len({version.partition("+")[2] for version in versions}) == 3
