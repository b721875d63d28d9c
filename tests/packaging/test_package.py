"""Parts that are too large, and what can't be packaged."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from argosy.artifact import container_writer
from argosy.artifact.artifact import Artifact
from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.manifest import PROGRAM_ENTRY, artifact_hash
from argosy.artifact.program import PROGRAM
from argosy.errors import ArtifactError, EnvironmentError_
from tests.artifact import samples
from tests.packaging.releases import files, fleet, metadata, slim, wheels

MANY = {f"w{number}": np.full((64, 64), number, np.float32) for number in range(12)}
SLACK = 90_000
"""What a wheel takes beside weights."""


def test_weights_that_are_too_large_for_a_wheel_are_shared_by_hash(tmp_path: Path) -> None:
    artifact = fleet(weights=MANY)
    limit = SLACK + 5 * (16384 + 4096)
    made = wheels(tmp_path, artifact, limit=limit)
    shares = [project for project in made if project.startswith("net-weights-")]
    assert len(shares) == 3
    assert all(wheel.size <= limit for wheel in made.values())
    embedded = []
    for number, project in enumerate(shares, 1):
        part = ArtifactFile.open(files(made[project].path)[f"net/weights/{number}.argosy"])
        part.verify()
        embedded += [digest for digest, one in part.manifest.weights.items() if one.storage == "embedded"]
    assert embedded == sorted(artifact.manifest.weights)
    needed = [str(line) for line in metadata(made["net"].path).get_all("Requires-Dist") or []]
    assert [line for line in needed if line.startswith("net-weights-")] == [
        f"{project}=={made['net'].note.version}" for project in shares
    ]


def test_shares_give_the_same_weights_as_one_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = fleet(weights=MANY)
    made = wheels(tmp_path / "dist", artifact, name="net_in_shares", limit=SLACK + 5 * (16384 + 4096))
    for wheel in made.values():
        for name, content in files(wheel.path).items():
            (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "site" / name).write_bytes(content)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    try:
        joined = importlib.import_module("net_in_shares").artifact()
    finally:
        sys.modules.pop("net_in_shares", None)
    assert joined.variants == artifact.variants
    for array in MANY.values():
        assert joined.literal(samples.ref(array)).array().tobytes() == array.tobytes()


def test_a_weight_that_no_wheel_can_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ArtifactError, match=r"the weight [0-9a-f]{16} \(float32\[64, 64\]\) has 16384 bytes, and a wheel"
    ):
        wheels(tmp_path, fleet(weights=MANY), limit=SLACK)
    assert list(tmp_path.iterdir()) == []


def test_code_that_no_wheel_can_hold_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    code = {f"code/{number}.so": bytes(20_000) + np.random.default_rng(number).bytes(20_000) for number in range(20)}
    manifest, contents = samples.parts(samples.variant("gfx942"))
    folder = next(name for name in contents if name.startswith("variants/")).rpartition("/")[0].removesuffix("/code")
    contents |= {f"{folder}/{name}": raw for name, raw in code.items()}
    with pytest.raises(
        ArtifactError, match=r"the wheel net_device_gfx942-.* has \d+ bytes, at most 200000 are accepted"
    ):
        wheels(tmp_path, Artifact.open(samples.written(manifest, contents)), limit=200_000)
    assert list(tmp_path.iterdir()) == []


def test_equal_content_that_is_packed_otherwise_is_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As two zlibs may pack: the wheels have other bytes, so they must not be taken for each other."""
    first = fleet()
    monkeypatch.setattr(container_writer, "_LEVEL", 1)
    second = fleet()
    assert artifact_hash(first.manifest) == artifact_hash(second.manifest)
    versions = {one["net"].note.version for one in (wheels(tmp_path / "a", first), wheels(tmp_path / "b", second))}
    assert len(versions) == 2


def test_a_slim_artifact_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="it is slim: wheels need the program\n  compile it without --slim"):
        wheels(tmp_path, slim())


def test_a_weight_that_only_code_uses_lies_with_the_code(tmp_path: Path) -> None:
    only, shared = {"table": np.arange(99, dtype=np.float32)}, {"w": np.ones((8, 8), np.float32)}
    manifest, contents = samples.parts(samples.variant("gfx942"), samples.variant("sm_90"), weights=only | shared)
    contents[PROGRAM_ENTRY] = PROGRAM.to_msgpack(samples.program(shared))
    made = wheels(tmp_path, Artifact.open(samples.written(manifest, contents)))
    where = {
        name: {digest for digest, one in ArtifactFile.open(raw).manifest.weights.items() if one.storage == "embedded"}
        for wheel in made.values()
        for name, raw in files(wheel.path).items()
        if name.endswith(".argosy")
    }
    table, weight = (samples.sha256(next(iter(arrays.values()))) for arrays in (only, shared))
    assert where == {
        "net/model.argosy": {weight},
        "net/devices/gfx942.argosy": {table},
        "net/devices/sm_90.argosy": {table},
    }


def test_weights_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="is omitted and not in the weights supplied"):
        wheels(tmp_path, fleet(storage="omitted"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("archs", "words"),
    [
        (["../up"], "no package can be named after the arch '../up'"),
        (["all"], "no package can be named after the arch 'all'"),
        (["sm_90", "sm-90"], "the archs 'sm-90' and 'sm_90' have one name as extras"),
    ],
)
def test_archs_that_no_package_can_be_named_after_are_refused(tmp_path: Path, archs: list[str], words: str) -> None:
    artifact = Artifact.open(samples.artifact(*map(samples.variant, archs)))
    with pytest.raises(ArtifactError, match=re.escape(words)):
        wheels(tmp_path, artifact)
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dist").write_text("")
    with pytest.raises(EnvironmentError_, match="can't make the folder: File exists"):
        wheels(tmp_path / "dist")
