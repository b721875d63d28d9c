"""What a reduction found: frozen, as text for people, as plain data for programs, as a folder to hand on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from argosy.artifact.atomic import atomic_file, check_unused, make_folder
from argosy.debugging.reduction.outcome import Kind
from argosy.inputs import write_npz

if TYPE_CHECKING:
    import onnx

__all__ = ["Reduced", "check_folder"]

_SHOWN: Final = 10
"""Nodes that the text names."""


@dataclass(frozen=True, slots=True)
class Reduced:
    """A small model that fails as the whole does, and its inputs.

    `kind` and `failure` say how the whole fails, `remains` how the small model does, where it was asked once more.
    `nodes` are the names and ops that remain of `nodes_before`, those in bodies too. `checks` were spent; `exhausted`
    says that there were no more, so that a smaller model may exist. `script` is the text of `reproduce.py`, empty where
    a function decided.
    """

    kind: Kind
    failure: str
    nodes_before: int
    nodes: tuple[str, ...]
    checks: int
    exhausted: bool
    model: onnx.ModelProto
    inputs: Mapping[str, Any]
    script: str
    remains: str = ""

    def save(self, folder: str | Path) -> None:
        """Write model.onnx, inputs.npz, report.json and, where there is a script, reproduce.py.

        Raises UsageError for a folder that isn't empty.
        """
        check_folder(folder)
        place = Path(folder)
        make_folder(place)
        write_npz(place / "inputs.npz", self.inputs)
        files = {
            "model.onnx": self.model.SerializeToString(),
            "report.json": f"{json.dumps(self.to_json(), indent=2)}\n".encode(),
        }
        if self.script:
            files["reproduce.py"] = self.script.encode()
        for name, content in files.items():
            with atomic_file(place / name) as file:
                file.write(content)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "kind": self.kind,
            "failure": self.failure,
            "remains": self.remains,
            "nodes_before": self.nodes_before,
            "nodes_after": len(self.nodes),
            "nodes": list(self.nodes),
            "inputs": {name: _told(value) for name, value in self.inputs.items()},
            "checks": self.checks,
            "exhausted": self.exhausted,
        }

    def __str__(self) -> str:
        shown = ", ".join([*self.nodes[:_SHOWN], *(["…"] if len(self.nodes) > _SHOWN else [])])
        verb = "remains" if len(self.nodes) == 1 else "remain"
        text = f"{self.kind}: {self.failure}\n" if self.failure else ""
        text += f"{len(self.nodes)} of {self.nodes_before} nodes {verb} after {self.checks} checks: {shown}"
        text += "; there were no more checks, so that fewer nodes may do" if self.exhausted else ""
        return f"{text}\nthere: {self.remains}" if self.remains and self.remains != self.failure else text


def check_folder(folder: str | Path) -> None:
    """Raise UsageError where files of a reduction can't go to `folder`, because something is there."""
    check_unused(Path(folder), "-o FOLDER names another folder, new or empty")


def _told(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return "absent" if value is None else f"{type(value).__name__} of {len(value)}"
