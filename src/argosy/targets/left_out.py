"""Whether there is what is to be left out of a compile (`CompileOptions.without`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from argosy.errors import UsageError
from argosy.options import STAGES, CompileOptions
from argosy.passes.manager import pass_names
from argosy.registry import did_you_mean
from argosy.rewrite.rules import rule_names
from argosy.targets.base import Target

__all__ = ["check_left_out"]


def check_left_out(targets: Sequence[Target], options: CompileOptions) -> None:
    """Raise UsageError, with a suggestion, for a part of the compiler to leave out that there is not."""
    known: Mapping[str, Callable[[], Iterable[str]]] = {
        "pass": pass_names,
        "rule": rule_names,
        "stage": lambda: STAGES,
        "solution": lambda: {name for target in targets for name in target.solution_names()},
    }
    for kind, names in known.items():
        there = sorted(names()) if options.leaves_out(kind) else []
        for name in options.leaves_out(kind):
            if name not in there and targets:
                hint = did_you_mean(name, there) or f"there are: {', '.join(there)}"
                raise UsageError(f"there is no {kind} {name!r} to leave out", hint=hint)
