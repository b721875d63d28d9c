"""Tensors whose bytes lie in a file beside the model: mapped, and contained in the model's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dtype import Array

__all__ = ["OWN_FILE", "ExternalData"]

_ENTRIES: Final = "write the tensor's external_data anew: location, a file's name, offset and length in bytes"


OWN_FILE: Final = "the model's own file"
"""The location of tensors whose bytes are those of the model's message; see `own_weights`."""


class ExternalData:
    """Maps the external files of one model, each once. `folder` is None for a model that came as bytes.

    `own` is the model's own file, where it is mapped.
    """

    def __init__(self, folder: Path | None, own: Array | None = None) -> None:
        self._folder = folder
        self._files: dict[str, Array] = {} if own is None else {OWN_FILE: own}

    def read(self, entries: dict[str, str], size: int, where: str) -> Array:
        """The `size` bytes that the entries (location, offset, length; ONNX IR spec "External Tensor Data") name.

        Raises ModelError where the file is missing, lies outside the model's folder or is too short.
        """
        location = entries.get("location", "")
        if not location:
            raise ModelError("external data has no location", where=where, hint=_ENTRIES)
        offset = _number(entries, "offset", 0, where)
        length = _number(entries, "length", size, where)
        if length != size and location == OWN_FILE:
            raise ModelError(f"raw_data holds {length} bytes, the tensor needs {size}", where=where)
        if length != size:
            what = f"external data has length {length}, the tensor needs {size} bytes"
            raise ModelError(what, where=where, hint=_ENTRIES)
        data = self._map(location, where)
        if offset + size > data.size:
            raise ModelError(
                f"external file {location!r} holds {data.size} bytes, the tensor needs {size} from {offset} on",
                where=where,
                hint="fetch or export the file again: it was cut off, or belongs to another model",
            )
        return data[offset : offset + size]

    def _map(self, location: str, where: str) -> Array:
        if location in self._files:
            return self._files[location]
        if self._folder is None:
            raise ModelError(
                f"the tensor lies in the external file {location!r}, but the model came without a folder",
                where=where,
                hint="give the path of the model instead of its bytes",
            )
        if "\0" in location:
            raise ModelError(f"external file {location!r} is no file name", where=where, hint=_ENTRIES)
        root = self._folder.resolve()
        path = (root / location).resolve()
        if Path(location).is_absolute() or not path.is_relative_to(root):
            raise ModelError(
                f"external file {location!r} lies outside the model's folder",
                where=where,
                hint="put the file beside the model, and its name alone into the model",
            )
        if not path.is_file():
            raise ModelError(
                f"external file {location!r} is missing",
                where=where,
                hint=f"it must lie beside the model, in {root}",
            )
        size = path.stat().st_size
        data: Array = np.memmap(path, np.uint8, "r") if size else np.zeros(0, np.uint8)
        self._files[location] = data
        return data


def _number(entries: dict[str, str], key: str, default: int, where: str) -> int:
    text = entries.get(key, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 20):  # 19 digits hold every 64-bit number
        what = f"external data has {key} = {text[:40]!r}, expected a number"
        raise ModelError(what, where=where, hint=_ENTRIES)
    return int(text)
