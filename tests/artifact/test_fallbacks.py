"""Which portable variants a merge keeps, and what it says of the others."""

from __future__ import annotations

import io
import itertools
from typing import Any

import msgspec
import pytest

from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.manifest import PROGRAM_ENTRY, VariantRecord, fallback_slot, variant_folder
from argosy.artifact.merge import Merged, merge
from argosy.errors import ArtifactError, UsageError
from argosy.targets.cpu import arch as cpu
from argosy.targets.gpu.arch import ARCHS as GPUS
from tests.artifact import samples


def native(arch: str = "sm_90", family: str = "nvidia", **changed: Any) -> VariantRecord:
    return samples.variant(arch, family=family, **changed)


def portable(arch: str = "compute_80", family: str = "nvidia", **changed: Any) -> VariantRecord:
    return samples.variant(arch, family=family, portable=True, **changed)


def holding(*variants: VariantRecord, where: str = "a", data: bytes | None = None) -> ArtifactFile:
    return ArtifactFile.open(data or samples.artifact(*variants), where=where)


def merged(*inputs: ArtifactFile, fallbacks: tuple[ArtifactFile, ...] = ()) -> tuple[ArtifactFile, Merged]:
    """The merge, whatever the order, and what it says of itself."""
    results = set()
    for order in itertools.permutations(inputs):
        for other in itertools.permutations(fallbacks):
            file = io.BytesIO()
            told = merge(order, file, fallbacks=other, producer=samples.PRODUCER)
            results.add(file.getvalue())
    assert len(results) == 1
    result = ArtifactFile.open(results.pop(), where="merged")
    result.verify()
    return result, told


def kinds(file: ArtifactFile) -> dict[str, bool]:
    """Whether each variant is a fallback, by arch."""
    return {variant.arch: variant.fallback for variant in file.manifest.variants}


def remade(file: ArtifactFile, record: VariantRecord, code: bytes, where: str) -> ArtifactFile:
    """The file with other code in a variant."""
    contents = {name: file.container.read(name, 1 << 20) for name in file.manifest.entries}
    contents[f"{variant_folder(record.key)}code/cpu.so"] = code
    return ArtifactFile.open(samples.written(file.manifest, contents), where=where)


def test_a_named_fallback_is_kept_and_marked() -> None:
    result, told = merged(holding(native()), fallbacks=(holding(portable(), where="ptx"),))
    assert kinds(result) == {"sm_90": False, "compute_80": True}
    assert told.left_out == ()
    assert told.sources[portable().key] == ("ptx",)
    kept = next(variant for variant in result.manifest.variants if variant.fallback)
    assert kept.provenance["producer"] == "argosy 0.1.0"


def test_a_portable_variant_of_a_plain_input_is_left_out_and_told() -> None:
    result, told = merged(holding(native(), portable(), where="fat"), holding(native("sm_80")))
    assert kinds(result) == {"sm_80": False, "sm_90": False}
    (left,) = told.left_out
    assert (left.variant, left.source) == (portable(), "fat")
    assert "it is portable, and not named with --fallback" in left.reason


def test_what_is_named_is_not_left_out_of_another_file() -> None:
    """The same bytes are in a plain input too: nothing is lost."""
    fat, other = holding(native(), portable(), where="fat"), holding(native("sm_80"))
    result, told = merged(fat, other, fallbacks=(holding(portable(), where="ptx"),))
    assert kinds(result) == {"sm_80": False, "sm_90": False, "compute_80": True}
    assert told.left_out == ()


def test_a_fallback_of_each_kind() -> None:
    slots = [
        portable(),
        portable("gfx9-4-generic", "amd"),
        portable("gfx12-generic", "amd"),
        portable("x86-64-v2", "cpu-x86-64", system="linux"),
        portable("x86-64-v2-windows", "cpu-x86-64", system="windows"),
        portable("neoverse-n1", "cpu-aarch64", system="linux"),
    ]
    fleet, _ = merged(holding(native()), fallbacks=(holding(slots[0]), holding(slots[1])))
    fleet, _ = merged(fleet, fallbacks=tuple(holding(slot) for slot in slots[2:5]))
    result, _ = merged(fleet, fallbacks=(holding(slots[5]),))
    assert {arch for arch, fallback in kinds(result).items() if fallback} == {slot.arch for slot in slots}


def test_slots_of_the_tables() -> None:
    """At most one fallback for NVIDIA's PTX, for each of AMD's generics and for each CPU ISA on each system."""
    rows = [portable(row.name, row.vendor) for row in GPUS.values() if row.portable]
    generics = [row for row in rows if row.family == "amd"]
    assert len({fallback_slot(row) for row in generics}) == len(generics) > 1
    assert len({fallback_slot(row) for row in rows if row.family == "nvidia"}) == 1
    assert fallback_slot(portable("compute_90")) == fallback_slot(portable("compute_80"))
    lowest = [row for row in cpu.ARCHS.values() if row.portable]
    assert len({fallback_slot(portable(row.name, row.family, system=row.system)) for row in lowest}) == len(lowest)


def test_fallbacks_of_a_previous_merge_are_passed_on() -> None:
    fleet, _ = merged(holding(native()), fallbacks=(holding(portable()),))
    result, told = merged(fleet, holding(native("gfx942", "amd")))
    assert kinds(result) == {"sm_90": False, "gfx942": False, "compute_80": True}
    assert told.left_out == ()


def test_equal_inherited_fallbacks_are_one() -> None:
    ptx = holding(portable())
    left, right = (merged(holding(native(arch)), fallbacks=(ptx,))[0] for arch in ("sm_80", "sm_90"))
    result, told = merged(left, right)
    assert kinds(result) == {"sm_80": False, "sm_90": False, "compute_80": True}
    assert told.left_out == ()


def test_different_inherited_fallbacks_are_refused_unless_replaced() -> None:
    other = portable(toolchain={"triton": "4"})
    left, _ = merged(holding(native("sm_80")), fallbacks=(holding(portable()),))
    right, _ = merged(holding(native("sm_90")), fallbacks=(holding(other),))
    message = refusal(left, right)
    assert "two fallbacks are inherited for the same machines: 'compute_80, fp32' of merged and" in message
    assert "--fallback" in message
    third = portable("compute_90")
    result, told = merged(left, right, fallbacks=(holding(third, where="new"),))
    assert kinds(result) == {"sm_80": False, "sm_90": False, "compute_90": True}
    assert [left.reason for left in told.left_out] == ["the fallback 'compute_90, fp32' of new replaces it"] * 2
    result, told = merged(left, right, fallbacks=(holding(other),))
    assert [left.variant.toolchain["triton"] for left in told.left_out] == ["3.9.0"]
    assert [variant.key for variant in result.manifest.variants if variant.fallback] == [other.key]


def test_inherited_fallbacks_of_one_key_with_other_bytes_are_refused() -> None:
    ptx = holding(portable())
    left, _ = merged(holding(native("sm_80")), fallbacks=(ptx,))
    right, _ = merged(holding(native("sm_90")), fallbacks=(remade(ptx, portable(), b"\x7fELF", "x"),))
    message = refusal(left, right)
    assert "the fallback 'compute_80, fp32' is inherited by merged and merged, but differs in code/cpu.so" in message


# ---------------------------------------------------------------------------------------- refusals


def refusal(*inputs: ArtifactFile, fallbacks: tuple[ArtifactFile, ...] = ()) -> str:
    with pytest.raises(ArtifactError) as caught:
        merge(inputs, io.BytesIO(), fallbacks=fallbacks)
    return str(caught.value)


def test_a_previous_merge_is_no_fallback() -> None:
    fleet, _ = merged(holding(native()), fallbacks=(holding(portable()),))
    message = refusal(holding(native()), fallbacks=(fleet,))
    assert message.startswith("merged: a previous merge can't be named as a fallback")
    assert "give it as an input" in message


@pytest.mark.parametrize(
    ("variants", "what", "hint"),
    [
        ((native(),), "its variant 'sm_90, fp32' is not portable, so it can't be a fallback", "give it as an input"),
        ((native(), portable()), "this one has 2: compute_80, fp32, sm_90, fp32", "argosy split"),
        ((portable(), portable("compute_90")), "this one has 2", "argosy split"),
    ],
)
def test_a_fallback_s_file_holds_one_portable_variant(
    variants: tuple[VariantRecord, ...], what: str, hint: str
) -> None:
    message = refusal(holding(native("sm_80")), fallbacks=(holding(*variants, where="file"),))
    assert message.startswith("file: ")
    assert what in message
    assert hint in message


def test_a_fallback_s_file_without_a_variant_is_refused() -> None:
    manifest, contents = samples.parts()
    empty = ArtifactFile.open(samples.written(manifest, contents), where="file")
    assert "file: it holds no variant, so it can't be a fallback" in refusal(holding(native()), fallbacks=(empty,))


def test_two_fallbacks_for_the_same_machines_are_refused() -> None:
    both = holding(portable(), where="x"), holding(portable("compute_90"), where="y")
    message = refusal(holding(native()), fallbacks=both)
    assert (
        "two fallbacks are named for the same machines: 'compute_80, fp32' of x and 'compute_90, fp32' of y" in message
    )
    same, _ = merged(holding(native()), fallbacks=(holding(portable()), holding(portable())))
    assert kinds(same) == {"sm_90": False, "compute_80": True}


def test_a_merge_of_portable_variants_alone_is_refused() -> None:
    message = refusal(holding(portable(), where="x"), holding(portable(), where="y"))
    assert "x, y: the merge would hold no variant" in message
    assert "--fallback" in message


def test_an_input_is_needed_and_two_artifacts() -> None:
    for inputs, fallbacks in (((), 2), ((holding(native()),), 0)):
        with pytest.raises(UsageError, match="at least two artifacts, and one that is no fallback"):
            merge(inputs, io.BytesIO(), fallbacks=[holding(portable())] * fallbacks)


def test_differences_clashes_and_fallbacks_are_reported_together() -> None:
    record = native()
    inputs = holding(record, where="x"), remade(holding(record), record, b"\x7fELF", "y")
    manifest, contents = samples.parts(portable("compute_90"), options={"quantise": True})
    other = ArtifactFile.open(samples.written(manifest, contents), where="z")
    message = refusal(*inputs, fallbacks=(holding(portable(), where="p"), other))
    for part in ("'quantise' is None in x and True in z", "differs in code/cpu.so", "two fallbacks are named"):
        assert part in message
    for hint in ("same model with the same dims", "argosy drop", "--fallback"):
        assert hint in message


def test_a_slim_fallback_is_refused() -> None:
    manifest, contents = samples.parts(portable())
    del contents[PROGRAM_ENTRY]
    slim = samples.written(msgspec.structs.replace(manifest, features=("slim",)), contents)
    assert "s: a slim artifact can't be merged" in refusal(
        holding(native()), fallbacks=(ArtifactFile.open(slim, where="s"),)
    )


# ---------------------------------------------------------------------------------- what a file may say


def test_a_file_with_two_fallbacks_for_the_same_machines_is_refused() -> None:
    two = [msgspec.structs.replace(portable(arch), fallback=True) for arch in ("compute_80", "compute_90")]
    with pytest.raises(ArtifactError, match="are fallbacks for the same machines"):
        samples.artifact(*two)
