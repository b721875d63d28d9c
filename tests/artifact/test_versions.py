"""Schema versions: which are read, and what a newer minor may add."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from argosy.artifact import manifest_check
from argosy.artifact.container import Container
from argosy.artifact.manifest import SchemaVersion
from argosy.artifact.manifest_check import read_manifest
from argosy.errors import ArtifactError
from tests.artifact import samples


def manifest(**changed: Any) -> bytes:
    tree = msgspec.json.decode(Container(samples.artifact()).read("manifest.json", 1 << 20))
    return msgspec.json.encode(tree | changed, order="sorted")


def read(major: int, minor: int, **changed: Any) -> None:
    read_manifest(manifest(schema={"major": major, "minor": minor}, **changed), where="a.argosy")


@pytest.mark.parametrize(
    ("ours", "oldest", "found", "readable"),
    [
        ((0, 3), 2, (0, 3), True),
        ((0, 3), 2, (0, 2), True),
        ((0, 3), 2, (0, 1), False),  # broken since
        ((0, 3), 2, (0, 4), False),  # under major 0 a newer minor may break
        ((0, 3), 2, (1, 3), False),
        ((1, 3), 0, (1, 0), True),  # for ever
        ((1, 3), 0, (1, 9), True),
        ((1, 3), 0, (0, 9), False),
        ((1, 3), 0, (2, 0), False),
        ((1, 3), 0, (1, -1), False),
    ],
)
def test_which_versions_are_read(
    monkeypatch: pytest.MonkeyPatch, ours: tuple[int, int], oldest: int, found: tuple[int, int], readable: bool
) -> None:
    monkeypatch.setattr(manifest_check, "SCHEMA", SchemaVersion(*ours))
    monkeypatch.setattr(manifest_check, "OLDEST_MINOR", oldest)
    if readable:
        read(*found)
    else:
        with pytest.raises(ArtifactError, match=f"its schema version is {found[0]}.{found[1]}"):
            read(*found)


def test_fields_of_a_newer_minor_are_skipped_and_its_features_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_check, "SCHEMA", SchemaVersion(1, 3))
    monkeypatch.setattr(manifest_check, "OLDEST_MINOR", 0)
    read(1, 4, novelty={"a": 1})
    with pytest.raises(ArtifactError, match=r"'\.novelty' is unknown"):
        read(1, 3, novelty={"a": 1})
    with pytest.raises(ArtifactError, match="features that this version does not know: 'teleport'"):
        read(1, 4, features=["teleport"])
