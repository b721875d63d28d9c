"""Reductions and scans of Triton's interpreter over whole blocks, in the order of their elements.

Triton's own go element by element for functions that it does not know, a thousand times slower than these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from triton.runtime import interpreter

__all__ = ["use_blocks"]


def _combined(operation: Any, left: Sequence[Any], right: Sequence[Any], kinds: Sequence[Any]) -> list[Any]:
    """The function of a reduction, for arrays of elements."""
    tensors = [operation.to_tensor(np.ascontiguousarray(data), kind)
               for side in (left, right) for data, kind in zip(side, kinds, strict=True)]  # fmt: skip
    made = operation.combine_fn.fn(*tensors)
    return [each.handle.data for each in (made if isinstance(made, tuple) else (made,))]


def _reduced(operation: Any, given: Sequence[Any]) -> list[Any]:
    """Neighbours are put together until one is left; blocks are powers of two."""
    values, axis = operation.unravel(given, operation.axis)
    kinds = [value.dtype for value in values]
    held = [np.moveaxis(value.handle.data, axis, -1) for value in values]
    while held[0].shape[-1] > 1:
        held = _combined(operation, [each[..., 0::2] for each in held], [each[..., 1::2] for each in held], kinds)
    if operation.keep_dims:
        depth = given[0].handle.data.ndim
        whole = operation.axis is None
        held = [each.reshape((1,) * depth) if whole else np.moveaxis(each, -1, axis) for each in held]
    else:
        held = [each[..., 0] if operation.axis is not None else each.item() for each in held]
    return [operation.to_tensor(each, kind) for each, kind in zip(held, kinds, strict=True)]


def _scanned(operation: Any, given: Sequence[Any]) -> list[Any]:
    """What is `step` elements before is put in front of each, for steps of 1, 2, 4 …"""
    axis, kinds = operation.axis, [value.dtype for value in given]
    held = [value.handle.data for value in given]
    length = held[0].shape[axis]
    place = np.arange(length).reshape([-1 if at == axis % held[0].ndim else 1 for at in range(held[0].ndim)])
    step = 1
    while step < length:
        made = _combined(operation, [np.roll(each, step, axis) for each in held], held, kinds)
        held = [np.where(place >= step, new, old) for new, old in zip(made, held, strict=True)]
        step *= 2
    return [operation.to_tensor(each, kind) for each, kind in zip(held, kinds, strict=True)]


def use_blocks() -> None:
    """Let the interpreter go by blocks from now on."""
    interpreter.ReduceOps.generic_reduce = _reduced
    interpreter.ScanOps.generic_scan = _scanned
