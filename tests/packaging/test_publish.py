"""What is laid out to be uploaded: everything that pages link to, within the limits of hosts."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from argosy.errors import ArtifactError, UsageError
from argosy.packaging.publish import publish_index
from tests.packaging.releases import ARCHS, index

LINK = re.compile(r'href="([^"#]+\.whl)#sha256=([0-9a-f]{64})"')


def written(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_everything_is_laid_out_and_told(tmp_path: Path) -> None:
    made = index(tmp_path / "dist")
    uploads = publish_index(made, tmp_path / "dist", tmp_path / "out")
    assert written(tmp_path / "out") == {upload.path for upload in uploads} | {"upload.json"}
    releases = {path.parent.name for path in (tmp_path / "out" / "releases").rglob("*.whl")}
    assert releases == {"common", *ARCHS}
    told = json.loads((tmp_path / "out" / "upload.json").read_text())
    assert told["schema"] == 1
    assert [file["path"] for file in told["files"]] == sorted(upload.path for upload in uploads)
    for file in told["files"]:
        content = (tmp_path / "out" / file["path"]).read_bytes()
        assert (file["sha256"], file["size"]) == (hashlib.sha256(content).hexdigest(), len(content))


def test_pages_reach_the_releases_beside_them(tmp_path: Path) -> None:
    publish_index(index(tmp_path / "dist"), tmp_path / "dist", tmp_path / "out")
    links = 0
    for page in (tmp_path / "out" / "pages").rglob("index.html"):
        for address, digest in LINK.findall(page.read_text()):
            content = (page.parent / unquote(address)).read_bytes()
            assert hashlib.sha256(content).hexdigest() == digest
            links += 1
    assert links == 4 + 3 * 2


def test_addresses_are_told_where_they_are_known(tmp_path: Path) -> None:
    made = index(tmp_path / "dist", wheel_url="https://files.example", pages_url="https://pages.example/argosy/")
    uploads = {upload.path: upload.url for upload in publish_index(made, tmp_path / "dist", tmp_path / "out")}
    assert uploads["pages/simple/sm_90/net/index.html"] == "https://pages.example/argosy/simple/sm_90/net/index.html"
    (wheel,) = [wheel for wheel in made.wheels if wheel.arch == "sm_90"]
    assert unquote(uploads[f"releases/sm_90/{wheel.file}"]) == f"https://files.example/sm_90/{wheel.file}"
    page = (tmp_path / "out" / "pages" / "simple" / "sm_90" / "net-device-sm-90" / "index.html").read_text()
    assert uploads[f"releases/sm_90/{wheel.file}"] in page


def test_one_arch_takes_what_it_needs(tmp_path: Path) -> None:
    made = index(tmp_path / "dist")
    publish_index(made, tmp_path / "dist", tmp_path / "out", arch="gfx942")
    folders = {"/".join(path.split("/")[:3]) for path in written(tmp_path / "out") if path.startswith("pages")}
    assert folders == {"pages/simple/gfx942"}
    assert {path.split("/")[1] for path in written(tmp_path / "out") if path.startswith("rel")} == {"common", "gfx942"}
    with pytest.raises(UsageError, match="the index has no arch 'gfx1201'\n  "):
        publish_index(made, tmp_path / "dist", tmp_path / "out", arch="gfx1201")


def test_a_dry_run_writes_nothing_and_tells_the_same(tmp_path: Path) -> None:
    made = index(tmp_path / "dist")
    dry = publish_index(made, tmp_path / "dist", tmp_path / "out", dry_run=True)
    assert not (tmp_path / "out").exists()
    assert dry == publish_index(made, tmp_path / "dist", tmp_path / "out")


def test_what_hosts_do_not_take_is_refused_with_every_file_named(tmp_path: Path) -> None:
    made = index(tmp_path / "dist")
    largest = sorted(wheel.size for wheel in made.wheels)[-2:]
    with pytest.raises(ArtifactError) as found:
        publish_index(made, tmp_path / "dist", tmp_path / "out", limits={"releases": largest[0] - 1})
    told = str(found.value)
    assert "files are too large to be uploaded:" in told
    assert len(re.findall(rf"  - releases/\S+ has \d+ bytes, at most {largest[0] - 1} are accepted", told)) == 2
    with pytest.raises(ArtifactError, match=r"  - pages/simple/all/index.html has \d+ bytes, at most 100 are accepted"):
        publish_index(made, tmp_path / "dist", tmp_path / "out", limits={"pages": 100})
    assert not (tmp_path / "out").exists()
