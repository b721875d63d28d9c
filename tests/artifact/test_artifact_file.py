"""An artifact as a whole: written, opened, every part read back; parts that do not fit together are refused."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.artifact_writer import write_artifact
from argosy.artifact.container import Container
from argosy.artifact.manifest import PROGRAM_ENTRY, artifact_hash, variant_folder
from argosy.errors import ArtifactError, InternalError
from tests.artifact import samples


def test_every_part_reads_back() -> None:
    variant = samples.variant()
    opened = ArtifactFile.open(samples.artifact(variant))
    assert opened.read_program() == samples.program()
    assert opened.read_plan(variant.key) == samples.plan()
    for name, code in samples.CODE.items():
        assert opened.read_entry(variant_folder(variant.key) + name) == code
    for array in samples.WEIGHTS.values():
        weight = opened.weight(samples.sha256(array))
        np.testing.assert_array_equal(weight.view(np.float32).reshape(array.shape), array)
        assert not weight.flags.writeable
    opened.verify()


def test_weights_are_mapped_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "a.argosy"
    path.write_bytes(samples.artifact())
    opened = ArtifactFile.open(path)
    weight = opened.weight(samples.sha256(samples.WEIGHTS["conv.weight"]))
    assert not weight.flags.owndata
    assert weight.ctypes.data % 4096 == 0
    del opened  # the mapping lives as long as a view of it
    assert weight.view(np.float32)[5] == 5


def test_bytes_do_not_depend_on_the_order_of_what_is_given() -> None:
    variants = [samples.variant("gfx000"), samples.variant("gfx001"), samples.variant("aaa", family="zzz")]
    manifest, contents = samples.parts(*variants)
    first, second = io.BytesIO(), io.BytesIO()
    write_artifact(first, manifest, contents)
    turned = msgspec.structs.replace(
        manifest, variants=manifest.variants[::-1], weights=dict(reversed(manifest.weights.items()))
    )
    write_artifact(second, turned, dict(reversed(contents.items())))
    assert first.getvalue() == second.getvalue()


def test_written_to_a_path_atomically_and_hash_ignores_layout(tmp_path: Path) -> None:
    written = write_artifact(tmp_path / "a.argosy", *samples.parts(samples.variant()))
    assert [path.name for path in tmp_path.iterdir()] == ["a.argosy"]
    opened = ArtifactFile.open(tmp_path / "a.argosy")
    assert opened.manifest == written
    moved = {name: msgspec.structs.replace(entry, offset=0, stored=1) for name, entry in written.entries.items()}
    assert artifact_hash(msgspec.structs.replace(written, entries=moved)) == artifact_hash(written)


def test_weight_with_a_wrong_hash_is_not_written() -> None:
    manifest, contents = samples.parts(samples.variant())
    name = next(name for name in contents if name.startswith("weights/"))
    with pytest.raises(InternalError, match="has the hash"):
        write_artifact(io.BytesIO(), manifest, contents | {name: b"other"})


def test_what_readers_would_refuse_is_not_written(tmp_path: Path) -> None:
    manifest, contents = samples.parts(samples.variant())
    for name in (PROGRAM_ENTRY, f"{variant_folder(samples.variant().key)}plan.msgpack"):
        with pytest.raises(ArtifactError, match="it is damaged"):
            write_artifact(tmp_path / "a.argosy", manifest, contents | {name: b"\x80"})
    assert not list(tmp_path.iterdir())


def test_unknown_parts_are_asked_for() -> None:
    opened = ArtifactFile.open(samples.artifact())
    with pytest.raises(ArtifactError, match="no variant"):
        opened.read_plan("0" * 64)
    with pytest.raises(ArtifactError, match="no weight"):
        opened.weight("0" * 64)
    with pytest.raises(ArtifactError, match="no entry"):
        opened.read_entry("code/x")


# --------------------------------------------------------------------------- parts that do not fit


def unpacked() -> dict[str, bytes]:
    container = Container(samples.artifact())
    return {name: container.read(name, 1 << 30) for name in container.entries}


def changed_manifest(change: Callable[[dict[str, Any]], object]) -> bytes:
    contents = unpacked()
    manifest = msgspec.json.decode(contents["manifest.json"])
    change(manifest)
    return samples.rebuild(contents | {"manifest.json": msgspec.json.encode(manifest, order="sorted")})


def refusal(data: bytes) -> str:
    with pytest.raises(ArtifactError) as caught:
        ArtifactFile.open(data).verify()
    return str(caught.value)


def test_entry_that_the_manifest_does_not_name() -> None:
    assert "does not name" in refusal(samples.rebuild(unpacked() | {"extra.txt": b"hidden"}))


def test_entry_that_the_file_does_not_hold() -> None:
    contents = unpacked()
    del contents[PROGRAM_ENTRY]
    assert "does not hold" in refusal(samples.rebuild(contents))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m["entries"][PROGRAM_ENTRY].update(offset=7), "differ on where"),
        (lambda m: m["entries"][PROGRAM_ENTRY].update(size=7), "differ on where"),
        (lambda m: m["entries"][PROGRAM_ENTRY].update(sha256="0" * 64), "does not match its hash"),
        (lambda m: m["entries"][PROGRAM_ENTRY].update(sha256="A" * 64), "not a SHA-256"),
        (lambda m: m["entries"].update({"../x": m["entries"][PROGRAM_ENTRY]}), "not allowed"),
        (lambda m: m["entries"].update({"code/x": m["entries"][PROGRAM_ENTRY]}), "belongs to no variant"),
        (lambda m: m["entries"].pop(PROGRAM_ENTRY), "is missing"),
        (lambda m: m.update(features=["slim"]), "holds a program"),
        (lambda m: m.update(features=["hovering", "teleport"]), "'hovering', 'teleport'"),
        (lambda m: m["schema"].update(minor=4), "schema version is 0.4"),
        (lambda m: m["schema"].update(major=1), "schema version is 1.3"),
        (lambda m: m["schema"].update(minor=0), "schema version is 0.0"),
        (lambda m: m.update(novelty=1), "'.novelty' is unknown"),
        (lambda m: m["variants"][0].update(novelty=1), "'.variants[0].novelty' is unknown"),
        (lambda m: m["variants"][0].update(arch="gfx001"), "key does not match"),
        (lambda m: m["variants"][0].update(fallback=True), "'gfx000, fp32' is not portable"),
        (lambda m: m["variants"][0].update(portable=False), "canonical"),
        (lambda m: m["variants"].append(m["variants"][0]), "same key"),
        (lambda m: m["weights"].popitem(), "belongs to no variant"),
        (lambda m: next(iter(m["weights"].values())).update(bytes=4), "not what its type and dims take"),
        (lambda m: next(iter(m["weights"].values())).update(dtype="float31"), "unknown element type"),
        (lambda m: next(iter(m["weights"].values())).update(storage="omitted"), "belongs to no variant"),
        (lambda m: next(iter(m["weights"].values())).update(path="x"), "names a file"),
        (lambda m: next(iter(m["weights"].values())).update(storage="external", path="../x"), "not a plain file name"),
        (lambda m: m["inputs"].append(m["inputs"][0]), "another input"),
        (lambda m: m["symbols"][0].update(lower=5, upper=4), "bounds"),
        (lambda m: m["symbols"][0].update(upper=1 << 80), "bounds"),
        (lambda m: m["model"].update(hash="x"), "not a SHA-256"),
        (lambda m: m.pop("model"), "missing required field `model`"),
        (lambda m: m["producer"].update(name=5), "Expected `str`"),
        (lambda m: m.update(options={"x": "y" * 70000}), "70000"),
    ],
)  # fmt: skip
def test_manifests_that_break_a_rule(change: Callable[[dict[str, Any]], object], message: str) -> None:
    assert message in refusal(changed_manifest(change))


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b"\xff", b"[" * 100000, b'{"schema":' * 50000, b'{"schema":1e999}'])
def test_manifests_that_are_no_manifest(raw: bytes) -> None:
    assert "damaged" in refusal(samples.rebuild(unpacked() | {"manifest.json": raw}))


def test_repeated_key_in_the_manifest() -> None:
    contents = unpacked()
    raw = contents["manifest.json"].replace(b'"producer":', b'"producer":{"name":"x","version":"y"},"producer":')
    assert "canonical" in refusal(samples.rebuild(contents | {"manifest.json": raw}))


def test_code_that_the_plan_names_must_be_there() -> None:
    manifest, contents = samples.parts(samples.variant())
    file = io.BytesIO()
    write_artifact(file, manifest, {name: data for name, data in contents.items() if not name.endswith("cpu.so")})
    assert "code/cpu.so' is missing" in refusal(file.getvalue())


def test_weight_that_the_program_uses_must_be_named_and_fit() -> None:
    manifest, contents = samples.parts(samples.variant())
    digest = samples.sha256(samples.WEIGHTS["fc.weight"])
    without = {name: row for name, row in manifest.weights.items() if name != digest}
    file = io.BytesIO()
    write_artifact(
        file,
        msgspec.structs.replace(manifest, weights=without),
        {name: data for name, data in contents.items() if not name.endswith(digest)},
    )
    assert "the manifest does not name" in refusal(file.getvalue())
    row = msgspec.structs.replace(manifest.weights[digest], dims=(1,), bytes=4, storage="omitted")
    file = io.BytesIO()
    write_artifact(
        file,
        msgspec.structs.replace(manifest, weights=manifest.weights | {digest: row}),
        {name: data for name, data in contents.items() if not name.endswith(digest)},
    )
    assert "has not the bytes of" in refusal(file.getvalue())


def test_slim_artifact_has_no_program() -> None:
    manifest, contents = samples.parts(samples.variant())
    del contents[PROGRAM_ENTRY]
    file = io.BytesIO()
    write_artifact(file, msgspec.structs.replace(manifest, features=("slim",)), contents)
    opened = ArtifactFile.open(file.getvalue())
    opened.verify()
    with pytest.raises(ArtifactError, match="slim"):
        opened.read_program()
