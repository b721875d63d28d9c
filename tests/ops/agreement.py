"""Checks that what `infer` says of symbolic dims is what `evaluate` gives at every size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argosy.ir import Builder, Env, TensorType
from argosy.ir import dim as dims
from argosy.ir.dim import DimLike
from argosy.ir.interpreter import run_module
from argosy.ir.op import Op
from argosy.ir.types import Type

__all__ = ["apply", "infer", "tensor"]

Array = NDArray[Any]


def tensor(element: str, *shape: DimLike | str) -> TensorType:
    """A tensor type; words are symbols."""
    builder = Builder()
    kind = builder.tensor_parameter("x", element, shape).type
    assert isinstance(kind, TensorType)
    return kind


def infer(op: Op, *operands: Type | Array | None) -> tuple[Type, ...]:
    """Types of the results of `op`: an operand is a type (a parameter), an array (a constant) or absent."""
    return _build(op, operands)[1]


def _build(op: Op, operands: Sequence[Type | Array | None]) -> tuple[Builder, tuple[Type, ...], Any]:
    builder = Builder()
    values = [
        None
        if operand is None
        else builder.constant(operand)
        if isinstance(operand, np.ndarray)
        else builder.parameter(f"x{index}", operand)
        for index, operand in enumerate(operands)
    ]
    results = builder.add_all(op, *values)
    return builder, tuple(result.type for result in results), results


def apply(op: Op, *operands: Type | Array | None, feeds: Sequence[Array] = ()) -> list[Any]:
    """Results of `op` where `feeds` gives the operands that are types.

    Each result must have the inferred element type, and the inferred dims under the sizes of the operands.
    """
    builder, kinds, results = _build(op, operands)
    module = builder.module([(str(index), value) for index, value in enumerate(results)])
    symbols: dict[str, int] = {}
    types = [operand for operand in operands if operand is not None and not isinstance(operand, np.ndarray)]
    for kind, feed in zip(types, feeds, strict=True):
        assert isinstance(kind, TensorType)
        for dim, size in zip(kind.shape, feed.shape, strict=True):
            if not isinstance(dim, int):
                symbols[str(dim)] = size
    found = list(run_module(module, feeds, Env()))
    for kind, value in zip(kinds, found, strict=True):
        if isinstance(kind, TensorType):
            assert value.dtype == kind.dtype.numpy
            assert kind.dims is None or agrees(kind.dims, value.shape, symbols), (
                f"{kind} under {symbols}: {value.shape}"
            )
    return found


def agrees(shape: Sequence[DimLike], sizes: Sequence[int], symbols: Mapping[str, int]) -> bool:
    """True where the dims have these sizes; a data-dependent dim must only be within its bounds."""
    if len(shape) != len(sizes):
        return False
    for dim, size in zip(shape, sizes, strict=True):
        low, high = dims.bounds(dim)
        if (low is not None and size < low) or (high is not None and size > high):
            return False
        if {symbol.name for symbol in dims.symbols_in(dim)} <= symbols.keys() and dims.evaluate(dim, symbols) != size:
            return False
    return True
