"""Writes values to an .npz file, from which `read_named` and `read_outputs` read them."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from argosy.artifact.atomic import atomic_file
from argosy.ir.dtype import Array

__all__ = ["write_npz"]


def write_npz(path: str | os.PathLike[str], values: Mapping[str, Any]) -> None:
    """Write arrays by name, atomically; absent values are left out.

    The items of a sequence are called `name[0]`, …, the keys and values of a map `name.keys` and `name.values`.
    Element types that numpy's files lack (bf16, fp8) are stored as raw bytes, as numpy stores them.
    """
    arrays: dict[str, Array] = {}
    for name, value in values.items():
        arrays.update(_arrays(name, value))
    # Not by np.savez, which takes the names as its own keywords and so has no room for an array called `file`.
    with atomic_file(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def _arrays(name: str, value: Any) -> dict[str, Array]:
    if value is None:
        return {}
    if isinstance(value, list):
        found: dict[str, Array] = {}
        for index, item in enumerate(value):
            found.update(_arrays(f"{name}[{index}]", item))
        return found
    if isinstance(value, dict):
        return {f"{name}.keys": np.array(list(value)), f"{name}.values": np.array(list(value.values()))}
    return {name: _plain(np.asarray(value))}


def _plain(array: Array) -> Array:
    """Strings as numpy's text type: object arrays would be pickled, which nobody should have to load."""
    return array.astype(str) if array.dtype.kind == "O" else array
