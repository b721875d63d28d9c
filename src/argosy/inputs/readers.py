"""What ops need of their operands: indices within an axis, sizes that fit, counts, axes that differ.

A row for each op that doesn't take every number. The sizes are those of the run, so that a range reaches to the last
row of a table, and not only to those that every table has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from argosy.errors import ModelError
from argosy.inputs.need import Need
from argosy.ir import dim as dims
from argosy.ir.dim import Dim, DimLike
from argosy.ir.module import Instruction, Value
from argosy.ir.types import TensorType
from argosy.ops.shapes import normalize_axis

__all__ = ["Sizes", "needs_of_reader", "place_of"]

_FEW: Final = 2
"""How often something is repeated, or enlarged, where an input says it."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a run, by symbol."""

    values: Mapping[str, int]

    def of(self, dim: DimLike) -> int | None:
        """The size that a dim has, or surely reaches; None where that is nothing."""
        try:
            return dims.evaluate(dim, self.values)
        except ModelError:
            low = dims.bounds(dims.substitute(dim, self.values))[0]
            return low if low is not None and low > 0 else None

    def shape(self, value: Value | None) -> tuple[int | None, ...] | None:
        """The sizes of a tensor's axes; None where not even the rank is known."""
        kind = None if value is None else value.type
        if not isinstance(kind, TensorType) or kind.dims is None:
            return None
        return tuple(self.of(dim) for dim in kind.dims)

    def whole(self, value: Value | None) -> tuple[int, ...] | None:
        """The same, where every size is known."""
        shape = self.shape(value)
        found = tuple(size for size in shape or () if size is not None)
        return found if shape is not None and len(found) == len(shape) else None

    def count(self, value: Value | None) -> int | None:
        """How many elements a tensor has."""
        shape = self.whole(value)
        return None if shape is None else math.prod(shape)


@dataclass(frozen=True, slots=True)
class _Read:
    """An instruction that reads: its op, its operands, and how reasons name it."""

    op: Any
    operands: Sequence[Value | None]
    sizes: Sizes
    where: str

    def operand(self, position: int) -> Value | None:
        """An operand, None where it is absent."""
        return self.operands[position] if position < len(self.operands) else None

    def entries(self, position: int) -> int | None:
        """How many elements an operand has."""
        operand = self.operand(position)
        return None if operand is None else self.sizes.count(operand)

    @property
    def shape(self) -> tuple[int | None, ...] | None:
        """The sizes of the first operand."""
        return self.sizes.shape(self.operands[0])

    @property
    def rank(self) -> int | None:
        """The number of its axes."""
        return None if self.shape is None else len(self.shape)

    def along(self, axis: int) -> int | None:
        """Its size along an axis."""
        shape = self.shape
        return shape[normalize_axis(axis, len(shape))] if shape else None


Needs: TypeAlias = Iterator[tuple[int, Need]]
Reader: TypeAlias = Callable[[_Read], Needs]


def place_of(instruction: Instruction) -> str:
    """How reasons name an instruction."""
    source = instruction.source
    return source if " (node " in source else f"{instruction.op.name} {source!r}" if source else instruction.op.name


def needs_of_reader(instruction: Instruction, sizes: Sizes) -> Needs:
    """What an instruction needs of its operands by itself, by their position."""
    reader = _READERS.get(instruction.op.name)
    if reader is not None:
        yield from reader(_Read(instruction.op, instruction.operands, sizes, place_of(instruction)))


def _between(position: int, low: float, high: float | None, reason: str) -> Needs:
    """A need, where its bounds leave something."""
    if high is not None and low <= high:
        yield position, Need(low, high, reason)


def _exactly(position: int, values: Sequence[float] | None, reason: str) -> Needs:
    if values:
        yield position, Need(min(values), max(values), reason, tuple(values))


def _less(size: int | None) -> int | None:
    return None if size is None else size - 1


def _indices(read: _Read) -> Needs:
    yield from _between(1, 0, _less(read.along(read.op.axis)), f"indices of {read.where}")


def _coordinates(read: _Read) -> Needs:
    """All coordinates of an index have one range: that of the shortest axis."""
    shape, index = read.shape, read.sizes.shape(read.operands[1])
    if shape and index and index[-1] is not None:
        begin = getattr(read.op, "batch_dims", 0)
        reached = shape[begin : begin + index[-1]]
        known = [size for size in reached if size is not None]
        if known and len(known) == len(reached):
            yield from _between(1, 0, min(known) - 1, f"indices of {read.where}")


def _one_hot(read: _Read) -> Needs:
    known = None if read.operands[1] is None else read.operands[1].known
    if known is None:
        yield from _between(1, _FEW, 4 * _FEW, f"depth of {read.where}")
        return
    depth = known.flat[0]  # a float where the model says so
    size = read.sizes.of(depth) if isinstance(depth, Dim) else int(depth)
    yield from _between(0, 0, _less(size), f"classes of {read.where}")


def _lengths(position: int, axis: int) -> Reader:
    def needs(read: _Read) -> Needs:
        along = getattr(read.op, "time_axis", axis)
        if read.operand(position) is not None:
            yield from _between(position, 1, read.along(along), f"lengths for {read.where}")

    return needs


def _topk(read: _Read) -> Needs:
    yield from _between(1, 1, read.along(read.op.axis), f"k of {read.where}")


def _axes(position: int, *, grown: bool = False) -> Reader:
    """Axes that must differ: the first ones, or the first of the result."""

    def needs(read: _Read) -> Needs:
        given, rank = read.operand(position), read.rank
        count = read.entries(position)
        if given is not None and count is not None and rank is not None and count <= (rank + count if grown else rank):
            yield from _exactly(position, range(count), f"axes of {read.where}")

    return needs


def _squeeze(read: _Read) -> Needs:
    shape, given = read.shape, read.operand(1)
    if shape is not None and given is not None:
        ones = [axis for axis, size in enumerate(shape) if size == 1]
        yield from _exactly(1, ones[: read.sizes.count(given)], f"axes of {read.where}")


def _axis(read: _Read) -> Needs:
    yield from _between(1, 0, _less(read.rank), f"axis of {read.where}")


def _reshape(read: _Read) -> Needs:
    """The dims of what is reshaped, in as many entries as there are."""
    shape, entries = read.sizes.whole(read.operands[0]), read.entries(1)
    if shape is not None and entries:
        spare = entries - len(shape)
        wanted = (1,) * spare + shape if spare >= 0 else (math.prod(shape[: 1 - spare]), *shape[1 - spare :])
        yield from _exactly(1, wanted, f"shape of {read.where}")


def _broadcast(read: _Read) -> Needs:
    shape, entries = read.sizes.whole(read.operands[0]), read.entries(1)
    if shape is not None and entries:
        aligned = ((1,) * (entries - len(shape)) + shape)[-entries:]
        yield from _exactly(1, [_FEW if size == 1 else size for size in aligned], f"shape of {read.where}")


def _tile(read: _Read) -> Needs:
    yield from _between(1, 1, _FEW, f"repeats of {read.where}")


def _split(read: _Read) -> Needs:
    total, count = read.along(read.op.axis), read.entries(1)
    if total is not None and count:
        each = total // count
        yield from _exactly(1, [*[each] * (count - 1), total - each * (count - 1)], f"sizes of {read.where}")


def _pieces(read: _Read) -> Needs:
    """The size of each piece, or of all."""
    total, given = read.along(read.op.axis), read.operand(1)
    if given is not None and given.tensor.dims == ():
        yield from _between(1, 1, total, f"size of the pieces of {read.where}")
    else:
        yield from _split(read)


def _columns(read: _Read) -> Needs:
    """Blocks of one element, as many as there are columns, in one row."""
    shape, entries = read.sizes.whole(read.operands[0]), read.entries(1)
    plain = not any(read.op.pads or ()) and set(read.op.strides or (1,)) == {1}
    if shape is not None and entries and plain:
        yield from _exactly(1, [1] * (entries - 1) + [shape[-1]], f"shape of the image of {read.where}")
        yield from _exactly(2, [1] * entries, f"shape of the blocks of {read.where}")


def _slice(read: _Read) -> Needs:
    """Any place will do; the first half of an axis is where a slice begins, so that something is left of it."""
    known = [size for size in read.shape or () if size is not None]
    shortest = min(known, default=0)
    yield from _between(1, 0, shortest // 2, f"starts of {read.where}")
    yield from _between(2, shortest // 2 + 1, shortest, f"ends of {read.where}")
    yield from _axes(3)(read)
    yield from _between(4, 1, _FEW, f"steps of {read.where}")


def _range(read: _Read) -> Needs:
    yield from _between(0, 0, 1, f"start of {read.where}")
    yield from _between(1, _FEW, 4 * _FEW, f"limit of {read.where}")
    yield from _between(2, 1, _FEW, f"delta of {read.where}")


def _resize(read: _Read) -> Needs:
    """The last two of all axes are enlarged, or those that the op names."""
    shape = read.sizes.whole(read.operands[0])
    if shape is None:
        return
    rank = len(shape)
    axes = range(rank) if read.op.axes is None else [normalize_axis(axis, rank) for axis in read.op.axes]
    factors = [_FEW if read.op.axes is not None or axis >= rank - _FEW else 1 for axis in axes]
    if read.entries(2) == len(axes):
        yield from _exactly(2, factors, f"scales of {read.where}")
    if read.entries(3) == len(axes):
        grown = [shape[axis] * by for axis, by in zip(axes, factors, strict=True)]
        yield from _exactly(3, grown, f"sizes of {read.where}")


def _suppression(read: _Read) -> Needs:
    if read.op.center_point_box:
        yield from _between(0, 0, 1, f"boxes of {read.where}: they have a width and a height")
    yield from _between(2, 1, read.along(1), f"most boxes of {read.where}")
    yield from _between(3, 0, 1, f"overlap of {read.where}")
    yield from _between(4, 0, 0.5, f"least score of {read.where}")


def _regions(read: _Read) -> Needs:
    shape = read.shape
    if shape is not None and len(shape) == 4:
        yield from _between(2, 0, _less(shape[0]), f"images of {read.where}")
        sides = [size for size in shape[2:] if size is not None]
        if len(sides) == _FEW:
            yield from _between(1, 0, min(sides) / read.op.scale, f"corners in the images of {read.where}")


def _frames(read: _Read) -> Needs:
    total = read.along(1)
    yield from _between(1, 1, total, f"length of the frames of {read.where}")
    yield from _between(2, 1, total, f"step of the frames of {read.where}")


def _fourier(read: _Read) -> Needs:
    shape = read.shape
    if shape is not None:
        axis = read.op.axis if read.op.axis is not None else 1
        yield from _between(1, 1, shape[axis] if axis < len(shape) else None, f"length of {read.where}")
        yield from _between(2, 1, len(shape) - 2, f"axis of {read.where}")


def _mel(read: _Read) -> Needs:
    for position, low, high, what in (
        (0, 2, 8, "bins"),
        (1, 16, 64, "length"),
        (2, 8000, 16000, "sample rate"),
        (3, 0, 100, "lower edge"),
        (4, 2000, 4000, "upper edge"),
    ):
        yield from _between(position, low, high, f"{what} of {read.where}")


def _scale(read: _Read) -> Needs:
    yield from _between(1, 2.0**-6, 1, f"scale of {read.where}")


def _labels(read: _Read) -> Needs:
    keys = None if read.operands[1] is None else read.operands[1].constant
    if keys is not None and keys.dtype.is_integer and keys.size:
        array = keys.array()
        yield from _between(0, int(array.min()), int(array.max()), f"keys of {read.where}")


def _compress(read: _Read) -> Needs:
    """A condition that is longer than the axis must not select what is beyond."""
    total = read.sizes.count(read.operands[0]) if read.op.axis is None else read.along(read.op.axis)
    count = read.entries(1)
    if total is not None and count is not None and count > total:
        values = [float(index < total and index % _FEW == 0) for index in range(count)]
        yield from _exactly(1, values, f"condition of {read.where}")


_READERS: Final[dict[str, Reader]] = {
    "gather": _indices,
    "gather_elements": _indices,
    "scatter_elements": _indices,
    "gather_nd": _coordinates,
    "scatter_nd": _coordinates,
    "one_hot": _one_hot,
    "rnn": _lengths(4, 0),
    "reverse_sequence": _lengths(1, 0),
    "topk": _topk,
    "squeeze": _squeeze,
    "unsqueeze": _axes(1, grown=True),
    "reduce": _axes(1),
    "cumulative": _axis,
    "reshape": _reshape,
    "broadcast": _broadcast,
    "tile": _tile,
    "split": _split,
    "sequence_split": _pieces,
    "col2im": _columns,
    "slice": _slice,
    "pad": _axes(3),
    "range": _range,
    "resize": _resize,
    "non_max_suppression": _suppression,
    "roi_align": _regions,
    "frames": _frames,
    "dft": _fourier,
    "mel_weights": _mel,
    "quantize": _scale,
    "dequantize": _scale,
    "map_labels": _labels,
    "compress": _compress,
}
