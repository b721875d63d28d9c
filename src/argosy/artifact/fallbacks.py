"""Which portable variants a merge keeps.

An artifact that is compiled for several archs may hold portable code by the way; which one a fleet falls back to is
*named*, never inferred. A fallback is named by a file that holds nothing else. A previous merge passes on its own,
unless another one is named for the same machines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.differences import variant_differences
from argosy.artifact.manifest import VariantRecord, fallback_slot
from argosy.errors import ArtifactError

__all__ = ["Fallbacks", "Held", "LeftOut", "choose_fallbacks"]

Held: TypeAlias = tuple[ArtifactFile, VariantRecord]

_PORTABLE: Final = "portable are PTX, AMD's generic archs and the lowest level of each CPU: argosy arches lists them"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A variant that a merge leaves out: `source` is the input that holds it, `reason` a sentence."""

    variant: VariantRecord
    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Fallbacks:
    """The fallbacks of a merge (each by the files that hold it), what is left out, and what clashes, a line each."""

    chosen: tuple[Sequence[Held], ...]
    left_out: tuple[LeftOut, ...]
    clashes: tuple[str, ...]


def choose_fallbacks(inputs: Sequence[ArtifactFile], named: Sequence[ArtifactFile]) -> Fallbacks:
    """The fallbacks of a merge of `inputs`, for which the files `named` hold one each.

    Raises ArtifactError for a file that can't name one.
    """
    asked = _by_slot([(artifact, _only_variant(artifact)) for artifact in named])
    held = [(artifact, variant) for artifact in inputs for variant in artifact.manifest.variants if variant.portable]
    inherited = _by_slot([(artifact, variant) for artifact, variant in held if variant.fallback])
    chosen = [asked.get(slot) or inherited[slot] for slot in sorted(asked.keys() | inherited.keys())]
    return Fallbacks(
        tuple(chosen),
        tuple(_left_out(held, asked, {candidates[0][1].key: candidates[0] for candidates in chosen})),
        tuple(line for candidates in chosen for line in _clashes(candidates)),
    )


def _left_out(
    held: Sequence[Held], asked: Mapping[tuple[str, ...], Sequence[Held]], kept: Mapping[str, Held]
) -> Iterator[LeftOut]:
    """The portable variants of the inputs that are not those that are kept, by key."""
    for artifact, variant in held:
        one = kept.get(variant.key)
        if one is not None and not variant_differences(*one, artifact, variant):
            continue
        named = asked.get(fallback_slot(variant))
        if not variant.fallback:
            yield LeftOut(variant, artifact.where, "it is portable, and not named with --fallback")
        elif named:
            other, record = named[0]
            reason = f"the fallback {record.words!r} of {other.where} replaces it"
            yield LeftOut(variant, artifact.where, reason)


def _by_slot(held: Sequence[Held]) -> dict[tuple[str, ...], list[Held]]:
    slots: dict[tuple[str, ...], list[Held]] = {}
    for artifact, variant in held:
        slots.setdefault(fallback_slot(variant), []).append((artifact, variant))
    return slots


def _clashes(candidates: Sequence[Held]) -> list[str]:
    """What keeps candidates for one slot from being one fallback: they must be equal in every byte."""
    (first, variant), *others = candidates
    how = "inherited" if variant.fallback else "named"
    lines = []
    for artifact, other in others:
        if other.key != variant.key:
            words = f"{variant.words!r} of {first.where} and {other.words!r} of {artifact.where}"
            lines.append(f"two fallbacks are {how} for the same machines: {words}")
        elif unequal := variant_differences(first, variant, artifact, other):
            both = f"{first.where} and {artifact.where}"
            lines.append(f"the fallback {variant.words!r} is {how} by {both}, but differs in {', '.join(unequal)}")
    return lines


def _only_variant(artifact: ArtifactFile) -> VariantRecord:
    """The variant of a file that names a fallback."""
    variants = artifact.manifest.variants
    what, hint = "", ""
    if any(variant.fallback for variant in variants):
        what = "a previous merge can't be named as a fallback"
        hint = "give it as an input: its fallbacks are passed on"
    elif len(variants) > 1:
        words = ", ".join(variant.words for variant in variants)
        what = f"a fallback's file holds one portable variant and no other, this one has {len(variants)}: {words}"
        hint = "argosy split makes a file for each arch"
    elif not variants:
        what, hint = "it holds no variant, so it can't be a fallback", f"compile it for a portable arch; {_PORTABLE}"
    elif not variants[0].portable:
        what = f"its variant {variants[0].words!r} is not portable, so it can't be a fallback"
        hint = f"give it as an input; {_PORTABLE}"
    if what:
        raise ArtifactError(what, where=artifact.where, hint=hint)
    return variants[0]
