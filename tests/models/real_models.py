"""Real models for tests: the fetched file and seeded inputs of a model by its id.

path("magika-model")            the .onnx file; the test is skipped, saying what to run, if it was not fetched
feeds("magika-model")           inputs at the first size of the lock file
feeds("magika-model", batch=3)  the same with a dim bound otherwise
dims("magika-model", batch=3)   the same sizes, by the names that Argosy gives to dims
cases("per-change")             parameters (id, sizes): every model at every size of the lock file
graph("magika-model")           the .onnx file for a test that only compiles it. Where ARGOSY_SEEDED_MODELS names a
                                folder that `python -m benchmarks.models.seeded unpack` wrote, the file there: the same
                                graph, with weights made from a seed. What it computes means nothing
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from numpy.typing import NDArray

import argosy
from argosy.ir.dim import symbols_in
from argosy.ir.types import TensorType
from benchmarks.models import real

__all__ = ["cases", "dims", "feeds", "graph", "path"]


def path(model_id: str) -> Path:
    """The fetched file of a model."""
    try:
        return real.model(model_id).path()
    except FileNotFoundError as error:
        pytest.skip(str(error))


def graph(model_id: str) -> Path:
    """A file with the graph of a model: the fetched one, or one with seeded weights where these are asked for."""
    seeded = os.environ.get("ARGOSY_SEEDED_MODELS")  # noqa: TID251 - for tests alone
    return real.model(model_id).path(Path(seeded)) if seeded else path(model_id)


def feeds(model_id: str, seed: int = 0, **sizes: int) -> dict[str, NDArray[Any]]:
    """Seeded inputs of a model; `sizes` binds dims other than at the first size of the lock file."""
    entry = real.model(model_id)
    unknown = sizes.keys() - entry.sizes[0].keys()
    if unknown:
        raise KeyError(f"{model_id} has the dims {sorted(entry.sizes[0])}, not {sorted(unknown)}")
    return entry.feeds({**entry.sizes[0], **sizes}, seed)


def dims(model_id: str, **sizes: int) -> dict[str, int]:
    """The dims of a model by the names that Argosy gives them, with the sizes that `feeds` has."""
    given = feeds(model_id, **sizes)
    found: dict[str, int] = {}
    for name, kind in argosy.load_onnx(path(model_id)).inputs.items():
        for dim, size in zip(kind.shape if isinstance(kind, TensorType) else (), given[name].shape, strict=True):
            found |= {symbol.name: size for symbol in symbols_in(dim)}
    return found


def cases(which: str) -> list[Any]:
    """A parameter (id, sizes) for every model of a set at every size; those of the nightly set are marked so."""
    return [
        pytest.param(
            entry.id,
            dict(sizes),
            id="-".join([entry.id, *(f"{name}={size}" for name, size in sizes.items())]),
            marks=[pytest.mark.nightly] if entry.set == "nightly" else [],
        )
        for entry in real.models(which)
        for sizes in entry.sizes
    ]
