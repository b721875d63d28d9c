"""In what two artifacts differ, and what is no difference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.diff import Difference, diff
from argosy.artifact.manifest import PROGRAM_ENTRY, Manifest, ModelInfo, Producer, VariantRecord, variant_folder
from tests.artifact import samples

ONE = samples.variant("gfx942")
KEY = ONE.key[:12]


def file(*variants: VariantRecord, where: str = "b", **changed: Any) -> ArtifactFile:
    return ArtifactFile.open(samples.artifact(*(variants or (ONE,)), **changed), where=where)


def altered(**fields: Any) -> ArtifactFile:
    manifest, contents = samples.parts(ONE)
    return ArtifactFile.open(samples.written(msgspec.structs.replace(manifest, **fields), contents), where="b")


def code(name: str, content: bytes) -> ArtifactFile:
    manifest, contents = samples.parts(ONE)
    contents[f"{variant_folder(ONE.key)}{name}"] = content
    return ArtifactFile.open(samples.written(manifest, contents), where="b")


def slim() -> ArtifactFile:
    manifest, contents = samples.parts(ONE)
    del contents[PROGRAM_ENTRY]
    changed: Manifest = msgspec.structs.replace(manifest, features=("slim",))
    return ArtifactFile.open(samples.written(changed, contents), where="b")


CASES: dict[str, tuple[Callable[[], ArtifactFile], Difference]] = {
    "program": (
        lambda: altered(model=ModelInfo("other", "f" * 64)),
        Difference(
            program=(
                (
                    f"the programs differ: a holds 'net' ({samples.parts()[0].model.hash[:16]}), "
                    "b holds 'other' (ffffffffffffffff)"
                ),
            )
        ),
    ),
    "options": (
        lambda: altered(options={"precision": "fp16"}),
        Difference(options=("the option 'precision' is None in a and fp16 in b",)),
    ),
    "weights elsewhere": (
        lambda: file(storage="omitted"),
        Difference(weights=("2 weights that both name are embedded in a and omitted in b",)),
    ),
    "a variant more": (
        lambda: file(ONE, samples.variant("sm_90")),
        Difference(
            variants=(f"the variant 'sm_90, fp32' ({samples.variant('sm_90').key[:12]}) is only in b",),
        ),
    ),
    "another toolchain": (
        lambda: file(samples.variant("gfx942", toolchain={"triton": "4"})),
        Difference(
            variants=(
                f"the variant 'gfx942, fp32' ({KEY}) is only in a",
                (
                    f"the variant 'gfx942, fp32' ({samples.variant('gfx942', toolchain={'triton': '4'}).key[:12]}) "
                    "is only in b"
                ),
            )
        ),
    ),
    "other code": (
        lambda: code("code/cpu.so", b"\x7fELF"),
        Difference(variants=(f"the variant 'gfx942, fp32' ({KEY}) differs in code/cpu.so",)),
    ),
    "code more": (
        lambda: code("code/more.so", b"\x7fELF"),
        Difference(variants=(f"the variant 'gfx942, fp32' ({KEY}) differs in code/more.so",)),
    ),
    "requirements": (
        lambda: file(samples.variant("gfx942", words="new", portable=True)),
        Difference(variants=(f"the variant 'gfx942, fp32' ({KEY}) differs in words, portable",)),
    ),
    "fallback": (
        lambda: file(samples.variant("gfx942", portable=True, fallback=True)),
        Difference(variants=(f"the variant 'gfx942, fp32' ({KEY}) differs in portable, fallback",)),
    ),
    "slim": (slim, Difference(program=("a holds the program, b is slim",))),
}


@pytest.mark.parametrize(("make", "expected"), CASES.values(), ids=CASES)
def test_what_differs(make: Callable[[], ArtifactFile], expected: Difference) -> None:
    left, right = file(where="a"), make()
    assert diff(left, right) == expected
    assert diff(right, left)


def test_weights_are_told_by_name() -> None:
    changed = file(weights=samples.WEIGHTS | {"fc.weight": samples.WEIGHTS["fc.weight"] + 1})
    assert diff(file(where="a"), changed).weights == ("the weight 'fc.weight' differs between a and b",)


def test_what_a_file_only_tells_is_no_difference() -> None:
    provenance = samples.variant("gfx942", provenance={"artifact": "x"})
    for other in (altered(producer=Producer("argosy", "9")), altered(variants=(provenance,)), file(model="other name")):
        found = diff(file(where="a"), other)
        assert not found
        assert found == Difference()
    assert not diff(slim(), slim())
