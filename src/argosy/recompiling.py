"""Makes the code of an artifact again, or for more archs, from the program inside it.

Program and weights stay as they are, byte for byte; what a new plan brings of its own is added.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import msgspec

from argosy.artifact.artifact import PRODUCER, Artifact
from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.artifact_writer import Hashed, array_bytes, write_artifact
from argosy.artifact.manifest import SLIM, Option, VariantRecord, WeightRecord, variant_folder, weight_entry
from argosy.artifact.plan import PLAN
from argosy.artifact.subset import check_exact, subset
from argosy.compiler import compile_variants, resolve_targets
from argosy.errors import ArtifactError, UsageError
from argosy.options import CompileOptions
from argosy.targets.base import Lowered, Target, find_maker

__all__ = ["recompile"]

_Job: TypeAlias = tuple[Target, dict[str, Option], dict[str, int]]
"""A target, the options that change numbers, and specialised dims."""


def recompile(
    artifact: Artifact | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    targets: Sequence[str | Target] = (),
    mode: str = "balanced",
    strict: bool = False,
    debug: bool = False,
    jobs: int | None = None,
) -> Artifact:
    """Compile the program inside an artifact again, write the artifact with the new code to `path`, and open it.

    Without `targets` all variants are made again, each for its own arch, device, dims and options; with them those of
    the targets, for all dims and options that the artifact has, and the other variants stay. A variant replaces the one
    that differs from it in toolchain alone. Raises ArtifactError for a slim artifact, UsageError where there is
    nothing to compile, and whatever compiling raises.
    """
    opened = artifact if isinstance(artifact, Artifact) else Artifact.open(artifact)
    file = opened.as_file()
    if SLIM in file.manifest.features:
        raise ArtifactError(
            "a slim artifact can't be recompiled: it holds no program",
            where=file.where,
            hint="compile the model again, without --slim",
        )
    check_exact(file)
    wanted = _jobs(file, resolve_targets(targets) if targets else ())
    if not wanted:
        raise UsageError(
            "there is nothing to compile: it holds no variant, and no arch that has code is given",
            where=file.where,
            hint="name archs, on the command line by --arch",
        )
    program = opened.program()
    made: list[Lowered] = []
    for numeric in _distinct(numeric for _, numeric, _ in wanted):
        try:
            options = CompileOptions.of_numeric(numeric, mode=mode, strict=strict, debug=debug, jobs=jobs)
        except UsageError as error:
            raise ArtifactError(
                f"it was compiled with {error.what}",
                where=file.where,
                hint="recompile it with the argosy version that wrote it, or compile the model again",
            ) from error
        made += compile_variants(program, [(target, dims) for target, own, dims in wanted if own == numeric], options)
    _write(file, made, path)
    return Artifact.open(path)


def _jobs(file: ArtifactFile, targets: Sequence[Target]) -> list[_Job]:
    """What to compile, without repetitions."""
    variants = file.manifest.variants
    if not targets:
        return _distinct((find_maker(each, file.where), dict(each.numeric), dict(each.dims)) for each in variants)
    plain = CompileOptions(precision=str(file.manifest.options.get("precision", "fp32")))
    forms = _distinct((variant.numeric, variant.dims) for variant in variants) or [(plain.numeric(), {})]
    return [
        (target, dict(numeric), dict(dims)) for target in targets if target.needs_variant for numeric, dims in forms
    ]


def _distinct(items: Iterable[Any]) -> list[Any]:
    """The items without those that equal an earlier one."""
    found: list[Any] = []
    for item in items:
        if item not in found:
            found.append(item)
    return found


def _identity(variant: VariantRecord) -> tuple[object, ...]:
    """What a variant's key covers, but for the toolchain."""
    return (variant.family, variant.arch, variant.products, variant.system, variant.numeric, variant.dims)


def _write(file: ArtifactFile, made: Sequence[Lowered], path: str | os.PathLike[str]) -> None:
    """Write the artifact with the variants that were made in place of their predecessors."""
    made_again = [_identity(lowered.variant.record) for lowered in made]
    manifest, contents = subset(file, [v for v in file.manifest.variants if _identity(v) not in made_again])
    fallbacks = [_identity(variant) for variant in file.manifest.variants if variant.fallback]
    records, weights = list(manifest.variants), dict(manifest.weights)
    for lowered in made:
        record = lowered.variant.record
        folder = variant_folder(record.key)
        records.append(msgspec.structs.replace(record, fallback=_identity(record) in fallbacks))
        contents[f"{folder}plan.msgpack"] = PLAN.to_msgpack(lowered.variant.plan)
        contents |= {folder + name: entry for name, entry in lowered.variant.entries.items()}
        for digest, literal in lowered.weights.items():
            if digest not in weights:
                weights[digest] = WeightRecord(literal.dtype.name, literal.shape, literal.nbytes, "embedded")
                contents[weight_entry(digest)] = Hashed(array_bytes(literal.stored), literal.digest)
    complete = msgspec.structs.replace(manifest, producer=PRODUCER, variants=tuple(records), weights=weights)
    write_artifact(path, complete, contents)
