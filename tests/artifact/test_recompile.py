"""New code for an artifact: program and weights stay byte for byte, and so does what is not compiled again."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import argosy
from argosy.artifact.artifact import Artifact
from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.artifact_writer import Content, write_artifact
from argosy.artifact.manifest import PROGRAM_ENTRY, VariantRecord, variant_folder, variant_key
from argosy.artifact.plan import PLAN
from argosy.artifact.subset import subset
from argosy.errors import ArtifactError, UsageError
from argosy.ir import Builder, Program
from argosy.ops.matmul import Dot
from argosy.ops.view import Transpose
from argosy.targets.base import find_maker
from argosy.targets.gpu.target import GpuTarget
from tests.artifact import samples
from tests.targets.mirror import MirrorTarget

WEIGHT = np.random.default_rng(0).standard_normal((3, 700), np.float32)


def program() -> Program:
    """x @ weightᵀ: a weight as an entry, and another one that targets make of it."""
    b = Builder()
    x = b.tensor_parameter("x", "float32", ["N", 700])
    turned = b.add(Transpose((1, 0)), b.constant(WEIGHT, name="weight"))
    return Program(b.module({"y": b.add(Dot(), x, turned)}))


def compiled(*targets: str | MirrorTarget, **options: Any) -> bytes:
    return argosy.compile(program(), targets=targets or ["mirror1"], **options).to_bytes()


def recompiled(data: bytes, folder: Path, **options: Any) -> bytes:
    target = folder / "new.argosy"
    argosy.recompile(Artifact.open(data), target, **options)
    return target.read_bytes()


def aged(data: bytes, **changed: Any) -> tuple[bytes, VariantRecord]:
    """The artifact as an older toolchain would have made it: another key, and other code in the first variant."""
    file = ArtifactFile.open(data)
    first, *others = file.manifest.variants
    changed = changed or {"toolchain": {"numpy": "old"}, "provenance": {"artifact": "x", "producer": "y"}}
    old = msgspec.structs.replace(first, **changed)
    old = msgspec.structs.replace(old, key=variant_key(old))
    manifest, contents = subset(file, others)
    plan = file.read_plan(first.key)
    made: dict[str, Content] = {
        f"{variant_folder(old.key)}plan.msgpack": PLAN.to_msgpack(plan),
        f"{variant_folder(old.key)}code/old.so": b"\x7fELF",
    }
    names = [name for name in file.manifest.entries if name.startswith("weights/")]
    weights: dict[str, Content] = {name: file.read_entry(name) for name in names}
    complete = msgspec.structs.replace(manifest, variants=(*others, old), weights=file.manifest.weights)
    buffer = io.BytesIO()
    write_artifact(buffer, complete, {**contents, **made, **weights})
    return buffer.getvalue(), old


def stored(data: bytes, *beginnings: str) -> dict[str, bytes]:
    """The stored bytes of the entries whose names begin so."""
    container = ArtifactFile.open(data).container
    return {
        name: bytes(container.stored_bytes(entry))
        for name, entry in container.entries.items()
        if name.startswith(beginnings)
    }


def test_the_same_toolchain_gives_the_same_bytes(tmp_path: Path) -> None:
    data = compiled("mirror1", "mirror2", dims={"N": (1, 8)})
    assert len(ArtifactFile.open(data).manifest.variants) == 6
    assert recompiled(data, tmp_path) == data


def test_an_older_variant_is_replaced_and_the_rest_untouched(tmp_path: Path) -> None:
    fresh = compiled("mirror1", "mirror2")
    old, record = aged(fresh)
    data = recompiled(old, tmp_path)
    assert data == fresh, "the old variant is gone, with its code and provenance"
    assert stored(data, PROGRAM_ENTRY, "weights/") == stored(old, PROGRAM_ENTRY, "weights/")
    by_arch = recompiled(old, tmp_path, targets=["mirror1"])
    other = ArtifactFile.open(fresh).manifest.variants[1]
    assert stored(by_arch, variant_folder(other.key)) == stored(old, variant_folder(other.key))
    kept = ArtifactFile.open(recompiled(old, tmp_path, targets=["mirror2"]))
    assert record in kept.manifest.variants


def test_a_new_arch_gets_code_for_the_same_sizes_and_options(tmp_path: Path) -> None:
    data = compiled("mirror1", dims={"N": (1, 8)}, precision="fp16", accuracy="exact")
    result = recompiled(data, tmp_path, targets=["mirror2"])
    assert result == compiled("mirror1", "mirror2", dims={"N": (1, 8)}, precision="fp16", accuracy="exact")


def test_a_file_for_ref_alone_gets_code_in_its_precision(tmp_path: Path) -> None:
    data = compiled("ref", precision="fp16")
    (variant,) = ArtifactFile.open(recompiled(data, tmp_path, targets=["mirror1"])).manifest.variants
    assert variant.numeric["precision"] == "fp16"


def test_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "new.argosy"
    argosy.recompile(Artifact.open(aged(compiled("mirror1"))[0]), path)
    x = np.random.default_rng(1).standard_normal((2, 700), np.float32)
    found = argosy.Session(path, device="host").run({"x": x})["y"]
    np.testing.assert_allclose(found, x @ WEIGHT.T, rtol=1e-4, atol=1e-4)


def test_code_for_a_cpu_is_what_compiling_the_model_gives(tmp_path: Path) -> None:
    assert recompiled(compiled("ref"), tmp_path, targets=["x86-64-v3"]) == compiled("x86-64-v3")


def test_fallbacks_of_a_merge_stay_fallbacks(tmp_path: Path) -> None:
    parts = [argosy.compile(program(), targets=[name]) for name in ("mirror1", "mirror2", "mirror1-portable")]
    merged = parts[0].merge(parts[1], path=tmp_path / "fleet.argosy", fallbacks=[parts[2]])
    new = argosy.recompile(merged, tmp_path / "new.argosy", targets=["mirror1-portable", "mirror1"])
    told = {variant.arch: (variant.fallback, bool(variant.provenance)) for variant in new.variants}
    assert told == {"mirror1": (False, False), "mirror1-portable": (True, False), "mirror2": (False, True)}
    again = new.merge(parts[1], path=tmp_path / "again.argosy")
    assert [variant.fallback for variant in again.variants] == [False, True, False]


def test_weights_that_are_elsewhere_stay_there(tmp_path: Path) -> None:
    path = tmp_path / "a.argosy"
    argosy.compile(program(), targets=["mirror1"]).save(path, weights="omit")
    given = {samples.sha256(WEIGHT): WEIGHT, samples.sha256(WEIGHT.T.copy()): WEIGHT.T.copy()}
    new = argosy.recompile(Artifact.open(path, weights=given), tmp_path / "b.argosy", targets=["mirror2"])
    assert {weight.storage for weight in new.manifest.weights.values()} == {"omitted"}
    with pytest.raises(ArtifactError, match="omitted and not in"):
        argosy.recompile(path, tmp_path / "b.argosy", targets=["x86-64-v3"])


def test_weights_that_only_new_code_uses_are_embedded(tmp_path: Path) -> None:
    path = tmp_path / "a.argosy"
    argosy.compile(program(), targets=["ref"]).save(path, weights="omit")
    given = {samples.sha256(WEIGHT): WEIGHT}
    new = argosy.recompile(Artifact.open(path, weights=given), tmp_path / "b.argosy", targets=["mirror1"])
    told = {digest: weight.storage for digest, weight in new.manifest.weights.items()}
    assert told == {samples.sha256(WEIGHT): "omitted", samples.sha256(WEIGHT.T.copy()): "embedded"}
    x = np.ones((1, 700), np.float32)
    found = argosy.Session(tmp_path / "b.argosy", device="host", weights=given).run({"x": x})["y"]
    np.testing.assert_allclose(found, x @ WEIGHT.T, rtol=1e-4, atol=1e-4)


def test_a_gpu_variant_s_maker_has_the_numbers_of_its_device() -> None:
    for target in (GpuTarget("gfx942"), GpuTarget("mi300a"), GpuTarget("gfx1201", gpu_num_cu=40), GpuTarget("h200")):
        record = samples.variant(target.arch, family=target.row.vendor, products=target.products)
        assert find_maker(record) == target


# ---------------------------------------------------------------------------------------- refusals


def test_a_slim_artifact_is_refused(tmp_path: Path) -> None:
    slim = argosy.compile(program(), targets=["mirror1"], slim=True)
    with pytest.raises(ArtifactError, match="a slim artifact can't be recompiled") as caught:
        argosy.recompile(slim, tmp_path / "b.argosy")
    assert "without --slim" in caught.value.hint


def test_nothing_to_compile_is_refused(tmp_path: Path) -> None:
    for targets in ((), ("ref",)):
        with pytest.raises(UsageError, match="there is nothing to compile") as caught:
            recompiled(compiled("ref"), tmp_path, targets=targets)
        assert "--arch" in caught.value.hint


def test_archs_that_this_version_does_not_know_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="this version compiles for no arch 'nova7'"):
        recompiled(samples.artifact(samples.variant("nova7")), tmp_path)
    assert not (tmp_path / "new.argosy").exists()


def test_what_another_version_says_of_a_variant_is_refused(tmp_path: Path) -> None:
    strange = samples.variant("gfx942", family="amd", products=("num_wings=2",))
    with pytest.raises(ArtifactError, match="can't read what 'gfx942, fp32' says of its device: num_wings=2"):
        recompiled(samples.artifact(strange), tmp_path)
    strange = samples.variant("gfx942", family="amd", products=("fast",))
    with pytest.raises(ArtifactError, match="says of its device: fast"):
        recompiled(samples.artifact(strange), tmp_path)
    data, _ = aged(compiled("mirror1"), numeric={"precision": "fp32", "sparsity": True})
    with pytest.raises(ArtifactError, match="options that this version does not have: sparsity"):
        recompiled(data, tmp_path)
