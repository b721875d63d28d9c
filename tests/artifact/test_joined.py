"""Parts of an artifact opened together: the whole is there, each part of it read from the file that holds it."""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

import argosy
from argosy.artifact.artifact import Artifact
from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.manifest import SLIM, VariantRecord, variant_folder
from argosy.artifact.part import write_part
from argosy.errors import ArtifactError
from tests.artifact import samples
from tests.cli import models

A, B = samples.variant("a"), samples.variant("b")
DIGESTS = sorted(samples.sha256(array) for array in samples.WEIGHTS.values())


def part(whole: bytes, variants: Sequence[VariantRecord], weights: Collection[str]) -> bytes:
    file = io.BytesIO()
    write_part(ArtifactFile.open(whole), file, variants=variants, weights=weights)
    return file.getvalue()


def test_parts_are_the_whole_again() -> None:
    whole = samples.artifact(A, B)
    pieces = [part(whole, (), DIGESTS[:1]), part(whole, [B], ()), part(whole, [A], DIGESTS[1:])]
    for piece in pieces:
        ArtifactFile.open(piece).verify()
    for first in range(3):
        joined = Artifact.open(pieces[first], parts=pieces[:first] + pieces[first + 1 :])
        assert joined.variants == Artifact.open(whole).variants
        assert joined.to_bytes() == whole
        assert joined.as_file().manifest == ArtifactFile.open(whole).manifest
        for array in samples.WEIGHTS.values():
            assert joined.literal(samples.ref(array)).array().tobytes() == array.tobytes()
        for variant in (A, B):
            assert joined.plan(variant.key) == samples.plan()
            assert joined.entry(variant.key, "code/cpu.so") == samples.CODE["code/cpu.so"]


def test_a_weight_that_no_part_holds_is_named_when_it_is_used() -> None:
    whole = samples.artifact(A, B)
    joined = Artifact.open(part(whole, (), DIGESTS[:1]), parts=[part(whole, [A], ())])
    missing = next(array for array in samples.WEIGHTS.values() if samples.sha256(array) == DIGESTS[1])
    with pytest.raises(ArtifactError, match=f"the weight {DIGESTS[1]} .* is omitted and not in the weights supplied"):
        joined.literal(samples.ref(missing))


def test_the_same_variant_may_come_twice_but_not_with_other_code() -> None:
    assert Artifact.open(samples.artifact(A, B), parts=[samples.artifact(A)]).variants == (A, B)
    manifest, contents = samples.parts(A)
    contents[f"{variant_folder(A.key)}code/cpu.so"] = b"\x7fELF other"
    with pytest.raises(ArtifactError, match="hold different code for 'a, fp32'\n  open files together that were made"):
        Artifact.open(samples.artifact(A), parts=[samples.written(manifest, contents)])


def test_parts_of_another_program_are_refused() -> None:
    other = samples.artifact(B, weights={"w": np.zeros(4, np.float32)}, model="other")
    with pytest.raises(
        ArtifactError, match=r"it is of another program than artifact: 'other' \([0-9a-f]{16}\), not 'net'"
    ):
        Artifact.open(samples.artifact(A), parts=[other])
    with pytest.raises(ArtifactError, match="its inputs, outputs, dims or options are not those of artifact"):
        Artifact.open(samples.artifact(A), parts=[samples.artifact(B, options={"fast_math": True})])


def test_a_slim_part_is_refused() -> None:
    manifest, contents = samples.parts(B)
    contents.pop("program.msgpack")
    slim = samples.written(msgspec.structs.replace(manifest, features=(SLIM,)), contents)
    with pytest.raises(ArtifactError, match="a slim artifact can't be opened with others"):
        Artifact.open(samples.artifact(A), parts=[slim])


def test_external_weights_are_embedded_in_a_part(tmp_path: Path) -> None:
    compiled = argosy.compile(models.classifier(tmp_path / "model.onnx"), targets=("ref",), weights="weights.bin")
    compiled.save(tmp_path / "outside.argosy")
    outside = ArtifactFile.open(tmp_path / "outside.argosy")
    write_part(outside, tmp_path / "part.argosy", variants=(), weights=outside.manifest.weights)
    (tmp_path / "weights.bin").unlink()
    x = np.ones((2, 4), np.float32)
    found = argosy.Session(tmp_path / "part.argosy").run({"x": x})["y"]
    np.testing.assert_allclose(found, models.classify(x), rtol=1e-5)


def test_a_session_runs_code_of_one_part_on_weights_of_another(tmp_path: Path) -> None:
    whole = tmp_path / "whole.argosy"
    argosy.compile(models.classifier(tmp_path / "model.onnx"), targets=("cpu",)).save(whole)
    file = ArtifactFile.open(whole)
    (variant,) = file.manifest.variants
    write_part(file, tmp_path / "host.argosy", variants=(), weights=file.manifest.weights)
    write_part(file, tmp_path / "device.argosy", variants=[variant], weights=())
    joined = Artifact.open(tmp_path / "host.argosy", parts=[tmp_path / "device.argosy"])
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    session = argosy.Session(joined, device="cpu")
    assert session.variant == variant.words
    np.testing.assert_allclose(session.run({"x": x})["y"], models.classify(x), rtol=1e-5)
    with pytest.raises(ArtifactError, match="is omitted"):
        argosy.Session(tmp_path / "device.argosy")
