"""One form for each op: what is known becomes an attribute, axes count from the front, defaults are spelt out.

The rules change no value: an attribute says what the operand said, or what the op would have filled in.
After them a reshape has all its dims (0 means an empty axis), a transpose its permutation, a slice its
four lists, a pad an amount for every axis, and no axis is negative.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from argosy.ir.builder import Builder
from argosy.ir.dim import Dim, DimLike, bounds
from argosy.ir.module import Value
from argosy.ir.op import Op
from argosy.ir.types import Dims
from argosy.ops.operands import numbers, steering
from argosy.ops.reduce import Reduce
from argosy.ops.shapes import normalize_axis
from argosy.ops.view import Broadcast, Pad, Reshape, Slice, Split, Squeeze, Tile, Transpose, Unsqueeze
from argosy.rewrite.pattern import OpPattern, op, op_of
from argosy.rewrite.rule import Rewritten, RuleSet, rule

__all__ = ["AXIS_OPS", "RULES"]

AXIS_OPS: Final = frozenset(
    (
        "arg_reduce", "compress", "concat", "dequantize", "gather", "gather_elements", "quantize", "scatter_elements",
        "softmax", "split", "topk", "unique",
    )
)  # fmt: skip
"""Ops whose attribute `axis` counts axes of their first operand."""

_TO_THE_END: Final = 2**31 - 1
"""A position that no axis reaches; exporters write this, or more, for "to the end"."""

_UNKNOWN = "what steers it is not known"
_UNRANKED = "the rank is not known"


def _operand(root: Value, index: int) -> Value | None:
    operands = root.instruction.operands
    return operands[index] if index < len(operands) else None


def _first(root: Value) -> Value:
    operand = root.instruction.operands[0]
    return root if operand is None else operand


def _ranked(*values: Value) -> bool:
    return all(value.tensor.dims is not None for value in values)


def _changed(build: Builder, root: Value, op: Op, *operands: Value | None) -> Rewritten:
    """All results of `op` on `operands`; None where that is what stands there."""
    if op == root.instruction.op and operands == root.instruction.operands:
        return None
    return build.add_all(op, *operands)


@rule(op(Reshape).bind("root"))
def give_reshape_dims(build: Builder, root: Value) -> Rewritten:
    """reshape(x, shape) = reshape(x) to the dims of the result

    Entries 0 and -1 are replaced by what they stand for, as inferred; where the rank of x is unknown they stay.
    """
    made_by, x = op_of(root, Reshape), _first(root)
    wanted = steering(made_by.dims, _operand(root, 1))
    if wanted is None:
        return _UNKNOWN
    if _ranked(x):
        return _changed(build, root, Reshape(root.shape, allow_zero=True), x)
    return _changed(build, root, Reshape(wanted, made_by.allow_zero), x)


@rule(op(Transpose).bind("root"))
def give_permutation(build: Builder, root: Value) -> Rewritten:
    """transpose(x) = transpose(x) by the permutation that reverses the axes"""
    x = _first(root)
    if op_of(root, Transpose).permutation is not None:
        return None
    if not _ranked(x):
        return _UNRANKED
    return build.add_all(Transpose(tuple(reversed(range(x.rank)))), x)


@rule(op(Broadcast).bind("root"))
def give_broadcast_dims(build: Builder, root: Value) -> Rewritten:
    """broadcast(x, shape) = broadcast(x) to the dims of the result"""
    x = _first(root)
    if steering(op_of(root, Broadcast).dims, _operand(root, 1)) is None:
        return _UNKNOWN
    if not _ranked(x):
        return _UNRANKED
    return _changed(build, root, Broadcast(root.shape), x)


@rule(op(Squeeze).bind("root"))
def give_squeezed_axes(build: Builder, root: Value) -> Rewritten:
    """squeeze(x, axes) = squeeze(x) of sorted axes, counted from the front

    Without axes all of size 1 are meant, which must be certain for every axis.
    """
    x = _first(root)
    if not _ranked(x, root):
        return _UNRANKED
    axes = numbers(op_of(root, Squeeze).axes, _operand(root, 1))
    if axes is None and _operand(root, 1) is not None:
        return _UNKNOWN
    if axes is None:
        axes = tuple(axis for axis, dim in enumerate(x.shape) if isinstance(dim, int) and dim == 1)
    return _changed(build, root, Squeeze(_sorted_axes(axes, x.rank)), x)


@rule(op(Unsqueeze).bind("root"))
def give_unsqueezed_axes(build: Builder, root: Value) -> Rewritten:
    """unsqueeze(x, axes) = unsqueeze(x) of sorted axes, counted from the front in the result"""
    axes = numbers(op_of(root, Unsqueeze).axes, _operand(root, 1))
    if axes is None:
        return _UNKNOWN
    x = _first(root)
    if not _ranked(x):
        return _UNRANKED
    return _changed(build, root, Unsqueeze(_sorted_axes(axes, x.rank + len(axes))), x)


def _sorted_axes(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return tuple(sorted(normalize_axis(axis, rank) for axis in axes))


@rule(op(Slice).bind("root"))
def give_slice_bounds(build: Builder, root: Value) -> Rewritten:
    """slice(x, starts, ends, axes, steps) = slice(x) of the same, as attributes with sorted axes

    A position from the end of an axis of known size is counted from its front, and one outside is clamped,
    as the op says; what depends on a symbol whose size is open stays as it is.
    """
    made_by, x = op_of(root, Slice), _first(root)
    starts, ends = steering(made_by.starts, _operand(root, 1)), steering(made_by.ends, _operand(root, 2))
    if starts is None or ends is None:
        return _UNKNOWN
    axes, steps = numbers(made_by.axes, _operand(root, 3)), numbers(made_by.steps, _operand(root, 4))
    if (axes is None and _operand(root, 3) is not None) or (steps is None and _operand(root, 4) is not None):
        return _UNKNOWN
    if not _ranked(x):
        return _UNRANKED
    axes = tuple(range(len(starts))) if axes is None else tuple(normalize_axis(axis, x.rank) for axis in axes)
    steps = (1,) * len(axes) if steps is None else steps
    rows = []
    for axis, start, end, step in sorted(zip(axes, starts, ends, steps, strict=True), key=lambda row: row[0]):
        size = x.shape[axis]
        if step > 0:
            start, end = _from_front(start, size), _from_front(end, size)  # noqa: PLW2901 - the same positions
        rows.append((start, end, axis, step))
    columns: list[Any] = [tuple(row[place] for row in rows) for place in range(4)]
    return _changed(build, root, Slice(*columns), x)


def _from_front(position: DimLike, size: DimLike) -> DimLike:
    """A start or end of a forward slice counted from the front and within the axis, where that is certain."""
    if isinstance(position, Dim):
        return position
    if isinstance(size, int):
        return min(max(position + size if position < 0 else position, 0), size)
    if position >= _TO_THE_END:
        return size
    low = bounds(size)[0]
    return size + position if position < 0 and low is not None and low + position >= 0 else position


@rule(op(Pad).bind("root"))
def give_pad_amounts(build: Builder, root: Value) -> Rewritten:
    """pad(x, pads, value, axes) = pad(x, value) by an amount before and after every axis"""
    made_by, x, value = op_of(root, Pad), _first(root), _operand(root, 2)
    pads, axes = steering(made_by.pads, _operand(root, 1)), numbers(made_by.axes, _operand(root, 3))
    if pads is None or (axes is None and _operand(root, 3) is not None):
        return _UNKNOWN
    if not _ranked(x):
        return _UNRANKED
    places = tuple(range(x.rank)) if axes is None else tuple(normalize_axis(axis, x.rank) for axis in axes)
    before: list[Any] = [0] * x.rank
    after: list[Any] = [0] * x.rank
    for index, axis in enumerate(places):
        before[axis], after[axis] = pads[index], pads[len(places) + index]
    padded = Pad(made_by.mode, (*before, *after))
    return _changed(build, root, padded, x, *((None, value) if value is not None else ()))


@rule(op(Split).bind("root"))
def give_split_sizes(build: Builder, root: Value) -> Rewritten:
    """split(x, sizes) = split(x) into the sizes of the results"""
    made_by, x = op_of(root, Split), _first(root)
    given = _operand(root, 1)
    if made_by.sizes is None and given is not None and given.known is None:
        return _UNKNOWN
    if not _ranked(x):
        return _UNRANKED
    axis = normalize_axis(made_by.axis, x.rank)
    sizes: Dims = tuple(result.shape[axis] for result in root.instruction.results)
    return _changed(build, root, Split(axis, made_by.count, sizes), x)


@rule(op(Tile).bind("root"))
def give_repeats(build: Builder, root: Value) -> Rewritten:
    """tile(x, repeats) = tile(x) by the same repeats, as an attribute"""
    repeats = steering(op_of(root, Tile).repeats, _operand(root, 1))
    return _UNKNOWN if repeats is None else _changed(build, root, Tile(repeats), _first(root))


@rule(op(Reduce).bind("root"))
def give_reduced_axes(build: Builder, root: Value) -> Rewritten:
    """reduce(x, axes) = reduce(x) over sorted axes, counted from the front, each once"""
    made_by, x, given = op_of(root, Reduce), _first(root), _operand(root, 1)
    axes = numbers(made_by.axes, given)
    if axes is None and given is not None:
        return _UNKNOWN
    if not _ranked(x):
        return _UNRANKED
    if not axes and made_by.noop_with_empty_axes:
        return _changed(build, root, dataclasses.replace(made_by, axes=()), x)
    places = {normalize_axis(axis, x.rank) for axis in axes or range(x.rank)}
    return _changed(build, root, Reduce(made_by.kind, tuple(sorted(places)), made_by.keep_dims), x)


@rule(OpPattern(op_heads=AXIS_OPS, name="root"))
def count_axis_from_front(build: Builder, root: Value) -> Rewritten:
    """op(x, axis = -k) = op(x, axis = rank - k)"""
    made_by, x = root.instruction.op, _first(root)
    axis = made_by.attributes()["axis"]
    if not isinstance(axis, int) or axis >= 0:
        return None
    if not _ranked(x):
        return _UNRANKED
    counted: Any = dataclasses.replace(made_by, axis=normalize_axis(axis, x.rank))  # type: ignore[type-var]
    return build.add_all(counted, *root.instruction.operands)


RULES = RuleSet.collect(vars())
