"""Merging: variants of one program come together, everything that differs is named, order does not matter."""

from __future__ import annotations

import io
import itertools
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from argosy.artifact import artifact_file
from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.artifact_writer import write_artifact, write_weights
from argosy.artifact.manifest import (
    PROGRAM_ENTRY,
    ModelInfo,
    Producer,
    SchemaVersion,
    ValueInfo,
    VariantRecord,
    WeightRecord,
    artifact_hash,
    variant_folder,
    variant_key,
    weight_entry,
)
from argosy.artifact.merge import merge
from argosy.artifact.plan import PLAN
from argosy.artifact.program import PROGRAM, InlineLiteral, InstructionRecord, ProgramRecord, SymbolRecord
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


def told(record: VariantRecord, source: ArtifactFile) -> VariantRecord:
    """The record as a merge tells it: where it is from."""
    provenance = {"artifact": artifact_hash(source.manifest), "producer": "argosy 0.1.0"}
    return msgspec.structs.replace(record, provenance=provenance)


def test_variants_come_together_with_provenance_and_weights_stay_once() -> None:
    one, two = samples.variant("gfx000"), samples.variant("sm_00")
    left, right = opened(one), opened(two)
    data = merged(left, right)
    assert data == samples.artifact(told(one, left), told(two, right))
    ArtifactFile.open(data).verify()


def test_provenance_is_the_first_merge_s() -> None:
    left, right, third = (opened(samples.variant(name)) for name in "abc")
    at_once = merged(left, right, third)
    assert merged(ArtifactFile.open(merged(left, right)), third) == at_once
    assert merged(left, ArtifactFile.open(merged(third, right))) == at_once


def test_it_is_told_which_files_hold_each_variant() -> None:
    one, two = samples.variant("a"), samples.variant("b")
    files = [opened(one, where="x"), opened(one, two, where="y")]
    assert merge(files, io.BytesIO()).sources == {one.key: ("x", "y"), two.key: ("y",)}


def test_weights_that_no_variant_and_no_program_uses_are_left_out() -> None:
    """A plan may have weights of its own; the ones of a variant that is left out go with it."""
    own = np.full(2000, 7, np.float32)
    plan = samples.plan({"own": own})
    files = []
    for record in (samples.variant("a"), samples.variant("p", portable=True)):
        manifest, contents = samples.parts(record)
        contents[f"{variant_folder(record.key)}plan.msgpack"] = PLAN.to_msgpack(plan)
        contents[weight_entry(samples.sha256(own))] = own.tobytes()
        rows = {samples.sha256(own): WeightRecord("float32", (2000,), own.nbytes, "embedded")}
        changed = msgspec.structs.replace(manifest, weights=manifest.weights | rows)
        files.append(ArtifactFile.open(samples.written(changed, contents)))
    native, portable = files
    plain = opened(samples.variant("b"))
    assert samples.sha256(own) in ArtifactFile.open(merged(native, plain)).manifest.weights
    assert samples.sha256(own) not in ArtifactFile.open(merged(portable, plain)).manifest.weights


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
    return with_program(file, msgspec.structs.replace(program, modules=(module, *program.modules[1:])), name)


def with_program(file: ArtifactFile, program: ProgramRecord, where: str) -> ArtifactFile:
    raw = PROGRAM.to_msgpack(program)
    contents = {n: file.container.read(n, 1 << 20) for n in file.manifest.entries} | {PROGRAM_ENTRY: raw}
    return ArtifactFile.open(samples.written(file.manifest, contents), where=where)


def test_merge_to_a_path_is_atomic(tmp_path: Path) -> None:
    target = tmp_path / "fleet.argosy"
    target.write_bytes(b"old")
    damaged = bytearray(samples.artifact(samples.variant("b")))
    weight = next(e for n, e in ArtifactFile.open(bytes(damaged)).container.entries.items() if n.startswith("weights/"))
    damaged[weight.start] ^= 1
    with pytest.raises(ArtifactError, match="damaged"):
        merge([ArtifactFile.open(bytes(damaged)), opened(samples.variant("a"))], target)
    assert target.read_bytes() == b"old"
    manifest = merge([opened(samples.variant("a")), opened(samples.variant("b"))], target).manifest
    assert [path.name for path in tmp_path.iterdir()] == ["fleet.argosy"]
    assert ArtifactFile.open(target).manifest == manifest


def test_weights_that_are_not_beside_the_merge_are_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "in").mkdir()
    raw = {samples.sha256(array): array.tobytes() for array in samples.WEIGHTS.values()}
    offsets = write_weights(tmp_path / "in" / "w.bin", raw)
    files = []
    for arch in "ab":
        manifest, contents = samples.parts(samples.variant(arch), storage="omitted")
        rows = {
            digest: msgspec.structs.replace(row, storage="external", path="w.bin", offset=offsets[digest])
            for digest, row in manifest.weights.items()
        }
        write_artifact(tmp_path / "in" / arch, msgspec.structs.replace(manifest, weights=rows), contents)
        files.append(ArtifactFile.open(tmp_path / "in" / arch))
    merge(files, tmp_path / "in" / "fleet")
    assert not caplog.records
    assert ArtifactFile.open(tmp_path / "in" / "fleet").weight(next(iter(raw))).tobytes() == raw[next(iter(raw))]
    merge(files, tmp_path / "fleet")
    assert f"{tmp_path / 'fleet'}: its weights are in 'w.bin', which is not beside it" in caplog.text


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


def test_weights_of_another_type_or_shape_and_small_ones_are_named() -> None:
    conv = samples.WEIGHTS["conv.weight"]
    left = samples.WEIGHTS | {"flat": conv.reshape(-1), "bits": conv}
    right = samples.WEIGHTS | {"flat": conv.reshape(2, -1), "bits": conv.view(np.int32)}
    message = refusal(opened(where="a", weights=left), opened(where="b", weights=right))
    assert "the weight 'flat' is float32[2048] in a and float32[2, 1024] in b" in message
    assert "the weight 'bits' is float32[32, 64] in a and int32[32, 64] in b" in message
    changed = [with_small(opened(where=where), value) for where, value in (("a", b"\0\0\0\0"), ("b", b"\0\0\0\1"))]
    assert "the weight 'scale' differs between a and b" in refusal(*changed)


def with_small(file: ArtifactFile, value: bytes) -> ArtifactFile:
    """The same program with a constant that is too small for an entry of its own."""
    program = file.read_program()
    main = program.modules[0]
    small = InstructionRecord(
        "constant", 1, results=("float32[]",), attributes={"value": InlineLiteral("float32", value)}, names=("scale",)
    )
    module = msgspec.structs.replace(main, instructions=(*main.instructions, small))
    return with_program(file, msgspec.structs.replace(program, modules=(module, *program.modules[1:])), file.where)


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
    assert merged(opened(record), opened(record)) == samples.artifact(told(record, opened(record)))
    manifest, contents = samples.parts(record)
    changed = contents | {f"{variant_folder(record.key)}code/cpu.so": b"\x7fELF other"}
    right = ArtifactFile.open(samples.written(manifest, changed), where="right")
    message = refusal(opened(record, where="left"), right)
    assert "the variant 'a, fp32' is in left and right, but differs in code/cpu.so" in message
    assert "argosy drop" in message
    again = msgspec.structs.replace(record, words="other")
    assert "differs in words" in refusal(opened(record, where="left"), opened(again, where="right"))


def test_slim_artifact_is_refused() -> None:
    manifest, contents = samples.parts(samples.variant())
    del contents[PROGRAM_ENTRY]
    slim = ArtifactFile.open(
        samples.written(msgspec.structs.replace(manifest, features=("slim",)), contents), where="s"
    )
    assert "s: a slim artifact can't be merged" in refusal(opened(), slim)


def test_newer_schema_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    newer = opened(samples.variant("b"), where="b")
    monkeypatch.setattr(artifact_file, "SCHEMA", SchemaVersion(0, 1))
    assert "b: its schema version 0.3 is newer than" in refusal(newer, newer)


def test_producer_is_given_or_the_smallest() -> None:
    left = altered("left", samples.variant("a"), producer=Producer("argosy", "0.3"))
    right = altered("right", samples.variant("b"), producer=Producer("argosy", "0.2"))

    def producer(*files: ArtifactFile, given: Producer | None = None) -> Producer:
        return merge(files, io.BytesIO(), producer=given).manifest.producer

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
