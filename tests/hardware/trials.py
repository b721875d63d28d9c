"""Trials: artifacts in packs, each with inputs for some runs and what ONNX Runtime gives for them.

A trial is an artifact under its name, and behind it an archive of arrays for each run under `NAME: RUN`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import argosy
from argosy.comparison import Agree, Mismatch, compare
from tests.hardware.packs import Packs, PackWriter

__all__ = ["CHECKS", "MODELS", "Run", "Trial", "add_trial", "read_trial", "said_of", "trial_names"]

MODELS: Final = "models"
"""The stem of packs of real models."""
CHECKS: Final = "checks"
"""The stem of the pack for checks of a device."""
_QUANTISED, _RUNS, _NOTE = "quantised", "runs", "note"


@dataclass(frozen=True, slots=True)
class Run:
    """Inputs by name, and the outputs that are expected, under a name for its sizes."""

    name: str
    inputs: Mapping[str, Any]
    expected: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Trial:
    """An artifact with its runs; `quantised` says how near outputs must be, `note` what else there is to say of it."""

    name: str
    artifact: bytes
    runs: tuple[Run, ...]
    quantised: bool = False
    note: str = ""

    def mismatches(self, session: argosy.Session) -> list[str]:
        """What is wrong with the outputs of a session, each run done twice.

        A run's first time is another way than its second, which goes by a graph: both must give the same bits.
        """
        found: list[str] = []
        for run in self.runs:
            first = session.run(run.inputs)
            wrong = list(compare(run.expected, first, Agree(quantised=self.quantised)))
            again = session.run(run.inputs)
            wrong += [
                Mismatch(name, "a second run gives other bits")
                for name, value in first.items()
                if np.asarray(value).tobytes() != np.asarray(again[name]).tobytes()
            ]
            found += [f"{run.name}: {each}" for each in wrong]
        return found


def add_trial(writer: PackWriter, trial: Trial) -> None:
    """Put a trial into one pack."""
    about = {_QUANTISED: str(int(trial.quantised)), _RUNS: json.dumps([run.name for run in trial.runs])}
    archives = [_archive(run) for run in trial.runs]
    writer.together([trial.artifact, *archives])
    writer.add(trial.name, trial.artifact, about | {_NOTE: trial.note})
    for run, archive in zip(trial.runs, archives, strict=True):
        writer.add(f"{trial.name}: {run.name}", archive)


def read_trial(packs: Packs, name: str) -> Trial:
    """The trial of that name. Raises PackError where it is not there."""
    about = packs.about(name)
    runs = tuple(_read(run, packs.content(f"{name}: {run}")) for run in json.loads(about[_RUNS]))
    return Trial(name, packs.content(name), runs, about[_QUANTISED] == "1", about[_NOTE])


def said_of(packs: Packs, name: str) -> tuple[str, list[str]]:
    """The note on a trial, and the names of its runs."""
    about = packs.about(name)
    return about[_NOTE], json.loads(about[_RUNS])


def trial_names(packs: Packs) -> list[str]:
    """The trials of packs."""
    return [name for name in packs.names if _RUNS in packs.about(name)]


def _archive(run: Run) -> bytes:
    """Inputs and outputs, in their order, as one archive of arrays."""
    buffer = io.BytesIO()
    arrays = {
        f"{kind} {place} {name}": np.asarray(value)
        for kind, values in (("input", run.inputs), ("output", run.expected))
        for place, (name, value) in enumerate(values.items())
    }
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _read(name: str, archive: bytes) -> Run:
    values: dict[str, dict[str, Any]] = {"input": {}, "output": {}}
    with np.load(io.BytesIO(archive), allow_pickle=False) as held:
        for key in held.files:
            kind, _, named = key.split(" ", 2)
            values[kind][named] = held[key]
    return Run(name, values["input"], values["output"])
