"""Values that are a piece of a parameter: their elements lie there side by side, in their own order."""

from __future__ import annotations

from argosy.errors import ArgosyError
from argosy.ir import access as maps
from argosy.ir.access import Access
from argosy.ir.dim import DimLike, bounds, symbols_in
from argosy.ir.module import Module, Parameter, Value
from argosy.ops.joining import Split
from argosy.ops.shapes import product
from argosy.rewrite.view_chain import view_access
from argosy.targets.lowering.accesses import split_access
from argosy.targets.lowering.kernel_text import strides_of

__all__ = ["pieces_of"]


def pieces_of(module: Module) -> tuple[tuple[int, DimLike], ...]:
    """For each result the parameter that it is a piece of, and its first byte there; empty where one is no piece."""
    found = [_piece(module, value) for value in module.results]
    pieces = tuple(piece for piece in found if piece is not None)
    return pieces if len(pieces) == len(found) else ()


def _piece(module: Module, value: Value) -> tuple[int, DimLike] | None:
    own = maps.identity(value.shape)
    access, source, split = own, value, False
    while not isinstance(source.instruction.op, Parameter):
        instruction = source.instruction
        step = (
            split_access(instruction, source.index) if isinstance(instruction.op, Split) else view_access(instruction)
        )
        split = split or isinstance(instruction.op, Split)
        operand = instruction.operands[0] if instruction.operands else None
        if step is None or step.conditions or operand is None:
            return None
        try:
            access, source = access.compose(step), operand
        except ArgosyError:
            return None
    first = _position(access) - _position(own)
    if access.conditions or any(symbol.name.startswith("@") for symbol in symbols_in(first)):
        return None
    # A slice lies within its operand by its meaning; the pieces of a split do where their sizes add up.
    behind = product(source.shape) - first - product(value.shape)
    if split and any(low is None or low < 0 for low in (bounds(first)[0], bounds(behind)[0])):
        return None
    return module.parameters.index(source.instruction), first * (max(value.dtype.bits, 8) // 8)


def _position(access: Access) -> DimLike:
    """The row-major position of the element in the source."""
    total: DimLike = 0
    for index, step in zip(access.indices, strides_of(access.source), strict=True):
        total = index * step + total
    return total
