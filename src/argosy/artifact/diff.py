"""In what two artifacts differ: programs, options, weights and variants.

What they only tell of themselves (producer, schema, names inside of the program, provenance) is no difference, and
neither is where entries lie.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields

from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.differences import (
    interface_differences,
    option_differences,
    variant_differences,
    weight_differences,
)
from argosy.artifact.manifest import SLIM

__all__ = ["Difference", "diff"]


@dataclass(frozen=True, slots=True)
class Difference:
    """In what two artifacts differ, a line for each; nothing where they are the same to whoever runs them."""

    program: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))


def diff(left: ArtifactFile, right: ArtifactFile) -> Difference:
    """In what two artifacts differ; the lines name both by their paths. Contents are compared by their hashes."""
    return Difference(
        (*_slim(left, right), *interface_differences(left, right)),
        tuple(option_differences(left, right)),
        tuple(_weights(left, right)),
        tuple(_variants(left, right)),
    )


def _slim(left: ArtifactFile, right: ArtifactFile) -> list[str]:
    slim = [SLIM in artifact.manifest.features for artifact in (left, right)]
    if slim[0] == slim[1]:
        return []
    whole, without = (right, left) if slim[0] else (left, right)
    return [f"{whole.where} holds the program, {without.where} is slim"]


def _weights(left: ArtifactFile, right: ArtifactFile) -> list[str]:
    """Weights of the programs by name, and where both have them: in the file, beside it, or nowhere."""
    lines = []
    if not any(SLIM in artifact.manifest.features for artifact in (left, right)):
        lines += weight_differences(left, right)
    mine, theirs = left.manifest.weights, right.manifest.weights
    moved = Counter(
        (mine[digest].storage, theirs[digest].storage)
        for digest in mine.keys() & theirs.keys()
        if mine[digest].storage != theirs[digest].storage
    )
    for (one, other), count in sorted(moved.items()):
        what = "a weight that both name is" if count == 1 else f"{count} weights that both name are"
        lines.append(f"{what} {one} in {left.where} and {other} in {right.where}")
    return lines


def _variants(left: ArtifactFile, right: ArtifactFile) -> list[str]:
    """Variants by key: what they cover is the same, so the others are other variants."""
    mine, theirs = ({variant.key: variant for variant in a.manifest.variants} for a in (left, right))
    lines = []
    known = theirs | mine
    for key in sorted(known, key=lambda key: (known[key].words, key not in mine, key)):
        one, other = mine.get(key), theirs.get(key)
        if one is None or other is None:
            variant, where = (one, left.where) if one is not None else (theirs[key], right.where)
            lines.append(f"the variant {variant.words!r} ({key[:12]}) is only in {where}")
            continue
        unequal = variant_differences(left, one, right, other)
        if one.fallback != other.fallback:
            unequal.append("fallback")
        if unequal:
            lines.append(f"the variant {one.words!r} ({key[:12]}) differs in {', '.join(unequal)}")
    return lines
