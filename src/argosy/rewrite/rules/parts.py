"""Parts of tensors and tensors of parts: slice, concat, split, gather.

Elements move and none changes, so every rule is exact. The rules read ops in the form that `attributes`
leaves: axes sorted and counted from the front.
"""

from __future__ import annotations

from dataclasses import dataclass

from argosy.ir.builder import Builder
from argosy.ir.dim import DimLike, bounds, equal
from argosy.ir.module import Value
from argosy.ops.index import Gather
from argosy.ops.joining import Concat, Split
from argosy.ops.slicing import Slice
from argosy.ops.view import Broadcast, Reshape
from argosy.rewrite.pattern import any_, known, op, op_of
from argosy.rewrite.rule import Rewritten, RuleSet, rule

__all__ = ["RULES"]

_UNKNOWN = "its bounds are not known"


@dataclass(frozen=True, slots=True)
class _Range:
    """`count` places of one axis from `start`, `step` apart, with `step` > 0 and `start` ≥ 0."""

    start: DimLike
    count: DimLike
    step: int = 1


def _ranges(value: Value, x: Value) -> dict[int, _Range] | None:
    """What a slice takes of each axis that it touches; None where a bound is unknown, negative or backwards."""
    made_by = op_of(value, Slice)
    if None in (made_by.starts, made_by.ends, made_by.axes, made_by.steps):
        return None
    if value.tensor.dims is None or x.tensor.dims is None:
        return None
    found = {}
    for axis, start, step in zip(made_by.axes or (), made_by.starts or (), made_by.steps or (), strict=True):
        low = bounds(start)[0]
        if step <= 0 or low is None or low < 0:
            return None
        found[axis] = _Range(start, value.shape[axis], step)
    return found


def _slice(build: Builder, x: Value, ranges: dict[int, _Range]) -> Value | None:
    """The slice of `x` by ranges per axis; None where a stepped range has a symbolic count."""
    rows = []
    for axis, part in sorted(ranges.items()):
        if part.step == 1:
            end = part.start + part.count
        elif isinstance(part.count, int):
            end = part.start + max((part.count - 1) * part.step + 1, 0)
        else:
            return None
        rows.append((part.start, end, axis, part.step))
    return build.add(
        Slice(
            tuple(r[0] for r in rows), tuple(r[1] for r in rows), tuple(r[2] for r in rows), tuple(r[3] for r in rows)
        ),
        x,
    )


@rule(op(Slice, any_("x")).bind("root"))
def slice_everything(root: Value, x: Value) -> Rewritten:
    """slice(x) = x, where it steps by 1 and is as long as x on every axis"""
    ranges = _ranges(root, x)
    if ranges is None:
        return _UNKNOWN
    if any(part.step != 1 or not equal(part.count, x.shape[axis]) for axis, part in ranges.items()):
        return None
    return x


@rule(op(Slice, op(Slice, any_("x")).bind("inner")).bind("root"))
def slice_once(build: Builder, root: Value, inner: Value, x: Value) -> Rewritten:
    """slice(slice(x, a), b) = slice(x, a then b)

    Place i of the outer range is place `start + i * step` of the inner one. Starts that a symbolic axis may
    clamp are not added up: a start beyond the end gives nothing on either side.
    """
    first, second = _ranges(inner, x), _ranges(root, inner)
    if first is None or second is None:
        return _UNKNOWN
    merged = dict(first)
    for axis, part in second.items():
        under = first.get(axis, _Range(0, x.shape[axis]))
        merged[axis] = _Range(under.start + part.start * under.step, part.count, under.step * part.step)
    return _slice(build, x, merged) or "a stepped range has an unknown length"


@rule(op(Slice, op(Concat).bind("inner")).bind("root"))
def slice_of_concat(build: Builder, root: Value, inner: Value) -> Rewritten:
    """slice(concat(x, y, …)) = concat of slices of those that it reaches

    Fewer operands must remain, and sizes and bounds along the axis be numbers.
    """
    ranges = _ranges(root, inner)
    if ranges is None:
        return _UNKNOWN
    axis = op_of(inner, Concat).axis
    wanted = ranges.pop(axis, None)
    if wanted is None or wanted.step != 1:
        return None
    start, count = wanted.start, wanted.count
    if not isinstance(start, int) or not isinstance(count, int):
        return _UNKNOWN
    pieces = []
    begin = 0
    operands = [operand for operand in inner.instruction.operands if operand is not None]
    for operand in operands:
        size = operand.shape[axis] if operand.tensor.dims is not None else None
        if not isinstance(size, int):
            if begin >= start + count and count:
                break  # what follows is not reached
            return "an operand's size is not known"
        first, last = max(start, begin), min(start + count, begin + size)
        if first < last:
            pieces.append((operand, _Range(first - begin, last - first)))
        begin += size
    if not pieces or len(pieces) == len(operands):
        return "it reaches all operands, or none"
    parts = [_slice(build, operand, {**ranges, axis: part}) for operand, part in pieces]
    sliced = [part for part in parts if part is not None]
    if len(sliced) != len(parts):
        return "a stepped range has an unknown length"
    return sliced[0] if len(sliced) == 1 else build.add(Concat(axis), *sliced)


@rule(op(Slice, op(Broadcast, any_("x")).bind("inner")).bind("root"))
def slice_of_broadcast(build: Builder, root: Value, inner: Value, x: Value) -> Rewritten:
    """slice(broadcast(x)) = broadcast(x) to fewer places, where it cuts only axes along which x is repeated"""
    ranges = _ranges(root, inner)
    if ranges is None or x.tensor.dims is None:
        return _UNKNOWN
    added = inner.rank - x.rank
    if any(axis >= added and not equal(x.shape[axis - added], 1) for axis in ranges):
        return "it cuts an axis that x has"
    return build.add(Broadcast(root.shape), x)


@rule(op(Concat).bind("root"))
def concat_one(build: Builder, root: Value) -> Rewritten:
    """concat(x) = x, concat(x, empty) = concat(x)"""
    axis = op_of(root, Concat).axis
    operands = [operand for operand in root.instruction.operands if operand is not None]
    if any(operand.tensor.dims is None for operand in operands):
        return "the rank is not known"
    filled = [operand for operand in operands if not equal(operand.shape[axis], 0)] or operands[:1]
    if len(filled) == 1:
        return filled[0]
    return build.add(Concat(axis), *filled) if len(filled) < len(operands) else None


@rule(op(Concat).bind("root"))
def concat_once(build: Builder, root: Value) -> Rewritten:
    """concat(concat(x, y), z) = concat(x, y, z)

    The inner one may have other readers: it then stays beside, and is no longer read here.
    """
    axis = op_of(root, Concat).axis
    flat: list[Value | None] = []
    for operand in root.instruction.operands:
        inner = operand.instruction if operand is not None else None
        if inner is not None and isinstance(inner.op, Concat) and inner.op.axis == axis:
            flat.extend(inner.operands)
        else:
            flat.append(operand)
    return build.add(Concat(axis), *flat) if len(flat) > len(root.instruction.operands) else None


@rule(op(Concat).bind("root"))
def concat_of_split(root: Value) -> Rewritten:
    """concat(split(x)) = x, where all pieces come in order"""
    operands = root.instruction.operands
    maker = operands[0].instruction if operands[0] is not None else None
    if maker is None or not isinstance(maker.op, Split) or maker.op.axis != op_of(root, Concat).axis:
        return None
    x = maker.operands[0]
    return x if x is not None and operands == maker.results else "the pieces are others, or in another order"


@rule(op(Split, any_("x"), index=0).bind("root"))
def split_nothing(root: Value, x: Value) -> Rewritten:
    """split(x) into one piece = x"""
    return (x,) if len(root.instruction.types) == 1 else None


@rule(op(Gather, any_("x"), known("indices")).bind("root"))
def slice_for_gather(build: Builder, root: Value, x: Value, indices: Value) -> Rewritten:
    """gather(x, i) = slice(x, i, i + 1) without its axis; gather(x, [i, i + 1, …]) = slice(x, i, …)

    For known consecutive indices; a negative one counts from the end on both sides.
    """
    places = [] if indices.known is None else indices.known.reshape(-1).tolist()
    if not places or any(not isinstance(place, int) for place in places) or indices.rank > 1:
        return "the indices are not a list of numbers"
    first, last = places[0], places[-1]
    if places != list(range(first, first + len(places))) or (first < 0 <= last):
        return "the indices are not consecutive"
    if x.tensor.dims is None or root.tensor.dims is None:
        return "the rank is not known"
    axis = op_of(root, Gather).axis
    size = x.shape[axis]
    low = bounds(size)[0]
    if low is None or (last >= low if first >= 0 else -first > low):
        return "an index may be out of range, which only gathering reports"
    base: DimLike = size if first < 0 else 0  # as long as an index is in range, it counts from there
    part = build.add(Slice((base + first,), (base + last + 1,), (axis,), (1,)), x)
    return part if indices.rank == 1 else build.add(Reshape(root.shape, allow_zero=True), part)


RULES = RuleSet.collect(vars())
