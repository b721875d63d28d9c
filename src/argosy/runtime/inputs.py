"""Checks what a caller feeds: names, element types, shapes. Every refusal says what was expected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from argosy.errors import ModelError, UsageError
from argosy.ir.dtype import STRING, dtype_of
from argosy.ir.types import MapType, OptionalType, SequenceType, TensorType, Type
from argosy.registry import did_you_mean
from argosy.runtime.dense import DenseArray

__all__ = ["check_inputs"]


def check_inputs(given: Mapping[str, Any], expected: Mapping[str, Type]) -> list[Any]:
    """The inputs in the model's order, as the runtime takes them. Raises UsageError where they don't fit."""
    if not isinstance(given, Mapping):
        raise UsageError(
            f"inputs are given as {type(given).__name__}, expected a mapping from name to value",
            hint=f"the model takes: {_summary(expected)}",
        )
    for name in given:
        if name not in expected:
            raise UsageError(
                f"the model has no input {name!r}",
                hint=did_you_mean(str(name), list(expected)) or f"it takes: {_summary(expected)}",
            )
    checked: list[Any] = []
    for name, kind in expected.items():
        if name not in given:
            if not isinstance(kind, OptionalType):
                raise UsageError(f"the input {name!r} is missing", hint=f"the model takes: {_summary(expected)}")
            checked.append(None)
            continue
        value = given[name]
        checked.append(value if _fits_at_once(value, kind) else _check(value, kind, f"input {name!r}"))
    return checked


def _summary(expected: Mapping[str, Type]) -> str:
    return ", ".join(f"{name}: {kind}" for name, kind in expected.items())


def _check(value: Any, kind: Type, where: str) -> Any:
    if isinstance(kind, OptionalType):
        return None if value is None else _check(value, kind.element, where)
    if isinstance(kind, SequenceType):
        if not isinstance(value, (list, tuple)):
            raise UsageError(f"expected a list ({kind}), found {type(value).__name__}", where=where)
        return [_check(item, kind.element, f"{where}, item {index}") for index, item in enumerate(value)]
    if isinstance(kind, MapType):
        if not isinstance(value, dict):
            raise UsageError(f"expected a dict ({kind}), found {type(value).__name__}", where=where)
        return {_key(key, kind, where): _entry(item, kind, f"{where}, key {key!r}") for key, item in value.items()}
    return _check_tensor(value, kind, where)


def _key(key: Any, kind: MapType, where: str) -> Any:
    """A key of a map as Python's int or str."""
    plain = key.item() if isinstance(key, np.generic) else key
    if isinstance(plain, str if kind.key is STRING else int) and not isinstance(plain, bool):
        return plain
    raise UsageError(f"expected keys of {kind}, found {key!r}", where=where)


def _entry(value: Any, kind: MapType, where: str) -> Any:
    """A value of a map; numbers and strings as scalars."""
    checked = _check(value, kind.value, where)
    return checked[()] if isinstance(checked, np.ndarray) and not checked.ndim else checked


def _fits_at_once(value: Any, kind: Type) -> bool:
    """Whether it takes no closer look to see that a value is what is expected: the usual case, and a quick answer."""
    return (
        isinstance(value, (np.ndarray, DenseArray))
        and isinstance(kind, TensorType)
        and value.dtype is kind.dtype.numpy
        and value.shape == kind.dims
        and kind.dtype is not STRING
    )


def _check_tensor(value: Any, kind: TensorType, where: str) -> Any:
    if value is None:
        raise UsageError(f"expected {kind}, found None", where=where)
    if not isinstance(value, np.ndarray):
        value = _as_array(value, kind, where)
        if _fits_at_once(value, kind):
            return value
    try:
        found = dtype_of(value.dtype)
    except ModelError:
        raise UsageError(f"expected {kind}, found an array of {value.dtype}", where=where) from None
    if found is STRING:
        value = value.astype(object)
        if not all(isinstance(item, str) for item in value.flat):
            raise UsageError(f"expected {kind}, found an array of objects that are not all str", where=where)
    if found is not kind.dtype:
        raise UsageError(f"expected {kind}, found {found}{list(value.shape)}", where=where)
    if kind.dims is not None:
        fits = len(kind.dims) == value.ndim and all(
            not isinstance(dim, int) or dim == size for dim, size in zip(kind.dims, value.shape, strict=True)
        )
        if not fits:
            raise UsageError(f"expected {kind}, found {found}{list(value.shape)}", where=where)
    return value


def _as_array(value: Any, kind: TensorType, where: str) -> Any:
    """Something that is no numpy array: DLPack tensors keep their type, Python numbers and lists take the model's.

    What lies on a GPU stays there.
    """
    if hasattr(value, "__dlpack_device__") or hasattr(value, "__cuda_array_interface__"):
        from argosy.runtime.gpu.array import device_array  # noqa: PLC0415 - felt where there is no GPU

        found = device_array(value, where)
        if found is not None:
            return found
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    if isinstance(value, np.generic):
        return np.asarray(value)
    try:
        return np.asarray(value, dtype=kind.dtype.numpy)
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"expected {kind}, found {type(value).__name__}: {error}", where=where) from None
