"""Reads inputs from files: .npy, .npz, and the .pb files of ONNX test data."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from argosy.errors import UsageError
from argosy.ir.dtype import Array, DType
from argosy.ir.types import MapType, OptionalType, SequenceType, TensorType, Type

__all__ = ["read_folder", "read_named", "read_npz", "read_outputs", "read_value"]

_SUFFIXES = (".npy", ".npz", ".pb")


def read_value(path: Path, name: str, kind: Type) -> Any:
    """The value for the input `name` in a file.

    An .npz file must hold one array, or one of that name; for a map, its keys and values as `name.keys`, `name.values`.
    """
    where = str(path)
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise UsageError(f"files of the kind {suffix!r} are not read", where=where, hint=f"give {', '.join(_SUFFIXES)}")
    if not path.is_file():
        raise UsageError("no such file", where=where)
    if suffix == ".pb":
        from argosy.frontends.onnx.values import read_value as read_pb  # noqa: PLC0415 - needs the onnx package

        return read_pb(path.read_bytes(), kind, where)
    if suffix == ".npy":
        return _typed(_load(path), kind)
    held = read_npz(path)
    if isinstance(kind, (MapType, SequenceType)) and _holds(held, name, kind):
        return _taken(held, name, kind)
    if name in held:
        return _typed(held[name], kind)
    if len(held) != 1:
        raise UsageError(f"it holds {', '.join(held) or 'nothing'}, and no array called {name!r}", where=where)
    return _typed(next(iter(held.values())), kind)


def read_npz(path: Path) -> dict[str, Array]:
    """Every array of an .npz file by name; raises UsageError for anything else."""
    if not path.is_file():
        raise UsageError("no such file", where=str(path))
    found = _load(path)
    if not isinstance(found, Mapping):
        raise UsageError("this is no .npz file", where=str(path))
    return dict(found)


def read_named(path: Path, types: Mapping[str, Type]) -> dict[str, Any]:
    """The values of `types` that an .npz file holds, in that order, and its other arrays.

    The elements of a sequence are called `name[0]`, `name[1]`, …, the keys and values of a map `name.keys` and
    `name.values`.
    """
    held = read_npz(path)
    found = {name: _taken(held, name, kind) for name, kind in types.items() if _holds(held, name, kind)}
    return {**found, **held}


def read_outputs(path: Path, types: Mapping[str, Type]) -> dict[str, Any]:
    """Like `read_named`, where a sequence that has no element in the file is an empty one.

    A name that the model does not have stays, so that a comparison sees it.
    """
    held = read_named(path, types)
    listed = {
        name: held.pop(name, []) for name, kind in types.items() if name in held or isinstance(kind, SequenceType)
    }
    return {**listed, **held}


def _holds(held: Mapping[str, Array], name: str, kind: Type) -> bool:
    """Whether the arrays of a file hold a value called `name`; of a sequence, at least one element."""
    if isinstance(kind, SequenceType):
        return _holds(held, f"{name}[0]", kind.element)
    if isinstance(kind, MapType):
        return f"{name}.keys" in held and f"{name}.values" in held
    return name in held


def _taken(held: dict[str, Array], name: str, kind: Type) -> Any:
    """The value called `name`, whose arrays leave `held`. Raises UsageError for a map without a value for each key."""
    if isinstance(kind, SequenceType):
        elements: list[Any] = []
        while _holds(held, f"{name}[{len(elements)}]", kind.element):
            elements.append(_taken(held, f"{name}[{len(elements)}]", kind.element))
        return elements
    if isinstance(kind, MapType):
        keys, values = held.pop(f"{name}.keys"), _typed(held.pop(f"{name}.values"), kind.value)
        if keys.ndim != 1 or keys.shape != values.shape:
            found = f"{name}.keys is {list(keys.shape)} and {name}.values {list(values.shape)}"
            raise UsageError(f"{found}, expected two vectors of one size")
        return dict(zip(keys.tolist(), values, strict=True))
    return _typed(held.pop(name), kind)


def read_folder(folder: Path, types: Mapping[str, Type]) -> dict[str, Any]:
    """The inputs in a folder: `<name>.npy`, `.npz` or `.pb`, or `input_<index>` with these endings.

    A character that file names can't hold stands there as `_`.
    """
    found: dict[str, Any] = {}
    for index, (name, kind) in enumerate(types.items()):
        for stem in (
            name,
            "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name),
            f"input_{index}",
        ):
            file = next((folder / f"{stem}{end}" for end in _SUFFIXES if (folder / f"{stem}{end}").is_file()), None)
            if file is not None:
                found[name] = read_value(file, name, kind)
                break
    if not found:
        raise UsageError(
            f"the folder holds none of the inputs {', '.join(types)}",
            where=str(folder),
            hint="files are called <input>.npy, or input_0.pb",
        )
    return found


def _load(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            return loaded if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        why = f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""
        hint = "numpy writes them with np.save and np.savez; arrays of objects are not read"
        raise UsageError(f"this can't be read as .npy or .npz{why}", where=str(path), hint=hint) from None


def _typed(array: Any, kind: Type) -> Any:
    """The array as the input takes it: numpy's files hold bf16 and fp8 as raw bytes, and text in its own types."""
    if isinstance(kind, OptionalType):
        return _typed(array, kind.element)
    if not isinstance(kind, TensorType) or not isinstance(array, np.ndarray):
        return array
    element: DType = kind.dtype
    if element.kind == "string":
        return array.astype(object)
    if array.dtype.kind == "V" and array.dtype.itemsize == element.numpy.itemsize:
        return array.view(element.numpy)
    return array
