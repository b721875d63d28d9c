"""Static indexes: the pages as a parser of HTML and pip itself read them, and what is refused."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

import pytest

from argosy.errors import ArtifactError, EnvironmentError_, UsageError
from argosy.options import plain_environment
from argosy.packaging.build import build_index
from argosy.packaging.index import open_index
from argosy.packaging.note import NOTE_ENCODER, Note
from tests.packaging.releases import ARCHS, index, wheels


class Anchors(HTMLParser):
    """The links of a page: attributes and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[dict[str, str | None], str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found.append((dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        if self.found and not self.found[-1][1]:
            self.found[-1] = (self.found[-1][0], data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("dist")
    index(found)
    return found


def projects(folder: Path, name: str) -> list[str]:
    found = Anchors((folder / "simple" / name / "index.html").read_text()).found
    assert [attributes["href"] for attributes, _ in found] == [f"{text}/" for _, text in found]
    told = json.loads((folder / "simple" / name / "index.json").read_text())
    assert [project["name"] for project in told["projects"]] == [text for _, text in found]
    return [text for _, text in found]


def test_an_arch_sees_the_model_and_its_own_code(folder: Path) -> None:
    assert {path.name for path in (folder / "simple").iterdir()} == {"all", *ARCHS}
    devices = {arch: f"net-device-{arch.replace('_', '-')}" for arch in ARCHS}
    for arch, project in devices.items():
        assert projects(folder, arch) == ["net", project]
    assert projects(folder, "all") == ["net", *sorted(devices.values())]


def test_every_link_has_the_hash_of_its_wheel_in_both_forms(folder: Path) -> None:
    for page in folder.glob("simple/*/*/index.html"):
        told = json.loads(page.with_name("index.json").read_text())
        assert told["meta"] == {"api-version": "1.1"}
        assert told["name"] == page.parent.name
        found = Anchors(page.read_text()).found
        assert len(found) == len(told["files"]) == 1
        for (attributes, text), file in zip(found, told["files"], strict=True):
            address, fragment = urldefrag(attributes["href"] or "")
            wheel = page.parent / unquote(address)
            digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
            assert wheel.name == text == file["filename"]
            assert fragment == f"sha256={digest}"
            assert file["hashes"] == {"sha256": digest}
            assert (file["url"], file["size"]) == (address, wheel.stat().st_size)
            assert attributes["data-requires-python"] == file["requires-python"] == ">=3.11"
            assert file["filename"].split("-")[1] in told["versions"]


def pip(*words: str) -> subprocess.CompletedProcess[str]:
    """What pip would install, from the index that is given alone; nothing is installed."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-cache-dir", "--ignore-installed", *words]
    environment = {"PIP_CONFIG_FILE": "/dev/null"}
    kept = {name: value for name, value in plain_environment().items() if not name.startswith("PIP_")}
    return subprocess.run(command, env={**kept, **environment}, capture_output=True, text=True, check=False)


def test_pip_takes_the_code_that_is_asked_for_and_fails_where_there_is_none(folder: Path, tmp_path: Path) -> None:
    """What `docs/deploy.md` and this design rest on, as pip does it."""
    shutil.copytree(folder, tmp_path / "dist")
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    made = build_index(tmp_path / "dist", tmp_path / "dist", also=[empty_wheel(runtime, "argosy", "0.1.0")])
    (release,) = made.releases
    base = (tmp_path / "dist" / "simple").as_uri()
    report = tmp_path / "report.json"
    done = pip("--report", str(report), "--index-url", f"{base}/gfx942/", release.requirement("gfx942"))
    assert done.returncode == 0, done.stderr
    installed = {one["metadata"]["name"]: one for one in json.loads(report.read_text())["install"]}
    assert set(installed) == {"argosy", "net", "net-device-gfx942"}
    for one in installed.values():
        (wheel,) = [wheel for wheel in made.wheels if wheel.file == Path(unquote(one["download_info"]["url"])).name]
        assert one["download_info"]["archive_info"]["hashes"] == {"sha256": wheel.sha256}
    for index_name, arch in (("gfx942", "sm_90"), ("all", "gfx1201"), ("all", "gfx1030")):
        done = pip("--index-url", f"{base}/{index_name}/", release.requirement(arch))
        assert done.returncode == 1
        assert (
            f"No matching distribution found for net-device-{arch.replace('_', '-')}=={release.version}" in done.stderr
        )
    # An extra that a package does not have is a warning: so every known arch needs one.
    done = pip("--index-url", f"{base}/all/", f"net[device-unheard-of]=={release.version}")
    assert done.returncode == 0
    assert "does not provide the extra 'device-unheard-of'" in done.stderr


def empty_wheel(folder: Path, name: str, version: str, more: str = "") -> Path:
    """A wheel without any content, as another tool might have made it."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\n{more}")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def test_wheels_elsewhere_are_linked_by_release(tmp_path: Path) -> None:
    index(tmp_path, wheel_url="https://files.example/v1/")
    page = (tmp_path / "simple" / "all" / "net-device-sm-90" / "index.html").read_text()
    ((attributes, text),) = Anchors(page).found
    address = urldefrag(attributes["href"] or "")[0]
    assert unquote(address) == f"https://files.example/v1/sm_90/{text}"
    assert "+" not in address
    page = (tmp_path / "simple" / "sm_90" / "net" / "index.html").read_text()
    ((attributes, _),) = Anchors(page).found
    assert urljoin("x", attributes["href"] or "").startswith("https://files.example/v1/common/net-1.2")


def test_an_index_elsewhere_holds_the_wheels_too_and_is_the_same(tmp_path: Path) -> None:
    index(tmp_path / "dist")
    build_index(tmp_path / "dist", tmp_path / "served")
    trees = [
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (tmp_path / "dist", tmp_path / "served")
    ]
    assert trees[0] == trees[1]


def test_an_index_is_built_anew(tmp_path: Path) -> None:
    index(tmp_path)
    for wheel in tmp_path.glob("*.whl"):
        wheel.unlink()
    wheels(tmp_path, name="other")
    build_index(tmp_path, tmp_path)
    assert projects(tmp_path, "sm_90") == ["other", "other-device-sm-90"]
    assert {release.package for release in open_index(tmp_path).releases} == {"other"}


def refusal(expected: type[Exception], folder: Path, **options: Any) -> str:
    with pytest.raises(expected) as found:
        build_index(folder, folder, **options)
    assert not (folder / "argosy-index.json").exists()
    return str(found.value)


def test_what_no_index_can_be_made_of_is_refused(tmp_path: Path) -> None:
    assert "there is no such folder" in refusal(UsageError, tmp_path / "nothing")
    assert "there are no wheels in this folder\n  argosy package writes them" in refusal(UsageError, tmp_path)
    empty_wheel(tmp_path, "numpy", "2.2")
    assert "there is no wheel of a model in this folder" in refusal(UsageError, tmp_path)
    (tmp_path / "broken-1-py3-none-any.whl").write_bytes(b"PK")
    assert "broken-1-py3-none-any.whl: this is no wheel that can be read" in refusal(ArtifactError, tmp_path)


def test_releases_must_be_whole(tmp_path: Path) -> None:
    made = wheels(tmp_path)
    made["net-device-sm-90"].path.rename(tmp_path / "away")
    version = made["net"].note.version
    assert f"wheels are missing: net-device-sm-90 {version}\n  keep the wheels" in refusal(ArtifactError, tmp_path)
    (tmp_path / "away").rename(made["net-device-sm-90"].path)
    other = wheels(tmp_path / "other", version="1.3")
    shutil.copy(other["net-device-gfx942"].path, tmp_path)
    assert f"wheels are missing: net {other['net'].note.version}" in refusal(ArtifactError, tmp_path)


def test_renamed_wheels_and_two_of_one_name_are_refused(tmp_path: Path) -> None:
    made = wheels(tmp_path / "dist")
    other = wheels(tmp_path / "other", version="1.3")
    (tmp_path / "also").mkdir()
    shutil.copy(other["net"].path, tmp_path / "also" / made["net"].path.name)
    told = refusal(ArtifactError, tmp_path / "dist", also=[tmp_path / "also"])
    assert f"its name does not fit what it holds: net {other['net'].note.version}\n  don't rename wheels" in told
    empty_wheel(tmp_path / "dist", "argosy", "0.1.0")
    changed = empty_wheel(tmp_path, "argosy", "0.1.0", more="changed")
    told = refusal(ArtifactError, tmp_path / "dist", also=[changed])
    assert "dist/argosy-0.1.0-py3-none-any.whl is another wheel of the same name" in told


def test_names_that_would_leave_the_folder_are_refused(tmp_path: Path) -> None:
    path = empty_wheel(tmp_path, "net", "1.2")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net-1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: /../net\nVersion: 1.2\n")
    assert "'/-/net' is no name for a package" in refusal(ArtifactError, tmp_path)
    for arch, words in (("../x", "no package can be named after the arch '../x'"), ("gfx1", "does not fit the arch")):
        note = NOTE_ENCODER.encode(Note("net", "1.2", "device", (arch,)))
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("net-1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: net\nVersion: 1.2\n")
            archive.writestr("net-1.2.dist-info/argosy.json", note)
        assert words in refusal(ArtifactError, tmp_path)


def test_a_folder_that_is_no_index_is_not_replaced(tmp_path: Path) -> None:
    wheels(tmp_path)
    (tmp_path / "simple").mkdir()
    assert "there is a folder of this name that is no index of ours" in refusal(EnvironmentError_, tmp_path)


def test_an_index_is_opened_only_as_it_was_built(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no index in this folder\n  argosy index build"):
        open_index(tmp_path)
    made = index(tmp_path)
    assert open_index(tmp_path) == made
    with pytest.raises(UsageError, match="the index has no arch 'gfx940'\n  did you mean 'gfx942'"):
        made.find("gfx940")
    description = (tmp_path / "argosy-index.json").read_text()
    empty_wheel(tmp_path, "argosy", "0.1.0")
    with pytest.raises(
        ArtifactError, match="the wheels are not those that it lists: argosy-0.1.0-py3-none-any.whl\n  build"
    ):
        open_index(tmp_path)
    (tmp_path / "argosy-0.1.0-py3-none-any.whl").unlink()
    (tmp_path / "argosy-index.json").write_text(description.replace('"gfx942"', '"../gfx"'))
    with pytest.raises(ArtifactError, match="the wheels are not those that it lists: net_device_gfx942"):
        open_index(tmp_path)
    (tmp_path / "argosy-index.json").write_text(description.replace('"package": "net"', '"package": "nut"'))
    with pytest.raises(ArtifactError, match="it is not the description of the wheels in the folder"):
        open_index(tmp_path)
    (tmp_path / "argosy-index.json").write_text(description)
    wheel = tmp_path / made.wheels[0].file
    content = wheel.read_bytes()
    wheel.write_bytes(content.replace(b"weights", b"weighty"))
    with pytest.raises(ArtifactError, match=r"the wheels are not those that it lists: net-1\.2"):
        open_index(tmp_path)
    wheel.unlink()
    with pytest.raises(ArtifactError, match=r"wheels are missing: net 1\.2"):
        open_index(tmp_path)
    (tmp_path / "argosy-index.json").write_text("{}")
    with pytest.raises(ArtifactError, match="argosy-index.json: it is damaged"):
        open_index(tmp_path)
