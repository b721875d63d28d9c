"""The real models of `real.lock.json`: where their files lie, and seeded inputs to run them with.

An input's shape names its dynamic dims (`batch`, `width`); `RealModel.sizes` holds the bindings that tests
use, the first being the size that the figures in the docs are measured at.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CACHE", "Input", "RealModel", "model", "models"]

LOCK = Path(__file__).with_name("real.lock.json")
CACHE = Path(__file__).resolve().parents[2] / ".models"


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a model and the recipe for a value of it.

    `fill` is one of `normal` (times `scale`), `integers` (in `low` ≤ x < `high`), `constant` (`value`, broadcast),
    `prefix` (a mask: each row is ones up to a random length, the first row throughout) and `length` (the last dim
    of the input named `of`).
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    fill: str
    parameters: Mapping[str, Any]

    def make(self, sizes: Mapping[str, int], seed: int, inputs: Mapping[str, Input]) -> NDArray[Any]:
        """A value of this input with its dims bound by `sizes`; equal arguments give equal values."""
        shape = self.bind(sizes)
        generator = np.random.default_rng([seed, zlib.crc32(self.name.encode())])
        given = self.parameters
        match self.fill:
            case "normal":
                return (generator.standard_normal(shape) * given["scale"]).astype(self.dtype)
            case "integers":
                return generator.integers(given["low"], given["high"], shape).astype(self.dtype)
            case "constant":
                dtype = object if self.dtype == "string" else self.dtype
                return np.broadcast_to(np.array(given["value"], dtype), shape).copy()
            case "prefix":
                rows, columns = shape
                lengths = generator.integers(1, columns + 1, rows)
                lengths[0] = columns
                return (np.arange(columns) < lengths[:, None]).astype(self.dtype)
            case "length":
                return np.full(shape, inputs[given["of"]].bind(sizes)[-1], self.dtype)
        raise ValueError(f"{LOCK.name}: input {self.name!r}: unknown fill {self.fill!r}")

    def bind(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape with its named dims replaced."""
        return tuple(sizes[dim] if isinstance(dim, str) else dim for dim in self.shape)


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

    def path(self, cache: Path = CACHE) -> Path:
        """Where the fetched file lies; FileNotFoundError, saying what to run, if it is not there."""
        path = cache / f"{self.id}.onnx"
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not there; run: python scripts/fetch_models.py {self.id}")
        return path

    def feeds(self, sizes: Mapping[str, int] | None = None, seed: int = 0) -> dict[str, NDArray[Any]]:
        """A value for every input, dims bound by `sizes` (default: the first of `self.sizes`)."""
        bound = self.sizes[0] if sizes is None else sizes
        inputs = {entry.name: entry for entry in self.inputs}
        return {name: entry.make(bound, seed, inputs) for name, entry in inputs.items()}


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
