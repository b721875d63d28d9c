"""Split and drop: some of the variants, the program and the weights that they use, bytes as they were."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest

from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.manifest import PROGRAM_ENTRY, VariantRecord, variant_folder
from argosy.artifact.merge import merge
from argosy.artifact.plan import PLAN
from argosy.artifact.subset import drop, find_variants, split
from argosy.errors import ArtifactError, EnvironmentError_, UsageError
from tests.artifact import samples

NATIVE = samples.variant("gfx942", family="amd"), samples.variant("sm_90", family="nvidia")
PTX = samples.variant("compute_80", family="nvidia", portable=True)


def fleet(path: Path) -> ArtifactFile:
    """A merge of two native variants and a fallback, at `path`."""
    inputs = [ArtifactFile.open(samples.artifact(record)) for record in NATIVE]
    merge(inputs, path, fallbacks=[ArtifactFile.open(samples.artifact(PTX))], producer=samples.PRODUCER)
    return ArtifactFile.open(path)


def dropped(file: ArtifactFile, *names: str) -> ArtifactFile:
    target = io.BytesIO()
    drop(file, names, target)
    result = ArtifactFile.open(target.getvalue())
    result.verify()
    return result


def archs(file: ArtifactFile) -> list[str]:
    return [variant.arch for variant in file.manifest.variants]


def test_split_writes_a_file_for_each_arch(tmp_path: Path) -> None:
    whole = fleet(tmp_path / "net.argosy")
    made = split(whole, str(tmp_path / "dist/{family}/{arch}/{name}.argosy"))
    assert [path.relative_to(tmp_path / "dist").as_posix() for path in made] == [
        "amd/gfx942/net.argosy",
        "nvidia/compute_80/net.argosy",
        "nvidia/sm_90/net.argosy",
    ]
    for path, variants in made.items():
        part = ArtifactFile.open(path)
        part.verify()
        assert archs(part) == [variant.arch for variant in variants] == [path.parent.name]
        assert not any(variant.fallback for variant in part.manifest.variants)
        for name, entry in part.manifest.entries.items():
            assert entry.sha256 == whole.manifest.entries[name].sha256


def test_what_is_split_merges_to_the_same_bytes(tmp_path: Path) -> None:
    fleet(tmp_path / "net.argosy")
    made = split(ArtifactFile.open(tmp_path / "net.argosy"), str(tmp_path / "{arch}.argosy"))
    files = {path.stem: ArtifactFile.open(path) for path in made}
    ptx = files.pop("compute_80")
    merge(list(files.values()), tmp_path / "again.argosy", fallbacks=[ptx], producer=samples.PRODUCER)
    assert (tmp_path / "again.argosy").read_bytes() == (tmp_path / "net.argosy").read_bytes()


def test_variants_of_one_arch_stay_together(tmp_path: Path) -> None:
    sizes = samples.variant("sm_90", family="nvidia", dims={"N": 8})
    file = ArtifactFile.open(samples.artifact(*NATIVE, sizes))
    made = split(file, str(tmp_path / "{arch}"))
    assert {path.name: len(variants) for path, variants in made.items()} == {"gfx942": 1, "sm_90": 2}


def test_drop_leaves_the_others_and_ref(tmp_path: Path) -> None:
    whole = fleet(tmp_path / "net.argosy")
    assert archs(dropped(whole, "sm_90")) == ["gfx942", "compute_80"]
    assert archs(dropped(whole, "sm_90, fp32", PTX.key[:10])) == ["gfx942"]
    left = dropped(whole, "gfx942")
    assert [variant.fallback for variant in left.manifest.variants] == [True, False]
    assert left.read_program() == whole.read_program()
    assert left.manifest.entries[PROGRAM_ENTRY].sha256 == whole.manifest.entries[PROGRAM_ENTRY].sha256


def test_weights_of_a_dropped_variant_go_and_those_of_the_program_stay() -> None:
    own = samples.WEIGHTS["fc.weight"] * 3
    digest = samples.sha256(own)
    manifest, contents = samples.parts(*NATIVE, weights=samples.WEIGHTS | {"own": own})
    only = samples.parts(*NATIVE)
    contents[PROGRAM_ENTRY] = only[1][PROGRAM_ENTRY]
    for record, weights in zip(NATIVE, ({"own": own}, samples.WEIGHTS), strict=True):
        contents[f"{variant_folder(record.key)}plan.msgpack"] = PLAN.to_msgpack(samples.plan(weights))
    file = ArtifactFile.open(samples.written(manifest, contents))
    assert digest in file.manifest.weights
    assert digest in dropped(file, "sm_90").manifest.weights
    left = dropped(file, "gfx942")
    assert left.manifest.weights.keys() == only[0].weights.keys()


def test_slim_files_can_be_split_and_dropped_from(tmp_path: Path) -> None:
    manifest, contents = samples.parts(*NATIVE)
    del contents[PROGRAM_ENTRY]
    slim = ArtifactFile.open(samples.written(msgspec.structs.replace(manifest, features=("slim",)), contents))
    assert archs(dropped(slim, "sm_90")) == ["gfx942"]
    for path in split(slim, str(tmp_path / "{arch}")):
        assert ArtifactFile.open(path).manifest.features == ("slim",)


# ---------------------------------------------------------------------------------------- refusals


def test_the_last_variant_can_t_be_dropped() -> None:
    file = ArtifactFile.open(samples.artifact(*NATIVE), where="net.argosy")
    with pytest.raises(UsageError, match=r"net.argosy: the last variant can't be dropped\n  argosy compile --arch ref"):
        dropped(file, "sm_90", "gfx942")


@pytest.mark.parametrize(
    ("variants", "asked", "hint"),
    [(NATIVE, "sm_9", "did you mean 'sm_90'"), (NATIVE, "", "it has: gfx942"), ((), "sm_90", "it has none")],
)
def test_a_variant_that_is_not_there(variants: tuple[VariantRecord, ...], asked: str, hint: str) -> None:
    manifest, contents = samples.parts(*variants)
    file = ArtifactFile.open(samples.written(manifest, contents), where="net.argosy")
    with pytest.raises(UsageError, match=f"net.argosy: the artifact has no variant '{asked}'\n.*{hint}"):
        find_variants(file, asked)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("dist/all.argosy", "has no {arch}, so all archs would go to one file"),
        ("{family}", "has no {arch}"),
        ("{arch}-{cu}", "is no pattern: it may hold {arch}, {family}, {name}"),
        ("{arch.x}", "is no pattern"),
        ("{arch}{}", "is no pattern"),
        ("{arch", "is no pattern"),
    ],
)
def test_patterns_that_do_not_do(pattern: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        split(ArtifactFile.open(samples.artifact(*NATIVE)), pattern)
    assert message in str(caught.value)


def test_nothing_to_split() -> None:
    manifest, contents = samples.parts()
    with pytest.raises(UsageError, match="it holds no variant, so there is nothing to split"):
        split(ArtifactFile.open(samples.written(manifest, contents)), "{arch}")


@pytest.mark.parametrize("arch", ["../../etc/x", "/etc/x", "..", "a/b", ".hidden", "a\\b", "a b"])
def test_an_arch_leads_to_no_other_folder(tmp_path: Path, arch: str) -> None:
    """Archs come from the file, which may be anybody's."""
    with pytest.raises(ArtifactError, match="is no name for a file"):
        split(ArtifactFile.open(samples.artifact(samples.variant(arch))), str(tmp_path / "out" / "{arch}"))
    assert list(tmp_path.iterdir()) == []


def test_folders_that_can_t_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(EnvironmentError_, match="can't make the folder"):
        split(ArtifactFile.open(samples.artifact(*NATIVE)), str(tmp_path / "file/{arch}/x"))
