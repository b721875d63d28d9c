"""Sequences and optionals that a model makes and takes apart itself: what is in them is known, so none need be made.

Exporters write a split as a sequence of pieces and then take out each, and a join as a sequence of operands. Elements
move and none changes, so every rule is exact. A rule declines where a run might report an error: of a position outside,
sizes that don't add up, shapes that don't fit.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from argosy.ir.builder import Builder
from argosy.ir.dim import equal
from argosy.ir.dtype import BOOL, INT64
from argosy.ir.module import Value
from argosy.ir.types import TensorType
from argosy.ops.joining import Concat
from argosy.ops.operands import numbers, present
from argosy.ops.sequence import (
    MakeOptional,
    OptionalGetElement,
    OptionalHasElement,
    SequenceAt,
    SequenceConcat,
    SequenceConstruct,
    SequenceErase,
    SequenceInsert,
    SequenceLength,
    SequenceSplit,
)
from argosy.ops.shapes import normalize_axis
from argosy.ops.slicing import Slice
from argosy.ops.view import Squeeze, Unsqueeze
from argosy.rewrite.pattern import any_, known, op, op_of
from argosy.rewrite.rule import Rewritten, RuleSet, rule

__all__ = ["RULES"]


@dataclass(frozen=True, slots=True)
class _Piece:
    """`count` places of one axis of `x` from `start` on; without the axis, unless it is kept."""

    x: Value
    axis: int
    start: int
    count: int
    keeps_axis: bool

    def built(self, build: Builder) -> Value:
        part = build.add(Slice((self.start,), (self.start + self.count,), (self.axis,), (1,)), self.x)
        return part if self.keeps_axis else build.add(Squeeze((self.axis,)), part)


_Element: TypeAlias = Value | _Piece


def _elements(sequence: Value) -> list[_Element] | str:
    """What is in a sequence, or why that is not known."""
    edits: list[Value] = []
    while isinstance(sequence.instruction.op, SequenceInsert | SequenceErase):
        edits.append(sequence)
        sequence = present(sequence.instruction.operands[0])
    match sequence.instruction.op:
        case SequenceConstruct():
            found: list[_Element] | str = [present(operand) for operand in sequence.instruction.operands]
        case SequenceSplit():
            found = _pieces(sequence)
        case _:
            return "the sequence comes from elsewhere"
    for edit in reversed(edits):
        if isinstance(found, str):
            return found
        found = _edited(edit, found)
    return found


def _edited(edit: Value, elements: list[_Element]) -> list[_Element] | str:
    """The elements after one was put in or taken out."""
    inserts = isinstance(edit.instruction.op, SequenceInsert)
    operands = (*edit.instruction.operands, None, None)
    position = operands[2] if inserts else operands[1]
    count = len(elements) + inserts
    place = _place(position, count, behind=inserts) if position is not None else count - 1
    if isinstance(place, str):
        return place
    if not 0 <= place < count:
        return "an element is taken out of an empty sequence"
    if inserts:
        return [*elements[:place], present(operands[1]), *elements[place:]]
    return [*elements[:place], *elements[place + 1 :]]


def _place(position: Value, count: int, *, behind: bool = False) -> int | str:
    """A position counted from the front, of `count`; with `behind`, the last of them is behind what there is."""
    given = numbers(None, position)
    if given is None or len(given) != 1:
        return "a position is not known"
    place = given[0] + (count - behind if given[0] < 0 else 0)
    return place if 0 <= place < count else "a position is outside the sequence"


def _pieces(sequence: Value) -> list[_Element] | str:
    """The pieces that a tensor is split into."""
    made_by = op_of(sequence, SequenceSplit)
    x, sizes = (*sequence.instruction.operands, None)[:2]
    source = present(x)
    if source.tensor.dims is None:
        return "the rank is not known"
    axis = normalize_axis(made_by.axis, source.rank)
    length = source.shape[axis]
    if not isinstance(length, int):
        return "the size of the axis is not known"
    if sizes is None:
        return [_Piece(source, axis, start, 1, made_by.keep_dims) for start in range(length)]
    given = numbers(None, sizes)
    if given is None or sizes.tensor.dims is None:
        return "the sizes are not known"
    if sizes.rank == 0:
        if given[0] <= 0:
            return "the size of the pieces is not positive"
        starts = range(0, length, given[0])
        return [_Piece(source, axis, start, min(given[0], length - start), keeps_axis=True) for start in starts]
    if sum(given) != length or min(given, default=0) < 0:
        return "the sizes don't add up to that of the axis"
    begins = itertools.accumulate(given[:-1], initial=0)
    return [_Piece(source, axis, start, count, keeps_axis=True) for start, count in zip(begins, given, strict=False)]


def _value(element: _Element, build: Builder) -> Value:
    return element.built(build) if isinstance(element, _Piece) else element


@rule(op(SequenceAt, any_("sequence"), known("position")))
def element_at(build: Builder, sequence: Value, position: Value) -> Rewritten:
    """at([a, b, …], i) = the element at i"""
    elements = _elements(sequence)
    if isinstance(elements, str):
        return elements
    place = _place(position, len(elements))
    return place if isinstance(place, str) else _value(elements[place], build)


@rule(op(SequenceLength, any_("sequence")))
def length_of_elements(build: Builder, sequence: Value) -> Rewritten:
    """length([a, b, …]) = the number of elements"""
    elements = _elements(sequence)
    return elements if isinstance(elements, str) else build.constant(np.array(len(elements)), INT64)


@rule(op(SequenceConcat, any_("sequence")).bind("root"))
def concat_of_elements(build: Builder, root: Value, sequence: Value) -> Rewritten:
    """concat([a, b, …]) = concat(a, b, …), with an axis of size 1 put into each where they are stacked"""
    elements = _elements(sequence)
    if isinstance(elements, str):
        return elements
    made_by = op_of(root, SequenceConcat)
    values = [_value(element, build) for element in elements]
    if not values or not all(isinstance(value.type, TensorType) and value.tensor.dims is not None for value in values):
        return "there are no elements, or ones of unknown rank"
    rank = values[0].rank + made_by.new_axis
    if not -rank <= made_by.axis < rank:
        return "there is no such axis"
    axis = normalize_axis(made_by.axis, rank)
    if not _fit(values, -1 if made_by.new_axis else axis):
        return "the elements have other shapes"
    if made_by.new_axis:
        values = [build.add(Unsqueeze((axis,)), value) for value in values]
    return build.add(Concat(axis), *values)


def _fit(values: Sequence[Value], joined: int) -> bool:
    """Whether tensors may have the same shapes, but for the axis along which they are joined."""
    first = values[0]
    places = [axis for axis in range(first.rank) if axis != joined]
    return all(
        value.rank == first.rank and all(equal(value.shape[axis], first.shape[axis]) is not False for axis in places)
        for value in values
    )


@rule(op(OptionalGetElement, op(MakeOptional, any_("x"))))
def element_of_optional(x: Value) -> Rewritten:
    """get(optional(x)) = x"""
    return x


@rule(op(OptionalHasElement, op(MakeOptional).bind("made")))
def optional_made_here(build: Builder, made: Value) -> Rewritten:
    """has(optional(x)) = true, has(optional()) = false"""
    operands = made.instruction.operands
    return build.constant(np.array(bool(operands) and operands[0] is not None), BOOL)


RULES = RuleSet.collect(vars())
