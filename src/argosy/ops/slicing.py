"""Parts of a tensor and more than a tensor: slice, pad, and reversal of leading parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from argosy.errors import ModelError
from argosy.ir import dim as dims
from argosy.ir.dim import Dim, DimLike
from argosy.ir.dtype import Array
from argosy.ir.module import Value
from argosy.ir.op import Known, Op, fresh, register
from argosy.ir.types import Dims, TensorType, Type
from argosy.ops.demands import demand_room, differ
from argosy.ops.operands import ints, numbers, present, steering
from argosy.ops.shapes import normalize_axis, product

__all__ = ["PAD_MODES", "Pad", "ReverseSequence", "Slice"]

_TO_THE_END: Final = 2**31 - 1
"""Exporters write this, or more, for "to the end": no axis is longer."""


@register
@dataclass(frozen=True, slots=True)
class Slice(Op):
    """Every `step`-th element from `start` to before `end` along the given axes: ONNX Slice.

    Negative positions count from the end; positions outside are clamped to [0, dim], for negative steps
    `start` to [0, dim - 1] and `end` to [-1, dim - 1]. Without `axes` the first ones are meant, without
    `steps` every element. Operands: x, [starts], [ends], [axes], [steps].
    """

    name = "slice"
    moves_data = True
    starts: Dims | None = None
    ends: Dims | None = None
    axes: tuple[int, ...] | None = None
    steps: tuple[int, ...] | None = None

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, starts, ends, axes, steps = (*operands, None, None, None, None)[:5]
        tensor = present(x).tensor
        result = list(tensor.shape)
        begin, end = steering(self.starts, starts), steering(self.ends, ends)
        by = numbers(self.steps, steps)
        places = numbers(self.axes, axes)
        if places is None and (axes is not None or (begin or end) is None):
            where = range(tensor.rank) if axes is not None else range(_count(starts, tensor.rank))
            for axis in where:
                result[axis] = fresh(f"{axis}_", upper=_upper(tensor.shape[axis]))
            return (tensor.with_dims(tuple(result)),)
        if places is None:
            places = tuple(range(len(begin or end or ())))
        for given, what in ((begin, "starts"), (end, "ends"), (by, "steps")):
            if given is not None and len(given) != len(places):
                raise ModelError(f"{len(given)} {what} are given for {len(places)} axes")
        for index, axis in enumerate(_distinct(places, tensor.rank)):
            size = tensor.shape[axis]
            extent = None
            if begin is not None and end is not None and (by is not None or steps is None):
                extent = _extent(begin[index], end[index], 1 if by is None else by[index], size)
            result[axis] = fresh(f"{axis}_", upper=_upper(size)) if extent is None else extent
        return (tensor.with_dims(tuple(result)),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, starts, ends, axes, steps = (*values, None, None, None, None)[:5]
        x = np.asarray(x)
        begin, end = ints(self.starts, starts, "starts"), ints(self.ends, ends, "ends")
        places = tuple(range(len(begin))) if self.axes is None and axes is None else ints(self.axes, axes, "axes")
        by = (1,) * len(begin) if self.steps is None and steps is None else ints(self.steps, steps, "steps")
        if not len(begin) == len(end) == len(places) == len(by):
            given = f"{len(begin)} starts, {len(end)} ends, {len(by)} steps and {len(places)} axes are given"
            raise ModelError(f"{given}, expected as many of each")
        index = [slice(None)] * x.ndim
        for axis, first, last, step in zip(_distinct(places, x.ndim), begin, end, by, strict=True):
            index[axis] = _python_slice(first, last, step, x.shape[axis])
        return (x[tuple(index)],)


def _count(operand: Value | None, rank: int) -> int:
    """How many axes an operand steers: all where that is not known."""
    if operand is None or operand.tensor.dims is None or len(operand.tensor.dims) != 1:
        return rank
    size = operand.tensor.dims[0]
    return min(size, rank) if isinstance(size, int) else rank


def _upper(dim: DimLike) -> int | None:
    return dims.bounds(dim)[1]


def _distinct(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    found = tuple(normalize_axis(axis, rank) for axis in axes)
    if len(set(found)) != len(found):
        raise ModelError(f"axes {list(axes)} name one axis twice")
    return found


def _check_step(step: int) -> None:
    if step == 0:
        raise ModelError("a step is 0, expected a positive or negative number")


def _python_slice(start: int, end: int, step: int, size: int) -> slice:
    """The Python slice that selects what ONNX means; Python clamps a start below the first element otherwise."""
    _check_step(step)
    start += size if start < 0 else 0
    end += size if end < 0 else 0
    if step > 0:
        return slice(min(max(start, 0), size), min(max(end, 0), size), step)
    start, end = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
    return slice(start, None if end < 0 else end, step) if start > end else slice(0, 0)


def _extent(start: DimLike, end: DimLike, step: int, size: DimLike) -> DimLike | None:
    """Number of elements from `start` to before `end`; None where the sign of either is unknown."""
    _check_step(step)
    if isinstance(start, int) and isinstance(end, int) and isinstance(size, int):
        return len(range(size)[_python_slice(start, end, step, size)])
    first, last = _from_front(start, size), _from_front(end, size)
    if first is None or last is None:
        return None
    # Only the far side is clamped: where the near side lies beyond it, the distance is below zero anyhow.
    if step > 0:
        if first == 0 and last == size:
            return dims.ceildiv(size, step)  # an axis is never shorter than 0, whatever its bounds tell
        if _is_negative(start) and isinstance(last, Dim) and last == size:
            distance = dims.dim_min(0 - start, size)
        elif _is_negative(end):
            distance = last - first
        else:
            distance = dims.dim_min(last, size) - first
        return dims.ceildiv(dims.dim_max(distance, 0), step)
    first = size - 1 if isinstance(start, int) and start == -1 else dims.dim_min(first, size - 1)
    if _is_negative(end):
        # The end may be -1, the place before the first element.
        last = -1 if _is_far(end) else dims.dim_max(size + end, -1)
    return dims.ceildiv(dims.dim_max(first - last, 0), -step)


def _is_negative(position: DimLike) -> bool:
    high = dims.bounds(position)[1]
    return high is not None and high < 0


def _is_far(position: DimLike) -> bool:
    return isinstance(position, int) and abs(position) >= _TO_THE_END


def _from_front(position: DimLike, size: DimLike) -> DimLike | None:
    """`position` counted from the front and not below it; None where its sign is unknown."""
    if _is_far(position):
        return size if isinstance(position, int) and position > 0 else 0
    if position == size:
        return size
    low, high = dims.bounds(position)
    if low is not None and low >= 0:
        return position
    if high is not None and high < 0:
        return dims.dim_max(size + position, 0)
    return None


PAD_MODES: Final = ("constant", "reflect", "edge", "wrap")


@register
@dataclass(frozen=True, slots=True)
class Pad(Op):
    """`x` with elements put before and after each of the given axes, or taken away by negative pads: ONNX Pad.

    `pads` are the begins of all `axes` (all axes of `x` where None), then the ends. `mode` is constant,
    reflect, edge or wrap. Operands: x, [pads], [value], [axes]; without a value, constant pads are zero
    (an empty string for strings).
    """

    name = "pad"
    mode: str
    pads: Dims | None = None
    axes: tuple[int, ...] | None = None

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, pads, value, axes = (*operands, None, None, None)[:4]
        tensor = present(x).tensor
        if value is not None and value.dtype is not tensor.dtype:
            raise ModelError(f"the pad value is {value.dtype}, expected {tensor.dtype} as of the data")
        if value is not None and value.tensor.dims is not None and differ(product(value.shape), 1):
            raise ModelError(f"the pad value is {value.type}, expected one element")
        amounts = steering(self.pads, pads)
        places = numbers(self.axes, axes)
        result = list(tensor.shape)
        if amounts is None or (places is None and axes is not None):
            affected = range(tensor.rank) if places is None else [normalize_axis(axis, tensor.rank) for axis in places]
            for axis in affected:
                result[axis] = fresh(f"{axis}_")
            return (tensor.with_dims(tuple(result)),)
        for axis, (before, after) in _by_axis(amounts, places, tensor.rank).items():
            grown = result[axis] + before + after
            left = result[axis] - dims.dim_max(0 - before, 0) - dims.dim_max(0 - after, 0)
            if isinstance(left, int) and left < 0:
                raise ModelError(f"the pads {before} and {after} take away more than axis {axis} of {tensor} has")
            # All modes but one repeat elements, of which there must be some.
            repeated = dims.dim_min(dims.dim_max(before, 0) + dims.dim_max(after, 0), 1)
            demand_room(left if self.mode == "constant" else left - repeated, axis)
            result[axis] = grown
        return (tensor.with_dims(tuple(result)),)

    def kept(self, *operands: Value | None) -> Dims | None:
        """How much of each axis of `x` negative pads leave; None where only the run knows."""
        x, pads, _, axes = (*operands, None, None, None)[:4]
        amounts, places = steering(self.pads, pads), numbers(self.axes, axes)
        if amounts is None or (places is None and axes is not None):
            return None
        found = list(present(x).shape)
        for axis, (before, after) in _by_axis(amounts, places, len(found)).items():
            found[axis] = found[axis] + dims.dim_min(before, 0) + dims.dim_min(after, 0)
        return tuple(found)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, pads, value, axes = (*values, None, None, None)[:4]
        x = np.asarray(x)
        places = None if self.axes is None and axes is None else ints(self.axes, axes, "axes")
        amounts = _by_axis(ints(self.pads, pads, "pads"), places, x.ndim)
        whole = [amounts.get(axis, (0, 0)) for axis in range(x.ndim)]
        cropped = x[tuple(_crop(int(a), int(b), size) for (a, b), size in zip(whole, x.shape, strict=True))]
        added = [(max(int(a), 0), max(int(b), 0)) for a, b in whole]
        return (_pad(cropped, added, self.mode, value),)

    def known(self, *operands: Value | None) -> tuple[Known | None, ...] | None:
        return None


def _by_axis(pads: Dims, axes: tuple[int, ...] | None, rank: int) -> dict[int, tuple[DimLike, DimLike]]:
    places = _distinct(tuple(range(rank)) if axes is None else axes, rank)
    if len(pads) != 2 * len(places):
        raise ModelError(f"{len(pads)} pads are given, expected {2 * len(places)}: a begin and an end for each axis")
    return {axis: (pads[index], pads[len(places) + index]) for index, axis in enumerate(places)}


def _crop(before: int, after: int, size: int) -> slice:
    if size + min(before, 0) + min(after, 0) < 0:
        raise ModelError(f"the pads {before} and {after} take away more than the {size} elements of an axis")
    return slice(max(-before, 0), size + min(after, 0))


def _pad(x: Array, added: list[tuple[int, int]], mode: str, value: Any) -> Array:
    if mode == "constant":
        if value is None:
            value = "" if x.dtype.kind == "O" else np.zeros((), x.dtype)
        grown = [before + size + after for size, (before, after) in zip(x.shape, added, strict=True)]
        result = np.empty(grown, x.dtype)
        result[...] = np.asarray(value).reshape(()) if x.dtype.kind != "O" else np.asarray(value, object).reshape(-1)[0]
        result[tuple(slice(before, before + size) for size, (before, _) in zip(x.shape, added, strict=True))] = x
        return result
    for axis, (before, after) in enumerate(added):
        if before or after:
            x = np.take(x, _sources(before, x.shape[axis], after, mode), axis)
    return x


def _sources(before: int, size: int, after: int, mode: str) -> Array:
    """Where along an axis the elements of the padded axis come from."""
    if size == 0:
        raise ModelError(f"an empty axis can't be padded in mode {mode}")
    places = np.arange(-before, size + after)
    if mode == "edge":
        return np.clip(places, 0, size - 1)
    if mode == "wrap":
        return np.mod(places, size)
    if mode == "reflect":
        period = max(2 * (size - 1), 1)
        folded = np.mod(places, period)
        return np.minimum(folded, period - folded) if size > 1 else np.zeros_like(places)
    raise ModelError(f"the pad mode is {mode!r}, expected one of {', '.join(PAD_MODES)}")


@register
@dataclass(frozen=True, slots=True)
class ReverseSequence(Op):
    """The first `lengths[b]` elements along `time_axis` in reverse, for each `b` of `batch_axis`: ONNX ReverseSequence.

    Operands: x, lengths (1-D, as long as the batch axis).
    """

    name = "reverse_sequence"
    batch_axis: int
    time_axis: int

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        tensor, lengths = present(operands[0]).tensor, present(operands[1])
        batch, time = normalize_axis(self.batch_axis, tensor.rank), normalize_axis(self.time_axis, tensor.rank)
        if batch == time:
            raise ModelError(f"batch_axis and time_axis are both {batch}, expected two axes")
        if lengths.rank != 1 or differ(lengths.shape[0], tensor.shape[batch]):
            expected = f"one length for each of {tensor.shape[batch]} batches"
            raise ModelError(f"sequence_lens is {lengths.type}, expected {expected}")
        return (TensorType(tensor.dtype, tensor.shape),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, lengths = np.asarray(values[0]), np.asarray(values[1])
        batch, time = normalize_axis(self.batch_axis, x.ndim), normalize_axis(self.time_axis, x.ndim)
        outside = lengths[(lengths < 0) | (lengths > x.shape[time])]
        if outside.size:
            raise ModelError(f"sequence_lens has {outside[0]}, expected 0 to the {x.shape[time]} steps of axis {time}")
        steps = np.arange(x.shape[time])
        ends = lengths[:, None]
        source = np.where(steps < ends, ends - 1 - steps, steps)  # batch by time
        moved = np.moveaxis(x, (batch, time), (0, 1))
        rows = np.arange(moved.shape[0])[:, None]
        return (np.moveaxis(moved[rows, source], (0, 1), (batch, time)),)
