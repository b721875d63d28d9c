"""In what two artifacts differ, a line each: what keeps them from being of one program, and two variants of one key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.manifest import EntryRecord, Manifest, ValueInfo, VariantRecord, variant_folder
from argosy.artifact.program import (
    InlineLiteral,
    LiteralRef,
    LiteralValue,
    SplatLiteral,
    StringsLiteral,
    values_in,
)

__all__ = [
    "MAX_LINES",
    "interface_differences",
    "option_differences",
    "program_differences",
    "variant_differences",
    "variant_entries",
    "weight_differences",
]

MAX_LINES: Final = 20
"""Differing weights that are named one by one; a model that was trained again differs in all of them."""

_SMALL: Final = (InlineLiteral, SplatLiteral, StringsLiteral)
_TOLD_BY_MERGES: Final = ("fallback", "provenance")


def program_differences(left: ArtifactFile, right: ArtifactFile) -> list[str]:
    """What keeps two artifacts, neither slim, from being of one program: a line for each, naming both sides."""
    return [
        *interface_differences(left, right),
        *option_differences(left, right),
        *weight_differences(left, right),
    ]


def interface_differences(left: ArtifactFile, right: ArtifactFile) -> list[str]:
    """In what the programs differ, seen from outside: hash, inputs, outputs, bounds of dims."""
    a, b = left.manifest, right.manifest
    lines: list[str] = []
    if a.model.hash != b.model.hash:
        lines.append(
            f"the programs differ: {left.where} holds {a.model.name!r} ({a.model.hash[:16]}), "
            f"{right.where} holds {b.model.name!r} ({b.model.hash[:16]})"
        )
    for what, ours, theirs in (("input", a.inputs, b.inputs), ("output", a.outputs, b.outputs)):
        lines += _value_differences(what, ours, theirs, left.where, right.where)
    bounds = [{symbol.name: (symbol.lower, symbol.upper) for symbol in m.symbols} for m in (a, b)]
    return [*lines, *_unequal("symbol", bounds[0], bounds[1], left, right)]


def option_differences(left: ArtifactFile, right: ArtifactFile) -> list[str]:
    """Options of the whole file that differ."""
    return _unequal("option", left.manifest.options, right.manifest.options, left, right)


def _value_differences(
    what: str, ours: Sequence[ValueInfo], theirs: Sequence[ValueInfo], left: str, right: str
) -> Iterator[str]:
    mine, other = ({value.name: value for value in values} for values in (ours, theirs))
    for name in sorted(mine.keys() | other.keys()):
        x, y = mine.get(name), other.get(name)
        if x is None or y is None:
            yield f"the {what} {name!r} is only in {left if y is None else right}"
        elif x != y:
            yield f"the {what} {name!r} is {x.type} in {left} and {y.type} in {right}"
    if set(mine.values()) == set(other.values()) and ours != theirs:
        yield f"the {what}s are in another order in {right} than in {left}"


def _unequal(
    what: str, a: Mapping[str, object], b: Mapping[str, object], left: ArtifactFile, right: ArtifactFile
) -> list[str]:
    return [
        f"the {what} {name!r} is {a.get(name)} in {left.where} and {b.get(name)} in {right.where}"
        for name in sorted(a.keys() | b.keys())
        if a.get(name) != b.get(name)
    ]


def weight_differences(left: ArtifactFile, right: ArtifactFile) -> list[str]:
    """Weights of the programs, neither slim, that differ in type, dims or content (by hash).

    The hash of a model leaves names of weights out, so a weight that only has another name is no difference.
    """
    mine, theirs = _program_weights(left), _program_weights(right)
    contents = set(mine.values()), set(theirs.values())
    if contents[0] == contents[1]:
        return []
    changed = [
        f"the weight {name} {_changed(mine[name], theirs[name], left.where, right.where)}"
        for name in sorted(mine.keys() & theirs.keys())
        if mine[name] != theirs[name]
    ]
    lonely = [
        f"the weight {name} is only in {artifact.where}"
        for artifact, weights, others, known in (
            (left, mine, theirs, contents[1]),
            (right, theirs, mine, contents[0]),
        )
        for name, weight in sorted(weights.items(), key=lambda item: item[0])
        if name not in others and weight not in known
    ]
    lines = changed + lonely
    return lines[:MAX_LINES] + ([f"and {len(lines) - MAX_LINES} more weights"] if len(lines) > MAX_LINES else [])


def _changed(mine: LiteralValue, theirs: LiteralValue, left: str, right: str) -> str:
    kinds = [_type_text(weight) for weight in (mine, theirs)]
    if kinds[0] != kinds[1]:
        return f"is {kinds[0]} in {left} and {kinds[1]} in {right}"
    return f"differs between {left} and {right}"


def _type_text(weight: LiteralValue) -> str:
    dtype = "string" if isinstance(weight, StringsLiteral) else weight.dtype
    return f"{dtype}[{', '.join(map(str, weight.dims))}]"


def _program_weights(artifact: ArtifactFile) -> dict[str, LiteralValue]:
    """The constants of the program by their names in the model; a large one without a name by its hash."""
    found: dict[str, LiteralValue] = {}
    for module in artifact.read_program().modules:
        for instruction in module.instructions:
            name = next(filter(None, instruction.names), "")
            for attribute in instruction.attributes.values():
                for value in values_in(attribute):
                    if isinstance(value, LiteralRef):
                        found.setdefault(repr(name) if name else value.sha256[:16], value)
                    elif isinstance(value, _SMALL) and name and instruction.op == "constant":
                        found.setdefault(repr(name), value)
    return found


def variant_entries(manifest: Manifest, variant: VariantRecord) -> dict[str, EntryRecord]:
    """The entries of a variant by their names in the file."""
    folder = variant_folder(variant.key)
    return {name: entry for name, entry in manifest.entries.items() if name.startswith(folder)}


def variant_differences(
    left: ArtifactFile, known: VariantRecord, right: ArtifactFile, variant: VariantRecord
) -> list[str]:
    """Fields and entries in which two variants of one key differ; what merges say of them does not count."""
    fields = [
        name
        for name in VariantRecord.__struct_fields__
        if name not in _TOLD_BY_MERGES and getattr(known, name) != getattr(variant, name)
    ]
    contents = [
        {name: entry.sha256 for name, entry in variant_entries(artifact.manifest, record).items()}
        for artifact, record in ((left, known), (right, variant))
    ]
    folder = len(variant_folder(variant.key))
    names = sorted(contents[0].keys() | contents[1].keys())
    return fields + [name[folder:] for name in names if contents[0].get(name) != contents[1].get(name)]
