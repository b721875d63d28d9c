"""Sequences and optionals: host values. A sequence is a Python list, an absent optional is None.

What is certain of every element is the element type of the sequence; its symbolic dims may differ from
element to element, so that each element taken out gets fresh ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.errors import ModelError
from argosy.ir import dim as dims
from argosy.ir.dim import DimLike
from argosy.ir.dtype import BOOL, INT64
from argosy.ir.module import Value
from argosy.ir.op import Op, fresh, register
from argosy.ir.types import OptionalType, SequenceType, TensorType, Type, map_dims
from argosy.ops.border import Border
from argosy.ops.operands import ints, number, present, steering
from argosy.ops.shapes import normalize_axis

__all__ = [
    "MakeOptional",
    "OptionalGetElement",
    "OptionalHasElement",
    "SequenceAt",
    "SequenceConcat",
    "SequenceConstruct",
    "SequenceErase",
    "SequenceInsert",
    "SequenceLength",
    "SequenceSplit",
]


def _sequence(operand: Value | None) -> SequenceType:
    kind = present(operand).type
    if isinstance(kind, OptionalType):
        kind = kind.element
    if not isinstance(kind, SequenceType):
        raise ModelError(f"found {kind}, expected a sequence")
    return kind


def _common(kinds: Sequence[Type]) -> Type:
    """The type of the elements of a sequence."""
    try:
        return Border(frozenset()).type(*kinds) if len(kinds) > 1 else kinds[0]
    except ModelError:
        found = " and ".join(dict.fromkeys(map(str, kinds)))
        raise ModelError(f"a sequence would hold {found}, expected elements of one type") from None


def _taken_out(kind: Type) -> Type:
    """The type of one element: symbolic dims of the element type are another size for each."""
    places = itertools.count()
    return map_dims(kind, lambda dim: dim if isinstance(dim, int) else fresh(f"{next(places)}_"))


def _position(index: Any, length: int, *, inserting: bool = False) -> int:
    """`index` counted from the front; inserting, the place behind the last element counts too."""
    place = int(number(index, "the position"))
    last = length if inserting else length - 1
    if not -length <= place <= last:
        raise ModelError(f"the position {place} is outside a sequence of {length} elements")
    return place + length if place < 0 else place


@register
@dataclass(frozen=True, slots=True)
class SequenceConstruct(Op):
    """A sequence of the operands; `element` is the type of the elements where there are none."""

    name = "sequence_construct"
    element: Type | None = None

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        kinds = [present(operand).type for operand in operands]
        if not kinds:
            if self.element is None:
                raise ModelError("an empty sequence has no element type")
            return (SequenceType(self.element),)
        return (SequenceType(_common(kinds)),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        return (list(values),)


@register
@dataclass(frozen=True, slots=True)
class SequenceInsert(Op):
    """The sequence with a value put in before `position`, or at the end. Operands: sequence, value, [position]."""

    name = "sequence_insert"

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        element, value = _sequence(operands[0]).element, present(operands[1]).type
        return (SequenceType(element if element == value else _common([element, value])),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        sequence, value, position = (*values, None)[:3]
        result = list(sequence)
        place = len(result) if position is None else _position(position, len(result), inserting=True)
        result.insert(place, value)
        return (result,)


@register
@dataclass(frozen=True, slots=True)
class SequenceErase(Op):
    """The sequence without the element at `position`, or the last. Operands: sequence, [position]."""

    name = "sequence_erase"

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        return (_sequence(operands[0]),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        sequence, position = (*values, None)[:2]
        place = _position(-1 if position is None else position, len(sequence))
        return ([*sequence[:place], *sequence[place + 1 :]],)


@register
@dataclass(frozen=True, slots=True)
class SequenceAt(Op):
    """One element. Operands: sequence, position (from the end where negative)."""

    name = "sequence_at"

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        return (_taken_out(_sequence(operands[0]).element),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        sequence, position = values
        return (sequence[_position(position, len(sequence))],)


@register
@dataclass(frozen=True, slots=True)
class SequenceLength(Op):
    """The number of elements, an int64 scalar."""

    name = "sequence_length"

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        _sequence(operands[0])
        return (TensorType(INT64, ()),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        return (np.array(len(values[0]), np.int64),)


@register
@dataclass(frozen=True, slots=True)
class SequenceConcat(Op):
    """All tensors of the sequence one after another along `axis`, or stacked along a new one."""

    name = "sequence_concat"
    axis: int
    new_axis: bool = False

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        element = _sequence(operands[0]).element
        if not isinstance(element, TensorType):
            raise ModelError(f"a sequence of {element} can't be concatenated, expected tensors")
        if element.dims is None:
            return (element,)
        # Apart from `axis` all elements have the same dims, so these are one size for all of them.
        result = [dim if isinstance(dim, int) else fresh(f"{axis}_") for axis, dim in enumerate(element.dims)]
        axis = normalize_axis(self.axis, len(result) + self.new_axis)
        if self.new_axis:
            result.insert(axis, fresh("joined"))
        else:
            result[axis] = fresh("joined")
        return (element.with_dims(tuple(result)),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        sequence = values[0]
        if not sequence:
            raise ModelError("an empty sequence can't be concatenated")
        parts = [np.asarray(part) for part in sequence]
        try:
            return ((np.stack if self.new_axis else np.concatenate)(parts, self.axis),)
        except ValueError:
            shapes = ", ".join(str(list(part.shape)) for part in parts)
            raise ModelError(f"tensors of the shapes {shapes} can't be joined along axis {self.axis}") from None


@register
@dataclass(frozen=True, slots=True)
class SequenceSplit(Op):
    """A sequence of pieces of `x` along `axis`. Operands: x, [sizes].

    `sizes` is 1-D, a size for each piece, or a scalar, the size of all but the last; without it all have
    size 1, and lose the axis unless `keep_dims`.
    """

    name = "sequence_split"
    axis: int
    keep_dims: bool = True

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, sizes = (*operands, None)[:2]
        tensor = present(x).tensor
        axis = normalize_axis(self.axis, tensor.rank)
        before, after = tensor.shape[:axis], tensor.shape[axis + 1 :]
        if sizes is None:
            return (SequenceType(tensor.with_dims((*before, *((1,) if self.keep_dims else ()), *after))),)
        return (SequenceType(tensor.with_dims((*before, self._piece(tensor.shape[axis], sizes), *after))),)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        return (SequenceType(TensorType(present(operands[0]).dtype, None)),)

    @staticmethod
    def _piece(size: DimLike, sizes: Value) -> DimLike:
        known = steering(None, sizes)
        if known and sizes.tensor.dims == () and dims.equal(dims.mod(size, known[0]), 0):
            return known[0]
        if known and sizes.tensor.dims != () and all(dims.equal(known[0], other) for other in known):
            return known[0]
        return fresh("piece")

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, sizes = (*values, None)[:2]
        x = np.asarray(x)
        axis = normalize_axis(self.axis, x.ndim)
        length = x.shape[axis]
        if sizes is None:
            pieces = np.split(x, length, axis) if length else []
            return ([piece if self.keep_dims else piece.squeeze(axis) for piece in pieces],)
        given = ints(None, sizes, "sizes")
        if np.ndim(sizes) == 0:
            if given[0] <= 0:
                raise ModelError(f"the size of the pieces is {given[0]}, expected a positive number")
            return (np.split(x, range(given[0], length, given[0]), axis) if length else [],)
        if sum(given) != length or min(given, default=0) < 0:
            raise ModelError(f"the sizes {list(given)} do not add up to the dim {length} of axis {axis}")
        return (np.split(x, np.cumsum(given[:-1]), axis),)


@register
@dataclass(frozen=True, slots=True)
class MakeOptional(Op):
    """An optional that holds the operand, or, without one, is absent; `element` is then its type."""

    name = "optional"
    element: Type | None = None

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        if operands and operands[0] is not None:
            return (OptionalType(operands[0].type),)
        if self.element is None:
            raise ModelError("an absent optional has no element type")
        return (OptionalType(self.element),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        return (values[0] if values else None,)


@register
@dataclass(frozen=True, slots=True)
class OptionalHasElement(Op):
    """True where the operand is there: false for an absent optional, and without an operand."""

    name = "optional_has_element"

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(BOOL, ()),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        return (np.array(bool(values) and values[0] is not None),)


@register
@dataclass(frozen=True, slots=True)
class OptionalGetElement(Op):
    """What an optional holds; an absent one is an error. A value that is no optional is returned as it is."""

    name = "optional_get_element"

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        kind = present(operands[0]).type
        return (_taken_out(kind.element) if isinstance(kind, OptionalType) else kind,)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        if values[0] is None:
            raise ModelError("an element is taken from an absent optional", hint="ask OptionalHasElement first")
        return (values[0],)
