"""The emitter of pad: constant pads choose between an element and the value, all others fold the place back inside."""

from __future__ import annotations

import dataclasses

from argosy.ir.access import Access, identity
from argosy.ir.access import pad as pad_map
from argosy.ir.module import Instruction
from argosy.ops.slicing import Pad
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.element import Elements, element
from argosy.targets.gpu.codegen.steering import pad_amounts
from argosy.targets.lowering.accesses import axes_access, op_of, padded_place, present


@element("pad")
def _pad(elements: Elements, instruction: Instruction, access: Access) -> str:
    op = op_of(instruction, Pad)
    x, result = present(instruction, 0), instruction.result()
    before, after = pad_amounts(elements, instruction, op)
    if op.mode == "constant":
        return _constant_pad(elements, instruction, access, pad_map(x.shape, result.shape, before))
    indices = [
        padded_place(op.mode, index, first, last, size)
        for index, first, last, size in zip(identity(result.shape).indices, before, after, x.shape, strict=True)
    ]
    return elements.of(x, elements.compose(access, axes_access(result.shape, x.shape, indices)))


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
