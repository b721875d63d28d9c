"""The emitter of pad: constant pads choose between an element and the value, all others fold the place back inside."""

from __future__ import annotations

import dataclasses

from argosy.ir import dim as dims
from argosy.ir.access import Access, identity
from argosy.ir.access import pad as pad_map
from argosy.ir.dim import DimLike
from argosy.ir.module import Instruction
from argosy.ops.slicing import Pad
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.declined import DeclinedError
from argosy.targets.gpu.codegen.element import Elements, axes_access, element, op_of, present
from argosy.targets.gpu.codegen.steering import pad_amounts


@element("pad")
def _pad(elements: Elements, instruction: Instruction, access: Access) -> str:
    op = op_of(instruction, Pad)
    x, result = present(instruction, 0), instruction.result()
    before, after = pad_amounts(elements, instruction, op)
    if op.mode == "constant":
        return _constant_pad(elements, instruction, access, pad_map(x.shape, result.shape, before))
    indices = [
        _source(op.mode, index, first, last, size)
        for index, first, last, size in zip(identity(result.shape).indices, before, after, x.shape, strict=True)
    ]
    return elements.of(x, elements.compose(access, axes_access(result.shape, x.shape, indices)))


def _source(mode: str, index: DimLike, before: DimLike, after: DimLike, size: DimLike) -> DimLike:
    """Where along an axis an element comes from: negative pads cut off first, then the rest is folded."""
    if before == 0 and after == 0:
        return index
    cut = dims.dim_max(0 - before, 0)
    left = size - cut - dims.dim_max(0 - after, 0)
    return cut + _folded(mode, index - dims.dim_max(before, 0), left)


def _folded(mode: str, place: DimLike, size: DimLike) -> DimLike:
    if mode == "edge":
        return dims.dim_max(dims.dim_min(place, size - 1), 0)
    if mode == "wrap":
        return dims.mod(place, dims.dim_max(size, 1))
    if mode == "reflect":
        period = dims.dim_max(2 * (size - 1), 1)
        folded = dims.mod(place, period)
        return dims.dim_min(folded, period - folded) if not (isinstance(size, int) and size == 1) else 0
    raise DeclinedError(f"pad mode {mode}")


def _constant_pad(elements: Elements, instruction: Instruction, access: Access, step: Access) -> str:
    """`inside ? x : fill`, without a read outside."""
    x = present(instruction, 0)
    place = elements.compose(access, step)
    if not place.conditions:
        return elements.of(x, place)
    fill = scalar.constant(0, x.dtype)
    value = instruction.operands[2] if len(instruction.operands) > 2 else None
    if value is not None:
        fill = elements.of(value, axes_access(access.extents, value.shape, [0] * value.rank))
    text = elements.text
    checks = []
    roots: frozenset[str] = frozenset()
    for each in place.conditions:
        index = text.dim(each.index)
        checks.append(f"({text.dim(each.lower)} <= {index}) & ({index} < {text.dim(each.upper)})")
        roots |= text.roots_of(each.index)
    valid = text.let(" & ".join(checks), "valid")
    with elements.only(valid, roots):
        inside = elements.of(x, dataclasses.replace(place, conditions=()))
    return elements.let(f"tl.where({valid}, {inside}, {fill})")
