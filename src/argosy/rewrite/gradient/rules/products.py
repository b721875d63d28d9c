"""Matrix products and Einstein sums."""

from __future__ import annotations

import string
from collections.abc import Sequence

from argosy.ir.builder import Builder
from argosy.ir.module import Value
from argosy.ops.einsum import Einsum, parse_equation
from argosy.ops.index import Range
from argosy.ops.matmul import Dot
from argosy.ops.view import Broadcast, Transpose, Unsqueeze
from argosy.rewrite.gradient.derivative import Backward, Gradients, derivative, reshaped, size_of
from argosy.rewrite.gradient.unbroadcast import unbroadcast

__all__: list[str] = []


@derivative(Dot)
def dot(step: Backward) -> Gradients:
    """G bᵀ and aᵀ g, in the type of the result."""
    build = step.build
    left, right = (build.convert(step.operand(index), step.result.dtype) for index in range(2))
    gradient = step.gradient
    # A vector is a row on the left, a column on the right.
    row, column = left.rank == 1, right.rank == 1
    if column:
        right, gradient = build.add(Unsqueeze((1,)), right), build.add(Unsqueeze((-1,)), gradient)
    if row:
        left, gradient = build.add(Unsqueeze((0,)), left), build.add(Unsqueeze((-2,)), gradient)
    found: list[Value | None] = [None, None]
    if step.wants(0):
        found[0] = unbroadcast(build, build.add(Dot(), gradient, _turned(build, right)), left)
    if step.wants(1):
        found[1] = unbroadcast(build, build.add(Dot(), _turned(build, left), gradient), right)
    operands = [step.operand(index) for index in range(2)]
    return [
        None if value is None else build.convert(reshaped(build, value, operand.shape), operand.dtype)
        for value, operand in zip(found, operands, strict=True)
    ]


def _turned(build: Builder, matrix: Value) -> Value:
    axes = list(range(matrix.rank))
    return build.add(Transpose((*axes[:-2], axes[-1], axes[-2])), matrix)


@derivative(Einsum)
def einsum(step: Backward) -> Gradients:
    """The equation with the operand and the result changed over.

    Axes that are summed alone are repeated; an axis that stands twice in the operand gives its diagonal back.
    """
    build = step.build
    labels, result = _without_ellipsis(step)
    found: list[Value | None] = []
    for index, own in enumerate(labels):
        if not step.wants(index):
            found.append(None)
            continue
        others = [place for place in range(len(labels)) if place != index]
        there = {*result, *(label for place in others for label in labels[place])}
        kept = [label for axis, label in enumerate(own) if label in there and label not in own[:axis]]
        terms = [result, *(labels[place] for place in others)]
        value = build.add(
            Einsum(f"{','.join(map(''.join, terms))}->{''.join(kept)}"),
            step.gradient,
            *(step.operand(place) for place in others),
        )
        alone = tuple(axis for axis, label in enumerate(own) if label not in there or label in own[:axis])
        operand = step.operand(index)
        if alone:
            value = build.add(Broadcast(operand.shape), build.add(Unsqueeze(alone), value))
        value = unbroadcast(build, value, operand)
        for axis, label in enumerate(own):
            if label in own[:axis]:
                value = _diagonal(build, value, own.index(label), axis)
        found.append(value)
    return found


def _without_ellipsis(step: Backward) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """The labels of the operands and of the result, with labels of their own for the axes of an ellipsis."""
    equation = parse_equation(step.op(Einsum).equation)
    used = {label for term in equation.operands for label in term}
    counts = [
        step.operand(index).rank - len(term) + 1 if "..." in term else 0 for index, term in enumerate(equation.operands)
    ]
    most = max(counts)
    spare = [letter for letter in string.ascii_letters if letter not in used][:most]

    def spelt(term: Sequence[str], count: int) -> tuple[str, ...]:
        letters = spare[most - count :]  # aligned at the right, as shapes that broadcast are
        return tuple(label for given in term for label in (letters if given == "..." else (given,)))

    operands = [spelt(term, count) for term, count in zip(equation.operands, counts, strict=True)]
    return operands, spelt(equation.result, most)


def _diagonal(build: Builder, value: Value, first: int, second: int) -> Value:
    """`value` where the places on two axes are equal, zero elsewhere."""
    places = [_places(build, value, axis) for axis in (first, second)]
    return build.pointwise(lambda v, a, b: (a == b).select(v, 0.0), value, *places)


def _places(build: Builder, value: Value, axis: int) -> Value:
    """0, 1, … along an axis."""
    count = size_of(build, value.shape[axis])
    numbers = build.add(Range(), build.constant(0), count, build.constant(1))
    after = value.rank - axis - 1
    return build.add(Unsqueeze(tuple(range(1, after + 1))), numbers) if after else numbers
