"""A product as loops, and where its operands are read in them."""

from __future__ import annotations

from dataclasses import dataclass

from argosy.ir import dim as dims
from argosy.ir.access import Access, axis_index
from argosy.ir.dim import DimLike, Symbol, symbol_dim
from argosy.ir.module import Instruction, Value
from argosy.targets.lowering.accesses import axes_access, present

__all__ = ["DotShape", "operand_access", "shape_of"]


@dataclass(frozen=True, slots=True)
class DotShape:
    """A product as loops: over batch axes, rows, columns and the inner axis. Axes are those of the result."""

    batch: tuple[DimLike, ...]
    rows: DimLike
    columns: DimLike
    inner: DimLike
    row_axis: int | None
    column_axis: int | None


def shape_of(anchor: Instruction) -> DotShape:
    """The loops of a `dot`; an operand of rank 1 has no axis in the result."""
    left, right, result = present(anchor, 0), present(anchor, 1), anchor.result()
    rows = None if left.rank == 1 else result.rank - 1 - (right.rank > 1)
    columns = None if right.rank == 1 else result.rank - 1
    batch = result.rank - (rows is not None) - (columns is not None)
    return DotShape(
        result.shape[:batch],
        1 if rows is None else result.shape[rows],
        1 if columns is None else result.shape[columns],
        left.shape[-1],
        rows,
        columns,
    )


def operand_access(
    value: Value, shape: DotShape, result: Value, inner: str, *, left: bool, row: DimLike | None = None
) -> Access:
    """How an operand of the product is read, over the axes of the result and the inner axis, a variable.

    `row` is the row of the left operand, where it is not that of the result.
    """
    high = shape.inner - 1 if isinstance(shape.inner, int) else None
    along: DimLike = symbol_dim(Symbol(f"@{inner}", 0, high)) if shape.inner != 1 else 0
    if value.rank == 1:
        return axes_access(result.shape, value.shape, (along,))
    own = shape.row_axis if left else shape.column_axis
    place = axis_index(own, result.shape[own]) if own is not None else 0
    place = place if row is None else row
    lead: list[DimLike] = []
    offset = len(shape.batch) - (value.rank - 2)
    for axis, size in enumerate(value.shape[:-2]):
        whole = shape.batch[offset + axis]
        index = axis_index(offset + axis, whole)
        # Where only the run knows whether an axis repeats, so does its index.
        lead.append(index if dims.equal(size, whole) else dims.dim_min(index, size - 1))
    return axes_access(result.shape, value.shape, (*lead, place, along) if left else (*lead, along, place))
