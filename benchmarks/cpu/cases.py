"""What is measured: a model, what to feed it, and the sizes to which every engine binds its dims.

Argosy and OpenVINO take the sizes beside the model; for ONNX Runtime they are written into a second file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from argosy.options import Dimensions
from benchmarks.models import catalog, real

__all__ = ["Case", "Files", "bind", "cases", "drop_last_softmax", "sizes", "write"]

_MASKED = "Softmax"
"""What a light net ends with. With random weights its result is one-hot, and a comparison of it would check nothing."""


@dataclass(frozen=True, slots=True)
class Case:
    """A model to measure. `quantised` ones are reported apart."""

    name: str
    origin: str
    quantised: bool


@dataclass(frozen=True, slots=True)
class Files:
    """Where the parts of a case lie while it is measured."""

    folder: Path

    @property
    def model(self) -> Path:
        """The model."""
        return self.folder / "model.onnx"

    @property
    def bound(self) -> Path:
        """The model with bound dims."""
        return self.folder / "bound.onnx"

    @property
    def artifact(self) -> Path:
        """What Argosy made of it."""
        return self.folder / "model.argosy"

    @property
    def facts(self) -> Path:
        """What the first process found out, as JSON."""
        return self.folder / "facts.json"

    def told(self) -> dict[str, Any]:
        """The facts."""
        facts: dict[str, Any] = json.loads(self.facts.read_text(encoding="utf-8"))
        return facts

    def feeds(self) -> dict[str, NDArray[Any]]:
        """A value for every input."""
        with np.load(self.folder / "feeds.npz") as stored:
            return {name: stored[f"v{place}"] for place, name in enumerate(json.loads(str(stored["names"])))}

    def keep(self, feeds: Mapping[str, NDArray[Any]]) -> None:
        """Write the inputs down."""
        values = {f"v{place}": value for place, value in enumerate(feeds.values())}
        np.savez(self.folder / "feeds.npz", allow_pickle=False, names=np.array(json.dumps(list(feeds))), **values)


def cases(real_set: str = "per-change") -> list[Case]:
    """The built models, then the real ones of a set."""
    built = [Case(preset.name, "built", quantised=False) for _, preset in catalog.presets()]
    return built + [Case(entry.id, "real", entry.quantised) for entry in real.models(real_set)]


def write(case: Case, files: Files) -> None:
    """Make the model and its inputs. Raises FileNotFoundError where a real model was not fetched."""
    if case.origin == "built":
        model, feeds = catalog.make(case.name), catalog.feeds(case.name)
        if case.name.startswith("light_"):
            drop_last_softmax(model)
    else:
        entry = real.model(case.name)
        model, feeds = onnx.load(entry.path()), entry.feeds()
    onnx.save(model, str(files.model))
    bind(model, feeds)
    onnx.save(model, str(files.bound))
    files.keep(feeds)


def sizes(feeds: Mapping[str, NDArray[Any]]) -> Dimensions:
    """The shapes of the inputs, as Argosy takes them."""
    return Dimensions(shapes=tuple((name, value.shape) for name, value in feeds.items()))


def bind(model: onnx.ModelProto, feeds: Mapping[str, NDArray[Any]]) -> None:
    """Give every input of the graph the shape that it is fed with, in place."""
    for value in model.graph.input:
        if value.name not in feeds:
            continue
        dims = value.type.tensor_type.shape
        del dims.dim[:]
        for size in feeds[value.name].shape:
            dims.dim.add(dim_value=size)


def drop_last_softmax(model: onnx.ModelProto) -> None:
    """Give the logits where the only output is the softmax of them, in place."""
    (output,) = model.graph.output
    for node in model.graph.node:
        if node.op_type == _MASKED and node.output[0] == output.name:
            output.name = node.input[0]
            del output.type.tensor_type.shape.dim[:]
            output.type.tensor_type.ClearField("shape")
            model.graph.node.remove(node)
            return
