"""Weights that stay in codes of at most 8 bits: what products on any target ask of them first."""

from __future__ import annotations

from argosy.ir.module import Value
from argosy.rewrite.codes import DequantizedMatrix, dequantized_matrix, is_single
from argosy.targets.lowering.accesses import DeclinedError

__all__ = ["coded_matrix", "shared_block"]


def coded_matrix(right: Value, *, short: bool = False) -> tuple[DequantizedMatrix, int, int]:
    """How a right operand comes from codes, its depth and its columns; with `short`, one of short floats as well.

    Raises DeclinedError where it is no dequantisation, or of a size that only a run knows, or empty.
    """
    found = dequantized_matrix(right, short=short)
    if found is None:
        raise DeclinedError("the right operand is not dequantised")
    depth, columns = right.shape
    if not isinstance(depth, int) or not isinstance(columns, int) or not depth * columns:
        raise DeclinedError("the size of the weights is not known")
    return found, depth, columns


def shared_block(found: DequantizedMatrix) -> int:
    """Numbers along the depth that share a scale and a zero point; 0 for all of them.

    Raises DeclinedError where these change along the depth from number to number, or where several columns share them.
    """
    along = found.axis == int(found.turned)
    block = 0
    for parameter in (found.scale, found.zero):
        if parameter is None or is_single(parameter):
            continue
        if parameter.rank == 1 and along:
            raise DeclinedError("the scale changes along the sum")
        if parameter.rank > 1 and not along:
            raise DeclinedError("a block is of several columns")
        block = found.block_size if parameter.rank > 1 else block
    return block
