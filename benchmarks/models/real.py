"""The real models of `real.lock.json`: where their files lie, and seeded inputs to run them with.

An input's shape names its dynamic dims (`batch`, `width`); `RealModel.sizes` holds the bindings that tests
use, the first being the size that the figures in the docs are measured at.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from benchmarks.models.inputs import Input, make_feeds

__all__ = ["CACHE", "RealModel", "model", "models"]

LOCK = Path(__file__).with_name("real.lock.json")
CACHE = Path(__file__).resolve().parents[2] / ".models"


@dataclass(frozen=True, slots=True)
class RealModel:
    """A model of the lock file.

    `confirmed` says that a second engine agrees with ONNX Runtime on it; where not, ONNX Runtime's numbers are
    no oracle (most such models hold com.microsoft's DynamicQuantizeLSTM, whose activations it quantises).
    """

    id: str
    set: str
    what: str
    quantised: bool
    confirmed: bool
    sizes: tuple[Mapping[str, int], ...]
    inputs: tuple[Input, ...]

    def path(self, folder: Path = CACHE) -> Path:
        """Where the fetched file lies; FileNotFoundError, saying what to run, if it is not there."""
        path = folder / f"{self.id}.onnx"
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not there; run: python scripts/fetch_models.py {self.id}")
        return path

    def feeds(self, sizes: Mapping[str, int] | None = None, seed: int = 0) -> dict[str, NDArray[Any]]:
        """A value for every input, dims bound by `sizes` (default: the first of `self.sizes`)."""
        return make_feeds(self.inputs, self.sizes[0] if sizes is None else sizes, seed)


def _input(entry: dict[str, Any]) -> Input:
    rest = {key: value for key, value in entry.items() if key not in ("name", "dtype", "shape", "fill")}
    return Input(entry["name"], entry["dtype"], tuple(entry["shape"]), entry["fill"], rest)


@cache
def _all() -> tuple[RealModel, ...]:
    entries = json.loads(LOCK.read_text(encoding="utf-8"))["models"]
    return tuple(
        RealModel(
            entry["id"],
            entry["set"],
            entry["what"],
            entry["quantised"],
            entry["confirmed"],
            tuple(entry["sizes"]),
            tuple(map(_input, entry["inputs"])),
        )
        for entry in entries
    )


def models(which: str = "all") -> tuple[RealModel, ...]:
    """The models of a set: `per-change`, `nightly` or `all`."""
    return tuple(entry for entry in _all() if which in ("all", entry.set))


def model(name: str) -> RealModel:
    """The model with that id; KeyError if there is none."""
    return {entry.id: entry for entry in _all()}[name]
