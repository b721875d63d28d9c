"""`argosy inspect`: what is inside an artifact."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from argosy.cli.code_text import HEADER, code_json, code_rows, kernel_texts
from argosy.cli.console import Console, table
from argosy.cli.describe import artifact_json, bytes_text, values_json, variant_json, variant_rows
from argosy.cli.parser import Parser
from argosy.cli.plan_text import plan_lines
from argosy.cli.sources import open_artifact
from argosy.cli.verb import verb
from argosy.errors import UsageError

if TYPE_CHECKING:
    from argosy.artifact.artifact import Artifact
    from argosy.artifact.manifest import VariantRecord

__all__ = ["inspect_artifact"]


def configure(parser: Parser) -> None:
    """Options of the verb."""
    parser.add_argument("file", metavar="FILE", help="an artifact")
    parser.add_argument("--variant", metavar="V", help="one variant: its arch, its words, or the beginning of its key")
    parser.add_argument("--plan", action="store_true", help="the steps that a variant runs (of all, or of --variant)")
    parser.add_argument("--code", action="store_true", help="the kernels of a variant (of all, or of --variant)")
    parser.add_argument(
        "--kernel",
        metavar="K",
        help="with --code: all about the kernels whose names hold K, with assembly, source and stages (extra gpu)",
    )
    parser.add_argument("--weights", action="store_true", help="every weight, largest first")


@verb(
    "inspect",
    group="Artifacts",
    summary="show what is inside an artifact",
    configure=configure,
    examples=(
        ("argosy inspect model.argosy", "the model, its interface, variants and sizes"),
        ("argosy inspect model.argosy --plan --json", "the plans, as they are stored"),
        ("argosy inspect model.argosy --code", "each kernel: registers, shared memory, spills, matrix instructions"),
        ("argosy inspect model.argosy --code --kernel softmax", "how it came about: source, stages, assembly"),
    ),
)
def inspect_artifact(arguments: argparse.Namespace, console: Console) -> int:
    """The manifest in words; more of it as asked."""
    artifact = open_artifact(arguments.file)
    chosen = [_find(artifact, arguments.variant)] if arguments.variant else list(artifact.variants)
    if arguments.kernel and not arguments.code:
        raise UsageError("--kernel is given, and no --code", hint="give --code too")
    if (arguments.plan or arguments.code) and not chosen:
        raise UsageError(
            "it has no variant, so no plan and no code: ref runs the program", hint="argosy read shows the program"
        )
    if arguments.json:
        console.json(_json(artifact, chosen, arguments))
        return 0
    if arguments.variant:
        _show_variant(artifact, chosen[0], console)
    elif not (arguments.plan or arguments.code or arguments.weights):
        _show(artifact, console)
    if arguments.plan:
        for variant in chosen:
            console.write(console.paint(f"plan of {variant.words}", "bold"))
            console.write("\n".join(f"  {line}" for line in plan_lines(artifact.plan(variant.key))))
    if arguments.code:
        for variant in chosen:
            _show_code(artifact, variant, arguments.kernel, console)
    if arguments.weights:
        _show_weights(artifact, console)
    return 0


def _find(artifact: Artifact, asked: str) -> VariantRecord:
    from argosy.artifact.subset import find_variants

    found = find_variants(artifact.as_file(), asked)
    if len(found) > 1:
        raise UsageError(f"{len(found)} variants are meant by {asked!r}", hint="give more of the key")
    return found[0]


def _json(artifact: Artifact, chosen: list[VariantRecord], arguments: argparse.Namespace) -> dict[str, Any]:
    import msgspec

    told = artifact_json(artifact)
    if arguments.variant:
        told["variants"] = [variant_json(artifact, variant) for variant in chosen]
    if arguments.plan:
        told["plans"] = {variant.key: msgspec.to_builtins(artifact.plan(variant.key)) for variant in chosen}
    if arguments.code:
        wanted = arguments.kernel
        told["code"] = {
            variant.key: code_json(artifact, variant, wanted=wanted or "", texts=bool(wanted)) for variant in chosen
        }
    if arguments.weights:
        told["weights"]["entries"] = msgspec.to_builtins(artifact.manifest.weights)
    return told


def _show(artifact: Artifact, console: Console) -> None:
    manifest, paint = artifact.manifest, console.paint
    weights = manifest.weights.values()
    stored = ", ".join(sorted({weight.storage for weight in weights})) or "inside the program"
    rows = [
        ("schema", f"{manifest.schema}, written by {manifest.producer.name} {manifest.producer.version}"),
        ("model", f"{manifest.model.name or '(no name)'}, hash {manifest.model.hash}"),
        ("weights", f"{len(weights)}, {bytes_text(sum(weight.bytes for weight in weights))}, {stored}"),
        ("features", ", ".join(manifest.features) or "none"),
        ("options", ", ".join(f"{name} = {value}" for name, value in manifest.options.items()) or "none"),
    ]
    console.write("\n".join(table(rows)))
    for title, values in (("inputs", manifest.inputs), ("outputs", manifest.outputs)):
        console.write(paint(title, "bold"))
        console.write("\n".join(f"  {line}" for line in table([(v["name"], v["type"]) for v in values_json(values)])))
    console.write(paint("variants", "bold"))
    console.write("\n".join(f"  {line}" for line in table(variant_rows(artifact))))


def _show_variant(artifact: Artifact, variant: VariantRecord, console: Console) -> None:
    told = variant_json(artifact, variant)
    rows = [
        (name, ", ".join(f"{key}={item}" for key, item in value.items()) if isinstance(value, dict) else value)
        for name, value in told.items()
        if value not in ("", {}, [], (), None)
    ]
    console.write(console.paint(variant.words, "bold"))
    console.write("\n".join(f"  {line}" for line in table(rows)))


def _show_code(artifact: Artifact, variant: VariantRecord, wanted: str | None, console: Console) -> None:
    told = code_json(artifact, variant, wanted=wanted or "", texts=bool(wanted))
    if wanted and not told:
        raise UsageError(f"no kernel of {variant.words} has {wanted!r} in its name", hint="--code lists them")
    console.write(console.paint(f"code of {variant.words}", "bold"))
    if wanted:
        console.write("\n".join(kernel_texts(told)))
        return
    for line in table(code_rows(told), header=HEADER, right=(4, 5, 6, 7, 8, 9)):
        console.write(f"  {line}")


def _show_weights(artifact: Artifact, console: Console) -> None:
    rows = [
        (digest[:16], f"{weight.dtype}[{', '.join(map(str, weight.dims))}]", bytes_text(weight.bytes), weight.storage)
        for digest, weight in sorted(artifact.manifest.weights.items(), key=lambda item: -item[1].bytes)
    ]
    if not rows:
        console.write("all constants lie inside the program")
        return
    for line in table(rows, header=("sha256", "type", "bytes", "where"), right=(2,)):
        console.write(line)
