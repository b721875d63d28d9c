"""The determinant of square matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dtype import dtype_of
from argosy.ir.module import Value
from argosy.ir.op import Op, register
from argosy.ir.types import TensorType, Type
from argosy.ops.demands import differ
from argosy.ops.numpy_scalar import convert
from argosy.ops.operands import present

__all__ = ["Determinant"]


@register
@dataclass(frozen=True, slots=True)
class Determinant(Op):
    """The determinants of the matrices that the last two axes hold, computed in float64."""

    name = "determinant"

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x = present(operands[0])
        if not x.dtype.is_float or x.rank < 2 or differ(x.shape[-1], x.shape[-2]):
            raise ModelError(f"expected square matrices of floats, found {x.type}")
        return (TensorType(x.dtype, x.shape[:-2]),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        return (convert(np.asarray(np.linalg.det(values[0].astype(np.float64))), dtype_of(values[0].dtype)),)
