"""Which code is asked about: that of a model for targets and sizes, or that of an artifact."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from argosy.artifact.artifact import Artifact
from argosy.artifact.manifest import VariantRecord
from argosy.artifact.plan import PlanRecord
from argosy.compiler import resolve_targets, special_sizes
from argosy.errors import UsageError
from argosy.ir.binding import wanted_values
from argosy.ir.program import Program
from argosy.options import CompileOptions, Dimensions
from argosy.targets.base import Target, find_arch, find_maker
from argosy.targets.left_out import check_left_out

__all__ = ["Code", "codes_of_artifact", "codes_of_model"]


@dataclass(frozen=True, slots=True)
class Code:
    """Code of one target, for sizes by symbol (`dims`), or for any where there are none; `words` tell it.

    `plan` is that of an artifact, where the code is in one.
    """

    target: Target
    options: CompileOptions
    words: str
    dims: Mapping[str, int] = field(default_factory=dict)
    plan: PlanRecord | None = None


def codes_of_model(program: Program, targets: Sequence[Target], options: CompileOptions) -> tuple[Code, ...]:
    """What compiling makes: for each target the code for any size, then that for the sizes that get their own."""
    check_left_out(targets, options)
    plain = replace(options, strict=False)  # a host step is told, not refused
    special = special_sizes(program, options)
    return tuple(
        Code(target, plain, ", ".join([target.arch, *(f"{name}={size}" for name, size in dims.items())]), dims)
        for target in targets
        for dims in ({}, *(special if target.needs_variant else ()))
    )


def codes_of_artifact(artifact: Artifact, archs: Sequence[str | Target], dims: Dimensions) -> tuple[Code, ...]:
    """What is in an artifact, or of it what has one of these archs, and what runs of these sizes take.

    Raises UsageError for an arch without code in it, and for dims that the model hasn't.
    """
    taken = tuple(_taken(artifact, dims))
    names = [name for each in archs for name in (each.split(",") if isinstance(each, str) else [each])]
    variants = dict.fromkeys(v.key for name in names for v in _of_arch(taken, name, artifact.where)) if names else None
    found = [
        Code(
            find_maker(each, artifact.where),
            CompileOptions.of_numeric(each.numeric),
            each.words,
            each.dims,
            artifact.plan(each.key),
        )
        for each in taken
        if variants is None or each.key in variants
    ]
    reference = find_arch("ref")
    if not found or any(reference in resolve_targets([name]) for name in names):
        found.append(Code(reference, CompileOptions(), reference.arch))
    return tuple(found)


def _of_arch(variants: Sequence[VariantRecord], name: str | Target, where: str) -> Sequence[VariantRecord]:
    targets = resolve_targets([name])
    archs = {target.arch for target in targets}
    found = [variant for variant in variants if variant.arch in archs]
    if not found and any(target.needs_variant for target in targets):
        held = ", ".join(dict.fromkeys(variant.arch for variant in variants))
        raise UsageError(
            f"it has no code for {name if isinstance(name, str) else name.arch}",
            where=where,
            hint=f"it has code for {held}" if held else "it has code for no arch: ref runs the program",
        )
    return found


def _taken(artifact: Artifact, wanted: Dimensions) -> Iterator[VariantRecord]:
    """The variants that runs of some of the wanted sizes take: one for just these sizes before one for any."""
    values = wanted_values(artifact.program().inputs, wanted)
    choices = {name: [size] for name, size in values.items() if isinstance(size, int)}
    choices |= {request.name: list(request.values) for request in wanted.specialised}
    every = [dict(zip(choices, sizes, strict=True)) for sizes in itertools.product(*choices.values())]
    limits = {request.name: request for request in wanted.dims if not request.values}
    for variant in artifact.variants:
        is_within = all(
            limits[name].lower <= size <= (size if (most := limits[name].upper) is None else most)
            for name, size in variant.dims.items()
            if name in limits
        )
        if is_within and any(_takes(variant, sizes, artifact.variants) for sizes in every):
            yield variant


def _takes(variant: VariantRecord, sizes: Mapping[str, int], variants: Sequence[VariantRecord]) -> bool:
    """Whether a run of these sizes, and of others that are not known, may take a variant rather than another one."""

    def fits(each: VariantRecord) -> bool:
        return all(sizes.get(name, size) == size for name, size in each.dims.items())

    return fits(variant) and not any(
        fits(other)
        and (other.arch, other.products, other.numeric) == (variant.arch, variant.products, variant.numeric)
        and variant.dims.items() < other.dims.items()
        and other.dims.keys() <= sizes.keys()
        for other in variants
    )
