"""Einstein sums become matrix products: transposed and reshaped so that what is summed lies side by side.

    einsum("bhid,bhjd->bhij", q, k) = dot(q, transpose(k))

Axes that both operands and the result have are batches, those that only the operands share are summed, the rest
are the rows and columns. Of three operands or more the first two are multiplied first. An axis of size 1 that repeats
along another's is left out of its operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.ir.builder import Builder
from argosy.ir.dim import DimLike, equal
from argosy.ir.module import Instruction, Module, Value
from argosy.ops.einsum import Einsum, parse_equation
from argosy.ops.matmul import Dot
from argosy.ops.reduce import Reduce
from argosy.ops.shapes import product
from argosy.ops.view import Reshape, Transpose
from argosy.passes.manager import PassContext, register_pass
from argosy.rewrite.rebuild import transform

__all__ = ["LowerEinsum"]

_ELLIPSIS = "..."


@register_pass
@dataclass(frozen=True, slots=True)
class LowerEinsum:
    """Replace each einsum whose operands have no axis twice and agree in the sizes of their axes, those of 1 apart."""

    name = "lower_einsum"

    def run(self, module: Module, context: PassContext) -> Module:
        """The module with its Einstein sums as products."""
        return transform(module, lambda: _lower, context.namer)


@dataclass(frozen=True, slots=True)
class _Term:
    """A value and the label of each of its axes."""

    value: Value
    labels: tuple[str, ...]

    def size(self, label: str) -> DimLike:
        return self.value.shape[self.labels.index(label)]

    def sizes(self, labels: Sequence[str]) -> tuple[DimLike, ...]:
        return tuple(self.size(label) for label in labels)


def _lower(build: Builder, instruction: Instruction) -> Sequence[Value] | None:
    if not isinstance(instruction.op, Einsum):
        return None
    operands = [operand for operand in instruction.operands if operand is not None]
    if any(operand.tensor.dims is None for operand in operands):
        return None
    equation = parse_equation(instruction.op.equation)
    terms = [_term(value, labels) for value, labels in zip(operands, equation.operands, strict=True)]
    if any(len(set(term.labels)) != len(term.labels) for term in terms) or not _agree(terms):
        return None
    longest = max((term.labels for term in terms), key=lambda labels: sum(map(_is_batch, labels)))
    result = [
        name for label in equation.result for name in (filter(_is_batch, longest) if label == _ELLIPSIS else (label,))
    ]
    build.at(instruction.source)
    terms = [_without_repeated(build, term, terms) for term in terms]
    # A short float is rounded once, at the end.
    dtype = operands[0].dtype
    if dtype.compute is not dtype and (len(terms) != 2 or any(_alone(terms, index, result) for index in range(2))):
        terms = [_Term(build.convert(term.value, dtype.compute), term.labels) for term in terms]
    while True:
        first = _summed(build, terms[0], {*result, *(label for term in terms[1:] for label in term.labels)})
        if len(terms) == 1:
            return [build.convert(_ordered(build, first, result), dtype)]
        kept = {*result, *(label for term in terms[2:] for label in term.labels)}
        second = _summed(build, terms[1], {*first.labels, *kept})
        terms[:2] = [_multiplied(build, first, second, kept)]


def _is_batch(label: str) -> bool:
    return label.startswith(_ELLIPSIS)


def _term(value: Value, labels: tuple[str, ...]) -> _Term:
    """The labels of all axes: those that "..." stands for are counted from the last."""
    spare = value.rank - sum(label != _ELLIPSIS for label in labels)
    batch = [f"{_ELLIPSIS}{place}" for place in range(spare, 0, -1)]
    return _Term(value, tuple(name for label in labels for name in (batch if label == _ELLIPSIS else (label,))))


def _agree(terms: Sequence[_Term]) -> bool:
    """Whether each label surely has one size, but for axes of 1, which may repeat along another's."""
    sizes: dict[str, DimLike] = {}
    for term in terms:
        for label in term.labels:
            size = term.size(label)
            known = sizes.setdefault(label, size)
            if known == 1:
                sizes[label] = size
            elif size != 1 and not equal(known, size):
                return False
    return True


def _without_repeated(build: Builder, term: _Term, terms: Sequence[_Term]) -> _Term:
    """Without the axes of 1 that another term has in another size."""
    longer = {label for other in terms for label in other.labels if other.size(label) != 1}
    kept = tuple(label for label in term.labels if term.size(label) != 1 or label not in longer)
    return term if kept == term.labels else _Term(_shaped(build, term.value, term.sizes(kept)), kept)


def _alone(terms: Sequence[_Term], index: int, result: Sequence[str]) -> bool:
    """Whether an operand has an axis that is summed before the product."""
    others = {label for place, term in enumerate(terms) if place != index for label in term.labels}
    return any(label not in others and label not in result for label in terms[index].labels)


def _summed(build: Builder, term: _Term, kept: set[str]) -> _Term:
    """Without the axes that nothing else has."""
    axes = tuple(axis for axis, label in enumerate(term.labels) if label not in kept)
    if not axes:
        return term
    value = build.add(Reduce("sum", axes, keep_dims=False), term.value)
    return _Term(value, tuple(label for label in term.labels if label in kept))


def _multiplied(build: Builder, left: _Term, right: _Term, kept: set[str]) -> _Term:
    batch = [label for label in left.labels if label in right.labels and label in kept]
    inner = [label for label in left.labels if label in right.labels and label not in kept]
    rows = [label for label in left.labels if label not in right.labels]
    columns = [label for label in right.labels if label not in left.labels]
    labels = (*batch, *rows, *columns)
    sizes = (*left.sizes([*batch, *rows]), *right.sizes(columns))
    if not inner:
        ones = [1] * len(columns)
        a = _shaped(build, _ordered(build, left, [*batch, *rows]), (*left.sizes([*batch, *rows]), *ones))
        b = _ordered(build, right, [*batch, *columns])
        b = _shaped(build, b, (*right.sizes(batch), *[1] * len(rows), *right.sizes(columns)))
        return _Term(build.pointwise("mul", a, b), labels)
    depth = product(left.sizes(inner))
    a = _ordered(build, left, [*batch, *rows, *inner])
    a = _shaped(build, a, (*left.sizes(batch), product(left.sizes(rows)), depth))
    b = _ordered(build, right, [*batch, *inner, *columns])
    b = _shaped(build, b, (*right.sizes(batch), depth, product(right.sizes(columns))))
    return _Term(_shaped(build, build.add(Dot(), a, b), sizes), labels)


def _ordered(build: Builder, term: _Term, labels: Sequence[str]) -> Value:
    order = tuple(term.labels.index(label) for label in labels)
    return term.value if order == tuple(range(len(order))) else build.add(Transpose(order), term.value)


def _shaped(build: Builder, value: Value, dims: Sequence[DimLike]) -> Value:
    return value if value.shape == tuple(dims) else build.add(Reshape(tuple(dims), allow_zero=True), value)
