"""Matrix products and Einstein sums."""

from __future__ import annotations

from argosy.ir.builder import Builder
from argosy.ir.module import Value
from argosy.ops.einsum import Einsum, parse_equation
from argosy.ops.matmul import Dot
from argosy.ops.view import Broadcast, Transpose, Unsqueeze
from argosy.rewrite.gradient.derivative import Backward, Gradients, derivative, reshaped
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
    """The equation with the operand and the result changed over; axes that are summed alone are repeated."""
    build = step.build
    equation = parse_equation(step.op(Einsum).equation)
    labels = equation.operands
    if any("..." in term for term in labels):
        step.refuse(f"its equation {equation} has an ellipsis")
    found: list[Value | None] = []
    for index, own in enumerate(labels):
        if not step.wants(index):
            found.append(None)
            continue
        if len(set(own)) < len(own):
            step.refuse(f"its equation {equation} takes a diagonal")
        others = [place for place in range(len(labels)) if place != index]
        there = {*equation.result, *(label for place in others for label in labels[place])}
        kept = [label for label in own if label in there]
        terms = ",".join("".join(labels[place]) for place in others)
        text = f"{''.join(equation.result)}{',' if others else ''}{terms}->{''.join(kept)}"
        value = build.add(Einsum(text), step.gradient, *(step.operand(place) for place in others))
        alone = tuple(axis for axis, label in enumerate(own) if label not in there)
        operand = step.operand(index)
        if alone:
            value = build.add(Broadcast(operand.shape), build.add(Unsqueeze(alone), value))
        found.append(unbroadcast(build, value, operand))
    return found
