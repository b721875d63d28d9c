"""Queries that share keys and values become rows of one product, so that nothing is repeated.

    dot(q[B, K G, S, H], repeated(k[B, K, H, T])) = reshape(dot(reshape(q)[B, K, G S, H], k[B, K, H, T]))

Grouped-query attention is written with keys and values repeated for the heads that share them (Expand and Reshape,
or a head axis of 1 that broadcasts). Of the repeated operand every G-th matrix is taken, which, seen through the views
that repeat, is the operand itself. What lies between the products stays as it is, between reshapes.
"""

from __future__ import annotations

from dataclasses import dataclass

from argosy.ir import access as maps
from argosy.ir.builder import Namer
from argosy.ir.dim import symbols_in
from argosy.ir.module import Instruction, Module, Value
from argosy.ops.pointwise import Pointwise
from argosy.ops.slicing import Slice
from argosy.ops.view import Reshape
from argosy.passes.manager import PassContext, register_pass
from argosy.rewrite.attention import Attention, find_attentions
from argosy.rewrite.rebuild import Rebuild
from argosy.rewrite.view_chain import view_access

__all__ = ["GroupQueries"]


@register_pass
@dataclass(frozen=True, slots=True)
class GroupQueries:
    """Rewrite both products of each attention whose keys and values are the same for several heads."""

    name = "group_queries"

    def run(self, module: Module, context: PassContext) -> Module:
        """The module with the heads of a group as rows."""
        return _Grouping(module, context.namer).run()


class _Grouping(Rebuild):
    def __init__(self, module: Module, namer: Namer) -> None:
        super().__init__(module, namer)
        self._sizes: dict[Instruction, int] = {}
        for attention in find_attentions(module):
            size = _group_size(attention)
            if size > 1:
                self._sizes |= dict.fromkeys((attention.scores, attention.product), size)

    def visit(self, instruction: Instruction) -> None:
        size = self._sizes.get(instruction)
        if size is None:
            self.keep(instruction)
            return
        left, right = (self.value(operand) for operand in instruction.operands if operand is not None)
        self.tape.at(instruction.source)
        self.replace(instruction, [self._grouped(instruction, left, right, size)])
        self.tape.at("")

    def body(self, module: Module) -> Module:
        return _Grouping(module, self.namer).run()

    def _grouped(self, instruction: Instruction, left: Value, right: Value, size: int) -> Value:
        add = self.tape.add
        *batch, heads, rows, depth = left.shape
        apart = left.shape[-3] // size
        if right.shape[-3] != 1:
            right = add(Slice((0,), (heads,), (right.rank - 3,), (size,)), right)
        left = add(Reshape((*batch, apart, rows * size, depth), allow_zero=True), left)
        result = instruction.result()
        return add(Reshape(result.shape, allow_zero=True), add(instruction.op, left, right), names=instruction.names)


def _group_size(attention: Attention) -> int:
    """How many neighbouring heads have the same keys and values, for certain."""
    pairs = [tuple(i.operands) for i in (attention.scores, attention.product)]
    if attention.scores.result().rank < 3:
        return 1
    heads = attention.scores.result().shape[-3]
    if not isinstance(heads, int) or any(left is None or left.shape[-3] != heads for left, _ in pairs):
        return 1
    rights = [right for _, right in pairs if right is not None]
    sizes = (size for size in range(heads, 0, -1) if heads % size == 0)
    return next((size for size in sizes if all(_repeats(right, size) for right in rights)), 1)


def _repeats(value: Value, size: int) -> bool:
    """Whether `size` neighbouring matrices of a value, along the last axis before them, are surely the same."""
    *batch, heads, rows, columns = value.shape
    if not isinstance(heads, int) or heads == 1 or size == 1:
        return True
    # With an axis of its own for the heads of a group, nothing that is read may depend on the place on it.
    split = maps.reshape(value.shape, (*batch, heads // size, size, rows, columns))
    member = maps.axis_index(len(batch) + 1, size)
    (own,) = symbols_in(member)
    access, instruction = split, value.instruction
    while True:
        if not any(own in symbols_in(index) for index in access.indices):
            return True
        step, source = _step(instruction, value)
        if step is None or source is None or step.conditions:
            return False
        access, value, instruction = access.compose(step), source, source.instruction


def _step(instruction: Instruction, value: Value) -> tuple[maps.Access | None, Value | None]:
    """What a view, or a function of one value element by element, reads, and how."""
    if not isinstance(instruction.op, Pointwise):
        return view_access(instruction), instruction.operands[0] if instruction.operands else None
    others = [operand for operand in instruction.operands if operand is not None and _varies(operand)]
    if len(set(others)) != 1 or others[0].shape != value.shape:
        return None, None
    return maps.identity(value.shape), others[0]


def _varies(operand: Value) -> bool:
    return operand.constant is None or operand.constant.size != 1
