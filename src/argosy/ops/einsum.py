"""Einstein summation: products of tensors with named axes, summed over the axes that the result lacks."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dim import DimLike
from argosy.ir.dtype import BOOL, STRING, dtype_of
from argosy.ir.module import Value
from argosy.ir.op import Op, register
from argosy.ir.types import TensorType, Type
from argosy.ops.numpy_scalar import convert
from argosy.ops.operands import present
from argosy.ops.shapes import broadcast, broadcast_dim

__all__ = ["Einsum", "Equation", "parse_equation"]

_ELLIPSIS: Final = "..."


@dataclass(frozen=True, slots=True)
class Equation:
    """A parsed equation: the labels of each operand and of the result; "..." stands for any number of axes."""

    operands: tuple[tuple[str, ...], ...]
    result: tuple[str, ...]

    def __str__(self) -> str:
        return f"{','.join(map(''.join, self.operands))}->{''.join(self.result)}"


def parse_equation(text: str) -> Equation:
    """Parse `ab,bc->ac`; without an arrow the result has "..." and then the labels that occur once, sorted.

    Raises ModelError for anything malformed: unknown characters, two ellipses in a term, a label of the
    result that is repeated or that no operand has.
    """
    compact = "".join(text.split())
    left, arrow, right = compact.partition("->")
    operands = tuple(_parse_term(term, text) for term in left.split(","))
    given = [label for term in operands for label in term]
    if arrow:
        result = _parse_term(right, text)
    else:
        once = sorted(label for label in set(given) if label != _ELLIPSIS and given.count(label) == 1)
        result = (*((_ELLIPSIS,) if _ELLIPSIS in given else ()), *once)
    for label in result:
        if result.count(label) > 1:
            raise ModelError(f"the equation {text!r} has {label!r} twice in the result")
        if label not in given and label != _ELLIPSIS:
            raise ModelError(f"the equation {text!r} has {label!r} in the result, but in no operand")
    return Equation(operands, result)


def _parse_term(term: str, text: str) -> tuple[str, ...]:
    labels: list[str] = []
    place = 0
    while place < len(term):
        if term.startswith(_ELLIPSIS, place):
            if _ELLIPSIS in labels:
                raise ModelError(f"the equation {text!r} has more than one '...' in the term {term!r}")
            labels.append(_ELLIPSIS)
            place += len(_ELLIPSIS)
        elif term[place] in string.ascii_letters:
            labels.append(term[place])
            place += 1
        else:
            raise ModelError(f"the equation {text!r} holds {term[place]!r}, expected letters, ',', '...' and one '->'")
    return tuple(labels)


@register
@dataclass(frozen=True, slots=True)
class Einsum(Op):
    """`equation` over the operands, as numpy.einsum and ONNX Einsum define it.

    Short floats are multiplied and summed in float32; integers in their own type, where they wrap.
    """

    name = "einsum"
    equation: str

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        equation = parse_equation(self.equation)
        values = [present(operand) for operand in operands]
        if len(values) != len(equation.operands):
            raise ModelError(f"the equation {self.equation!r} has {len(equation.operands)} terms, found {len(values)}")
        dtype = self._dtype(values)
        sizes: dict[str, DimLike] = {}
        batch: tuple[DimLike, ...] = ()
        for labels, value in zip(equation.operands, values, strict=True):
            spare = value.rank - sum(label != _ELLIPSIS for label in labels)
            if spare < 0 or (spare and _ELLIPSIS not in labels):
                raise ModelError(f"the term {''.join(labels)!r} of {self.equation!r} does not fit {value.type}")
            dims = list(value.shape)
            for label in labels:
                if label == _ELLIPSIS:
                    batch = broadcast(batch, tuple(dims[:spare]))
                    del dims[:spare]
                else:
                    size = dims.pop(0)
                    sizes[label] = self._joined(label, sizes[label], size) if label in sizes else size
        result: list[DimLike] = []
        for label in equation.result:
            result.extend(batch if label == _ELLIPSIS else (sizes[label],))
        if batch and _ELLIPSIS not in equation.result:
            raise ModelError(f"the equation {self.equation!r} has '...' in an operand, but not in the result")
        return (TensorType(dtype, tuple(result)),)

    def _joined(self, label: str, left: DimLike, right: DimLike) -> DimLike:
        try:
            return broadcast_dim(left, right)
        except ModelError:
            what = f"the label {label!r} of {self.equation!r} has the sizes {left} and {right}, expected one"
            raise ModelError(what) from None

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        parse_equation(self.equation)
        return (TensorType(self._dtype([present(operand) for operand in operands]), None),)

    @staticmethod
    def _dtype(values: list[Value]) -> Any:
        first = values[0].dtype
        if first in (BOOL, STRING) or any(value.dtype is not first for value in values):
            raise ModelError(f"expected numbers of one element type, found {', '.join(str(v.dtype) for v in values)}")
        return first

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        dtype = dtype_of(values[0].dtype)
        wide = [value.astype(dtype.compute.numpy, copy=False) for value in values]
        equation = str(parse_equation(self.equation))
        result = np.asarray(np.einsum(equation, *wide, optimize="greedy" if len(wide) > 1 else False))
        return (convert(np.ascontiguousarray(result) if result.ndim else result, dtype),)
