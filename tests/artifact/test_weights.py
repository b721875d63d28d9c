"""Weights: mapped and checked once at the first use; omitted and external ones are found, supplied and checked."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import msgspec
import numpy as np
import pytest

from argosy.artifact import weights as weights_module
from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.artifact_writer import array_bytes, write_artifact, write_weights
from argosy.artifact.manifest import WeightRecord, weight_entry
from argosy.errors import ArtifactError, InternalError
from argosy.ir.literal import pack_bits
from tests.artifact import samples

ARRAY = samples.WEIGHTS["conv.weight"]
DIGEST = samples.sha256(ARRAY)


def omitted() -> bytes:
    return samples.artifact(storage="omitted")


def test_damaged_weight_is_found_at_its_first_use_and_not_before() -> None:
    data = bytearray(samples.artifact())
    entry = ArtifactFile.open(bytes(data)).container.entries[weight_entry(DIGEST)]
    data[entry.start] ^= 1
    opened = ArtifactFile.open(bytes(data))
    opened.read_program()
    for _ in range(2):
        with pytest.raises(ArtifactError, match="damaged: its content does not match its hash"):
            opened.weight(DIGEST)
    other = samples.WEIGHTS["fc.weight"]
    np.testing.assert_array_equal(opened.weight(samples.sha256(other)).view(np.float32), other.reshape(-1))


def test_a_weight_is_hashed_once_by_however_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[int] = []

    class Counting:
        @staticmethod
        def sha256(data: memoryview) -> Any:
            hashed.append(len(data))
            return hashlib.sha256(data)

    monkeypatch.setattr(weights_module, "hashlib", Counting)
    opened = ArtifactFile.open(samples.artifact())
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda _: opened.weight(DIGEST), range(200)))
    assert hashed == [ARRAY.nbytes]
    assert all(result is results[0] for result in results)


def test_omitted_weights_are_supplied_by_hash() -> None:
    with pytest.raises(ArtifactError, match=r"is omitted and not in the weights supplied.*\n.*--weights"):
        ArtifactFile.open(omitted()).weight(DIGEST)
    for content in (ARRAY, ARRAY.tobytes(), ARRAY.data, np.asfortranarray(ARRAY)):
        opened = ArtifactFile.open(omitted(), weights={DIGEST: content})
        np.testing.assert_array_equal(opened.weight(DIGEST).view(np.float32), ARRAY.reshape(-1))


def test_supplied_weights_are_checked() -> None:
    with pytest.raises(ArtifactError, match="does not match its hash"):
        ArtifactFile.open(omitted(), weights={DIGEST: ARRAY + 1}).weight(DIGEST)
    with pytest.raises(ArtifactError, match="has 4 bytes instead of 8192"):
        ArtifactFile.open(omitted(), weights={DIGEST: b"1234"}).weight(DIGEST)


def test_supplied_sub_byte_arrays_are_packed() -> None:
    values = np.arange(-8, 8).astype(ml_dtypes.int4)
    digest = hashlib.sha256(pack_bits(values, 4).tobytes()).hexdigest()
    manifest, contents = samples.parts(samples.variant())
    weights = manifest.weights | {digest: WeightRecord("int4", (16,), 8, "omitted")}
    with_int4 = msgspec.structs.replace(manifest, weights=weights)
    raw = samples.written(with_int4, contents)
    assert ArtifactFile.open(raw, weights={digest: values}).weight(digest).tobytes() == pack_bits(values, 4).tobytes()


def test_another_artifact_supplies_weights(tmp_path: Path) -> None:
    full = tmp_path / "full.argosy"
    full.write_bytes(samples.artifact())
    opened = ArtifactFile.open(omitted(), weights=full)
    np.testing.assert_array_equal(opened.weight(DIGEST).view(np.float32), ARRAY.reshape(-1))


def external(folder: Path, name: str = "net.weights") -> Path:
    """An artifact in `folder` with its weights in the file `name` beside it."""
    offsets = write_weights(folder / name, {samples.sha256(a): array_bytes(a) for a in samples.WEIGHTS.values()})
    manifest, contents = samples.parts(samples.variant(), storage="omitted")
    rows = {
        digest: msgspec.structs.replace(row, storage="external", path=name, offset=offsets[digest])
        for digest, row in manifest.weights.items()
    }
    write_artifact(folder / "net.argosy", msgspec.structs.replace(manifest, weights=rows), contents)
    return folder / "net.argosy"


def test_external_weights_are_found_beside_the_artifact_or_where_told(tmp_path: Path) -> None:
    path = external(tmp_path)
    for array in samples.WEIGHTS.values():
        weight = ArtifactFile.open(path).weight(samples.sha256(array))
        np.testing.assert_array_equal(weight.view(np.float32), array.reshape(-1))
        assert weight.ctypes.data % 4096 == 0
    moved = tmp_path / "elsewhere.bin"
    (tmp_path / "net.weights").rename(moved)
    with pytest.raises(ArtifactError, match=r"is external and not in 'net\.weights' beside the artifact"):
        ArtifactFile.open(path).weight(DIGEST)
    np.testing.assert_array_equal(
        ArtifactFile.open(path, weights=moved).weight(DIGEST).view(np.float32), ARRAY.reshape(-1)
    )


def test_external_weights_are_checked(tmp_path: Path) -> None:
    path = external(tmp_path)
    (tmp_path / "net.weights").write_bytes(b"short")
    with pytest.raises(ArtifactError, match=r"has \d+ bytes instead of 8192"):
        ArtifactFile.open(path).weight(DIGEST)
    (tmp_path / "net.weights").write_bytes(bytes(100_000))
    with pytest.raises(ArtifactError, match="does not match its hash"):
        ArtifactFile.open(path).weight(DIGEST)


def test_empty_weight_is_an_empty_array() -> None:
    empty = np.empty((0, 4), np.float32)
    opened = ArtifactFile.open(samples.artifact(weights=samples.WEIGHTS | {"empty": empty}))
    assert opened.weight(samples.sha256(empty)).shape == (0,)


def test_bytes_of_an_array_are_a_view_and_need_contiguity() -> None:
    view = array_bytes(ARRAY)
    assert np.shares_memory(np.frombuffer(view, np.uint8), ARRAY)
    bfloat = np.ones((2, 2), ml_dtypes.bfloat16)
    assert bytes(array_bytes(bfloat)) == bfloat.tobytes()
    with pytest.raises(InternalError, match="no plain bytes"):
        array_bytes(ARRAY.T)
