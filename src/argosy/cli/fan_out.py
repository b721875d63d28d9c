"""`compile` for many: files of their own for each arch, and what each machine of a fleet gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from argosy.cli.console import Console, table
from argosy.errors import ArgosyError, UsageError

if TYPE_CHECKING:
    from argosy.artifact.artifact import Artifact
    from argosy.drivers.machine import Machine
    from argosy.targets.base import Target

__all__ = ["PATTERN", "failed_json", "fleet_json", "fleet_rows", "nodes", "paths", "tell_failed"]

PATTERN: Final = "dist/{arch}/{name}.argosy"


def paths(pattern: str | None, model: str, targets: Sequence[Target]) -> dict[Target, Path]:
    """The file of each target. Raises UsageError for a pattern that does not tell them apart."""
    pattern, name = pattern or PATTERN, Path(model).stem
    found: dict[Target, Path] = {}
    for target in targets:
        try:
            path = Path(pattern.format(arch=target.arch, name=name))
        except (KeyError, IndexError, ValueError) as error:
            raise UsageError(
                f"-o {pattern} is no pattern: {error}", hint="it may hold {arch} and {name}, the name of the model"
            ) from error
        other = next((known for known, taken in found.items() if taken == path), None)
        if other is not None:
            hint = f"put {{arch}} into it, as in {PATTERN}" if target.arch != other.arch else "compile each by itself"
            raise UsageError(f"-o {pattern} gives {other.arch} and {target.arch} the same file {path}", hint=hint)
        found[target] = path
    return found


def nodes(files: Sequence[str]) -> dict[str, Machine]:
    """The machines that files describe, by name. Raises UsageError."""
    from argosy.drivers.machine import read_machine

    found: dict[str, Machine] = {}
    for file in files:
        name = Path(file).stem
        if name in found:
            raise UsageError(f"two files of --fleet are called {name}", hint="name each file after its machine")
        found[name] = read_machine(file)
    return found


def fleet_json(machines: Mapping[str, Machine], artifacts: Sequence[Artifact]) -> dict[str, Any]:
    """What each machine runs of the artifacts: the variant, the answer and the reason."""
    from argosy.runtime.selection import judge

    found: dict[str, Any] = {}
    for name, machine in machines.items():
        slim = all(artifact.is_slim for artifact in artifacts)
        variants = [variant for artifact in artifacts for variant in artifact.variants]
        best = judge(variants, slim=slim, machine=machine).choices[0]
        found[name] = {"variant": best.words, "answer": best.answer, "reason": best.reason}
    return found


def fleet_rows(told: Mapping[str, Any]) -> list[str]:
    """The same as lines."""
    rows = [(name, each["variant"], f"{each['answer']}: {each['reason']}") for name, each in told.items()]
    return table(rows, header=["machine", "runs", "because"])


def failed_json(failures: Mapping[Target, ArgosyError]) -> dict[str, Any]:
    """Why there is no code for some targets."""
    return {
        target.arch: {"what": error.what, "where": error.where, "hint": error.hint}
        for target, error in failures.items()
    }


def tell_failed(failures: Mapping[Target, ArgosyError], console: Console) -> int:
    """The same on stderr; the exit code is that of the first error, 0 where there is none."""
    for target, error in failures.items():
        place = f"{error.where}: " if error.where else ""
        console.error(f"{target.arch} gets no code: {place}{error.what}", error.hint)
    return next((error.exit_code for error in failures.values()), 0)
