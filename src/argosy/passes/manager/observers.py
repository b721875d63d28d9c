"""Observers of a pipeline: where its time goes, and the module after each pass as a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from argosy.errors import EnvironmentError_
from argosy.ir.printer import print_module
from argosy.passes.manager.pipeline import Stage

__all__ = ["PassTime", "Timings", "dump_into"]


@dataclass(frozen=True, slots=True)
class PassTime:
    """CPU seconds of all runs of one pass; `checking` are those of validation and dead-code removal after it."""

    name: str
    runs: int = 0
    changes: int = 0
    seconds: float = 0.0
    checking: float = 0.0


class Timings:
    """An observer that adds up the time of each pass."""

    def __init__(self) -> None:
        self._times: dict[str, PassTime] = {}

    def __call__(self, stage: Stage) -> None:
        before = self._times.get(stage.name, PassTime(stage.name))
        self._times[stage.name] = PassTime(
            stage.name,
            before.runs + 1,
            before.changes + stage.changed,
            before.seconds + stage.seconds,
            before.checking + stage.checking,
        )

    @property
    def rows(self) -> tuple[PassTime, ...]:
        """A row for each pass, in the order of their first runs."""
        return tuple(self._times.values())

    def __str__(self) -> str:
        lines = [f"{'pass':24}{'runs':>6}{'changes':>9}{'seconds':>10}{'checking':>10}"]
        lines += [f"{r.name:24}{r.runs:6}{r.changes:9}{r.seconds:10.3f}{r.checking:10.3f}" for r in self.rows]
        return "\n".join(lines)


def dump_into(folder: Path) -> Callable[[Stage], None]:
    """An observer that writes the text of the module after each pass that changed it: `003-normalise-fold_shapes.txt`.

    The first call also writes the module as it was given, `000.txt`. Raises EnvironmentError_ for a bad folder.
    """

    def dump(stage: Stage) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if stage.number == 1:
                (folder / "000.txt").write_text(print_module(stage.before), encoding="utf-8")
            if stage.changed:
                file = folder / f"{stage.number:03}-{stage.phase}-{stage.name}.txt"
                file.write_text(print_module(stage.after), encoding="utf-8")
        except OSError as problem:
            raise EnvironmentError_(f"a dump could not be written: {problem}", where=str(folder)) from problem

    return dump
