"""Merging: variants of one program come together, everything that differs is named, order does not matter."""

from __future__ import annotations

import io
import itertools
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.manifest import (
    PROGRAM_ENTRY,
    Manifest,
    ModelInfo,
    Producer,
    ValueInfo,
    VariantRecord,
    variant_folder,
    variant_key,
)
from argosy.artifact.merge import merge
from argosy.artifact.program import PROGRAM, SymbolRecord
from argosy.errors import ArtifactError, UsageError
from tests.artifact import samples


def opened(*variants: VariantRecord, where: str = "artifact", **changed: Any) -> ArtifactFile:
    return ArtifactFile.open(samples.artifact(*variants, **changed), where=where)


def altered(where: str, *variants: VariantRecord, **fields: Any) -> ArtifactFile:
    manifest, contents = samples.parts(*variants)
    return ArtifactFile.open(samples.written(msgspec.structs.replace(manifest, **fields), contents), where=where)


def merged(*artifacts: ArtifactFile) -> bytes:
    file = io.BytesIO()
    merge(artifacts, file, producer=samples.PRODUCER)
    return file.getvalue()


def test_variants_come_together_and_weights_stay_once() -> None:
    one, two = samples.variant("gfx000"), samples.variant("sm_00")
    data = merged(opened(one), opened(two))
    assert data == samples.artifact(one, two)
    ArtifactFile.open(data).verify()


def test_order_does_not_change_the_bytes() -> None:
    files = [
        opened(samples.variant("a", provenance={"by": "x"}), model="net"),
        opened(samples.variant("b"), samples.variant("a", provenance={"by": "y"}), model="other name"),
        opened(samples.variant("c"), storage="omitted"),
    ]
    files = [altered_name(file, name) for file, name in zip(files, ("p", "q", "r"), strict=True)]
    results = {merged(*order) for order in itertools.permutations(files)}
    assert len(results) == 1
    result = ArtifactFile.open(results.pop())
    result.verify()
    assert [variant.arch for variant in result.manifest.variants] == ["a", "b", "c"]
    assert {weight.storage for weight in result.manifest.weights.values()} == {"embedded"}
    assert merged(result, *files) == merged(*files)


def altered_name(file: ArtifactFile, name: str) -> ArtifactFile:
    """The same program with another name of a node inside, which the model's hash does not cover."""
    program = file.read_program()
    main = program.modules[0]
    first = msgspec.structs.replace(main.instructions[0], source=name)
    module = msgspec.structs.replace(main, instructions=(first, *main.instructions[1:]))
    raw = PROGRAM.to_msgpack(msgspec.structs.replace(program, modules=(module, *program.modules[1:])))
    contents = {n: file.container.read(n, 1 << 20) for n in file.manifest.entries} | {PROGRAM_ENTRY: raw}
    return ArtifactFile.open(samples.written(file.manifest, contents), where=name)


def test_merge_to_a_path_is_atomic(tmp_path: Path) -> None:
    target = tmp_path / "fleet.argosy"
    target.write_bytes(b"old")
    damaged = bytearray(samples.artifact(samples.variant("b")))
    weight = next(e for n, e in ArtifactFile.open(bytes(damaged)).container.entries.items() if n.startswith("weights/"))
    damaged[weight.start] ^= 1
    with pytest.raises(ArtifactError, match="damaged"):
        merge([ArtifactFile.open(bytes(damaged)), opened(samples.variant("a"))], target)
    assert target.read_bytes() == b"old"
    manifest = merge([opened(samples.variant("a")), opened(samples.variant("b"))], target)
    assert [path.name for path in tmp_path.iterdir()] == ["fleet.argosy"]
    assert ArtifactFile.open(target).manifest == manifest


def test_target_may_be_one_of_the_inputs(tmp_path: Path) -> None:
    path = tmp_path / "a.argosy"
    path.write_bytes(samples.artifact(samples.variant("a")))
    merge([ArtifactFile.open(path), opened(samples.variant("b"))], path)
    ArtifactFile.open(path).verify()


def test_code_and_weights_are_copied_as_they_are_stored() -> None:
    left, right = opened(samples.variant("a")), opened(samples.variant("b"))
    result = ArtifactFile.open(merged(left, right))
    for source in (left, right):
        for name in source.manifest.entries:
            copied = result.container.stored_bytes(result.container.entries[name])
            assert bytes(copied) == bytes(source.container.stored_bytes(source.container.entries[name]))


# ---------------------------------------------------------------------------------------- refusals


def refusal(*artifacts: ArtifactFile) -> str:
    with pytest.raises(ArtifactError) as caught:
        merged(*artifacts)
    return str(caught.value)


def test_one_artifact_is_no_merge() -> None:
    with pytest.raises(UsageError, match="at least two"):
        merged(opened())


def test_all_differences_are_named() -> None:
    left = opened(samples.variant("a"), where="left.argosy")
    right = altered(
        "right.argosy",
        samples.variant("b"),
        model=ModelInfo("other", "f" * 64),
        inputs=(ValueInfo("x", "float16[N, 3]", ("N", 3)), ValueInfo("z", "bool[]", ())),
        symbols=(SymbolRecord("N", 1, 64),),
        options={"quantise": True},
    )
    message = refusal(left, right)
    for part in (
        "left.argosy holds 'net'",
        "right.argosy holds 'other' (ffffffffffffffff)",
        "the input 'x' is float32[N, 3] in left.argosy and float16[N, 3] in right.argosy",
        "the input 'flag' is only in left.argosy",
        "the input 'z' is only in right.argosy",
        "the symbol 'N' is (1, 512) in left.argosy and (1, 64) in right.argosy",
        "the option 'quantise' is None in left.argosy and True in right.argosy",
        "same model with the same dims",
    ):
        assert part in message


def test_weights_that_differ_are_named() -> None:
    other = samples.WEIGHTS | {"fc.weight": samples.WEIGHTS["fc.weight"] * 2}
    more = other | {"extra": np.ones(2000, np.float32)}
    message = refusal(opened(where="a"), opened(where="b", weights=more))
    assert "the weight 'fc.weight' differs between a and b" in message
    assert "the weight 'extra' is only in b" in message
    assert "conv.weight" not in message


def test_a_long_list_of_weights_is_cut() -> None:
    many = {f"w{number}": np.full(1025, number, np.float32) for number in range(50)}
    message = refusal(opened(where="a", weights=many), opened(where="b", weights={n: a + 99 for n, a in many.items()}))
    assert "and 30 more weights" in message


def test_outputs_in_another_order_are_named() -> None:
    manifest, _ = samples.parts(samples.variant())
    right = altered("right", samples.variant("b"), outputs=manifest.outputs[::-1])
    assert "the outputs are in another order in right" in refusal(opened(where="left"), right)


def test_equal_variants_become_one_and_clashing_ones_are_refused() -> None:
    record = samples.variant("a")
    assert merged(opened(record), opened(record)) == samples.artifact(record)
    manifest, contents = samples.parts(record)
    changed = contents | {f"{variant_folder(record.key)}code/cpu.so": b"\x7fELF other"}
    right = ArtifactFile.open(samples.written(manifest, changed), where="right")
    message = refusal(opened(record, where="left"), right)
    assert "the variant 'a, fp32' is in left and right, but differs in code/cpu.so" in message
    again = msgspec.structs.replace(record, portable=True)
    assert "differs in portable" in refusal(opened(record, where="left"), opened(again, where="right"))


def test_slim_artifact_is_refused() -> None:
    manifest, contents = samples.parts(samples.variant())
    del contents[PROGRAM_ENTRY]
    slim = ArtifactFile.open(
        samples.written(msgspec.structs.replace(manifest, features=("slim",)), contents), where="s"
    )
    assert "s: a slim artifact can't be merged" in refusal(opened(), slim)


def test_producer_is_given_or_the_smallest() -> None:
    left = altered("left", samples.variant("a"), producer=Producer("argosy", "0.3"))
    right = altered("right", samples.variant("b"), producer=Producer("argosy", "0.2"))

    def producer(*files: ArtifactFile, given: Producer | None = None) -> Producer:
        manifest: Manifest = merge(files, io.BytesIO(), producer=given)
        return manifest.producer

    assert producer(left, right) == producer(right, left) == Producer("argosy", "0.2")
    assert producer(left, right, given=Producer("argosy", "9")) == Producer("argosy", "9")


# --------------------------------------------------------------------------------------------- keys


@pytest.mark.parametrize(
    "field",
    [
        {"family": "other"},
        {"products": ("0x1",)},
        {"system": "linux-gnu"},
        {"numeric": {"precision": "fp16"}},
        {"dims": {"N": 4}},
        {"toolchain": {"triton": "9"}},
    ],
)
def test_key_covers_what_makes_a_variant_what_it_is(field: dict[str, Any]) -> None:
    assert samples.variant("a", **field).key != samples.variant("a").key != samples.variant("b").key


def test_key_leaves_out_what_is_only_told() -> None:
    told = {"words": "x", "portable": True, "provenance": {"by": "x"}, "options": {"debug": True}}
    assert samples.variant("a", **told).key == samples.variant("a").key
    turned = samples.variant("a", numeric={"allow_tf32": False, "precision": "fp32"})
    assert variant_key(turned) == samples.variant("a").key
