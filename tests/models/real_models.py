"""Real models for tests: the fetched file and seeded inputs of a model by its id.

path("magika-model")            the .onnx file; the test is skipped, saying what to run, if it was not fetched
feeds("magika-model")           inputs at the first size of the lock file
feeds("magika-model", batch=3)  the same with a dim bound otherwise
cases("per-change")             parameters (id, sizes): every model at every size of the lock file
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from numpy.typing import NDArray

from benchmarks.models import real

__all__ = ["cases", "feeds", "path"]


def path(model_id: str) -> Path:
    """The fetched file of a model."""
    try:
        return real.model(model_id).path()
    except FileNotFoundError as error:
        pytest.skip(str(error))


def feeds(model_id: str, seed: int = 0, **sizes: int) -> dict[str, NDArray[Any]]:
    """Seeded inputs of a model; `sizes` binds dims other than at the first size of the lock file."""
    entry = real.model(model_id)
    unknown = sizes.keys() - entry.sizes[0].keys()
    if unknown:
        raise KeyError(f"{model_id} has the dims {sorted(entry.sizes[0])}, not {sorted(unknown)}")
    return entry.feeds({**entry.sizes[0], **sizes}, seed)


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
