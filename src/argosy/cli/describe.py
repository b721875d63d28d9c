"""Artifacts and their parts in words and as JSON: what `compile`, `list`, `inspect` and `merge` show alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from argosy.artifact.artifact import Artifact
    from argosy.artifact.manifest import ValueInfo, VariantRecord
    from argosy.artifact.plan import PlanRecord, Step
    from argosy.targets.base import Target

__all__ = [
    "artifact_json",
    "bytes_text",
    "dims_text",
    "needs_text",
    "numbers_text",
    "requirements_text",
    "support_tier",
    "values_json",
    "variant_bytes",
    "variant_json",
    "variant_needs",
    "variant_rows",
]

_NAMED: Final = 4
"""Features that are named one by one."""


def bytes_text(count: int) -> str:
    """A number of bytes for people: 512 B, 1.2 kB, 3.4 MB."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def support_tier(arch: str) -> str:
    """How far an arch has been tried."""
    from argosy.targets.base import known_archs

    return next((info.tier for info in known_archs() if info.name == arch), "unknown to this version")


def numbers_text(target: Target) -> str:
    """The numbers that a target compiles for, by where they are from: `num_cu 304, num_chiplets 8 (mi300x); …`."""
    sources: dict[str, list[str]] = {}
    for number in target.numbers():
        sources.setdefault(number.source, []).append(f"{number.name} {number.value}")
    return "; ".join(f"{', '.join(numbers)} ({source})" for source, numbers in sources.items())


def dims_text(dims: dict[str, int]) -> str:
    """Specialised dims: `N=8`, or `any size`."""
    return ", ".join(f"{name}={size}" for name, size in dims.items()) or "any size"


def variant_bytes(artifact: Artifact, variant: VariantRecord) -> int:
    """Bytes of a variant's own entries in the file."""
    from argosy.artifact.manifest import variant_folder

    folder = variant_folder(variant.key)
    return sum(entry.stored for name, entry in artifact.manifest.entries.items() if name.startswith(folder))


def variant_rows(artifact: Artifact) -> list[tuple[str, str, str, str]]:
    """A row for each variant: words, key, sizes, bytes. `ref` comes last, where the artifact holds the program."""
    rows = [
        (
            variant.words,
            variant.key[:12],
            dims_text(variant.dims) + (f", {_kind(variant)}" if variant.portable else ""),
            bytes_text(variant_bytes(artifact, variant)),
        )
        for variant in artifact.variants
    ]
    if not artifact.is_slim:
        rows.append(("ref", "", "any size, portable", "the program itself"))
    return rows


def _kind(variant: VariantRecord) -> str:
    return "fallback" if variant.fallback else "portable"


def requirements_text(variant: VariantRecord) -> str:
    """What a machine must have beyond the arch: `driver 12.8, 1.2 MB of device memory`, or `nothing more`."""
    needs = variant.requirements
    words = [f"driver {needs.minimum_driver}"] if needs.minimum_driver else []
    words += [f"{bytes_text(needs.memory)} of device memory"] if needs.memory else []
    # Code that depends on a system, a CPU's, needs every feature; other code names the archs that run it.
    joint, last = (" ", " and ") if variant.system else (" or ", " or ")
    named = list(needs.features[:_NAMED])
    more = len(needs.features) - len(named)
    words += [joint.join(named) + (f"{last}{more} more" if more else "")] if named else []
    return ", ".join(words) or "nothing more"


def variant_json(artifact: Artifact, variant: VariantRecord) -> dict[str, Any]:
    """A variant's record as plain data, with the bytes that it takes."""
    import msgspec

    told: dict[str, Any] = msgspec.to_builtins(variant)
    kind = {"portable": variant.portable, "fallback": variant.fallback}
    return {**told, **kind, "bytes": variant_bytes(artifact, variant)}


def variant_needs(artifact: Artifact, variant: VariantRecord) -> dict[str, Any]:
    """What a variant does on the host, by op, and the bytes of device memory that a run takes, 0 for none.

    `by_size` says that it depends on the sizes of a run: then these are the least that one may take.
    """
    from argosy.artifact.plan import steps_in

    plan = artifact.plan(variant.key)
    host: dict[str, int] = {}
    for step in steps_in(plan.body):
        for name in _evaluated(step, plan):
            host[name] = host.get(name, 0) + 1
    return {
        "host_steps": dict(sorted(host.items())),
        "device_memory": variant.requirements.memory,
        "by_size": bool(plan.symbols) and any(arena.space == "device" for arena in plan.arenas),
    }


def _evaluated(step: Step, plan: PlanRecord) -> Iterator[str]:
    """The name of what a step evaluates on the host, if anything: what is fused by the ops in it."""
    from argosy.artifact.plan import EvaluateStep
    from argosy.artifact.program import ModuleValue

    if isinstance(step, EvaluateStep):
        held = [value for value in step.attributes.values() if isinstance(value, ModuleValue)]
        inner = [each.op for value in held for each in plan.modules[value.index].instructions if each.op != "constant"]
        yield " and ".join(dict.fromkeys(inner)) if step.op == "fused" else step.op


def needs_text(needs: dict[str, Any]) -> str:
    """The same in words: `12.3 MB of device memory, 2 host steps (nonzero, unique)`."""
    memory, host = needs["device_memory"], needs["host_steps"]
    words = f"{'at least ' if needs['by_size'] else ''}{bytes_text(memory)} of device memory, " if memory else ""
    if not memory and needs["by_size"]:
        words = "device memory by the sizes of a run, "
    count = sum(host.values())
    named = ", ".join(name if times == 1 else f"{times} {name}" for name, times in host.items())
    return f"{words}{count} host step{'' if count == 1 else 's'}{f' ({named})' if host else ''}"


def values_json(values: tuple[ValueInfo, ...]) -> list[dict[str, Any]]:
    """Inputs or outputs as plain data."""
    return [{"name": value.name, "type": value.type, "dims": value.dims and list(value.dims)} for value in values]


def artifact_json(artifact: Artifact) -> dict[str, Any]:
    """The artifact as plain data, without its entries and weights."""
    manifest = artifact.manifest
    return {
        "file": artifact.where,
        "schema": str(manifest.schema),
        "producer": f"{manifest.producer.name} {manifest.producer.version}",
        "model": {"name": manifest.model.name, "hash": manifest.model.hash},
        "inputs": values_json(manifest.inputs),
        "outputs": values_json(manifest.outputs),
        "symbols": {symbol.name: [symbol.lower, symbol.upper] for symbol in manifest.symbols},
        "features": list(manifest.features),
        "variants": [variant_json(artifact, variant) for variant in artifact.variants],
        "ref": not artifact.is_slim,
        "weights": {
            "count": len(manifest.weights),
            "bytes": sum(weight.bytes for weight in manifest.weights.values()),
            "storage": sorted({weight.storage for weight in manifest.weights.values()}),
        },
    }
