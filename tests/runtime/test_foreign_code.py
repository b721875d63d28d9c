"""Code that is not what the manifest names never becomes executable: damaged, swapped, of another artifact."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np
import pytest

import argosy
from argosy import host_cpu
from argosy.artifact.container import Container
from argosy.artifact.container_writer import ContainerWriter
from argosy.artifact.zipformat import MANIFEST, sort_key
from argosy.errors import ArtifactError
from argosy.runtime.devices import cpu
from tests.artifact.samples import rebuild
from tests.cli import models

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("ziglang") is None, reason="the package ziglang (extra cpu) is missing"
    ),
    pytest.mark.skipif(host_cpu.isa() != "x86_64", reason="the code is for x86-64"),
]
Contents: TypeAlias = dict[str, bytes]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Contents]:
    """The entries of an artifact with two variants for CPUs, by the seed of its model's weights."""
    folder = tmp_path_factory.mktemp("models")

    @lru_cache
    def made(seed: int) -> Contents:
        path = Path(models.classifier(folder / f"{seed}.onnx", seed=seed))
        container = Container(argosy.compile(path, targets=["x86-64-v2", "x86-64-v2-windows"]).to_bytes())
        return {name: container.read(name, 1 << 30) for name in container.entries}

    return made


@pytest.fixture
def mapped(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What was made executable."""
    found: list[bytes] = []
    load = cpu._load

    def remembered(content: bytes) -> Any:
        found.append(content)
        return load(content)

    monkeypatch.setattr(cpu, "_load", remembered)
    return found


def code(contents: Contents) -> list[str]:
    names = sorted(name for name in contents if "/code/" in name)
    assert len(names) == 2
    return names


def test_the_code_that_is_named_runs(fleet: Callable[[int], Contents], mapped: list[bytes]) -> None:
    session = argosy.Session(rebuild(fleet(0)), device="cpu")
    session.run({"x": np.zeros((2, 4), np.float32)})
    assert len(mapped) == 1


def damaged(contents: Contents, _: Contents) -> Contents:
    changed = {}
    for name in code(contents):
        content = bytearray(contents[name])
        content[len(content) // 2] ^= 1
        changed[name] = bytes(content)
    return changed


def swapped(contents: Contents, _: Contents) -> Contents:
    first, second = code(contents)
    return {first: contents[second], second: contents[first]}


def foreign(contents: Contents, other: Contents) -> Contents:
    """Of the same kind and arch: another artifact's, at the place of this one's, a byte longer."""
    return {mine: other[theirs] + b"\0" for mine, theirs in zip(code(contents), code(other), strict=True)}


def placed(contents: Contents) -> bytes:
    """A file whose manifest has the places and sizes of its entries, and the hashes that it had."""
    file = io.BytesIO()
    writer = ContainerWriter(file)
    manifest = msgspec.json.decode(contents[MANIFEST])
    for name in sorted(contents.keys() - {MANIFEST}, key=sort_key):
        entry = writer.add(name, contents[name]).entry
        manifest["entries"][name] |= {"offset": entry.start, "size": entry.size, "stored": entry.stored}
    writer.add(MANIFEST, msgspec.json.encode(manifest, order="sorted"))
    writer.finish()
    return file.getvalue()


@pytest.mark.parametrize("change", [damaged, swapped, foreign])
@pytest.mark.parametrize(("write", "said"), [(rebuild, "the manifest and the file differ"), (placed, "is damaged")])
def test_other_code_is_refused_before_it_is_executable(
    change: Callable[[Contents, Contents], Contents],
    write: Callable[[Contents], bytes],
    said: str,
    fleet: Callable[[int], Contents],
    mapped: list[bytes],
) -> None:
    contents = fleet(0)
    altered = write({**contents, **change(contents, fleet(1))})
    with pytest.raises(ArtifactError, match=said):
        argosy.Session(altered, device="cpu").run({"x": np.zeros((2, 4), np.float32)})
    assert not mapped
