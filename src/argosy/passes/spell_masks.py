"""Constants in masks of attentions that places say are spelled by them: `0, 1, 2, …` as a range, a band as a choice.

    mask[s, t]   =   low <= t - s <= high  ?  a  :  b

A kernel of attention then need not read them, and sees which keys a query never attends to. Masks come from a model as
whole matrices of -inf or false above the diagonal, or as comparisons of numbered rows and keys that were folded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from argosy.ir.builder import Namer
from argosy.ir.dtype import INT64
from argosy.ir.literal import Literal
from argosy.ir.module import Constant, Instruction, Module, Value
from argosy.ops.index import Range
from argosy.ops.view import Broadcast, Reshape
from argosy.passes.manager import PassContext, register_pass
from argosy.rewrite.attention import find_attentions
from argosy.rewrite.rebuild import Rebuild

__all__ = ["SpellMasks"]

_WITHIN: Final = frozenset(
    {"pointwise", "triangle", "reshape", "transpose", "broadcast", "slice", "squeeze", "unsqueeze"}
)


@register_pass
@dataclass(frozen=True, slots=True)
class SpellMasks:
    """Spell the constants that masks of attentions are made of by the places of rows and keys."""

    name = "spell_masks"

    def run(self, module: Module, context: PassContext) -> Module:
        """The module without such constants in its masks."""
        return _Spelling(module, context.namer).run()


class _Spelling(Rebuild):
    def __init__(self, module: Module, namer: Namer) -> None:
        super().__init__(module, namer)
        self._readers = _mask_steps(module)
        self._spelled: dict[Value, Value] = {}

    def visit(self, instruction: Instruction) -> None:
        if instruction not in self._readers:
            self.keep(instruction)
            return
        self.tape.at(instruction.source)
        operands = [None if operand is None else self._spell(operand) for operand in instruction.operands]
        self.tape.at("")
        if operands == list(instruction.operands):
            self.keep(instruction)
        else:
            self.replace(instruction, self.tape.keep(instruction, operands))

    def body(self, module: Module) -> Module:
        return _Spelling(module, self.namer).run()

    def _spell(self, operand: Value) -> Value:
        """An operand, spelled where it is a constant that places say."""
        literal = operand.constant
        if literal is None or literal.size <= 1 or literal.dtype.kind in ("string", "complex"):
            return self.value(operand)
        if operand not in self._spelled:
            if literal.is_splat:
                one = self.tape.constant(Literal.of(np.array(literal.item()), literal.dtype))
                found: Value | None = self.tape.add(Broadcast(literal.shape), one)
            else:
                found = self._counted(literal) if literal.dtype.is_integer else self._band(literal)
            self._spelled[operand] = self.value(operand) if found is None else found
        return self._spelled[operand]

    def _counted(self, literal: Literal) -> Value | None:
        """A constant whose numbers are evenly apart along its only axis of several."""
        values = literal.array().reshape(-1)
        long = [axis for axis, size in enumerate(literal.shape) if size != 1]
        step = int(values[1]) - int(values[0])
        if len(long) != 1 or step == 0 or not np.array_equal(values, values[0] + step * np.arange(len(values))):
            return None
        return self._range(int(values[0]), len(values), step, literal.shape, literal)

    def _range(self, start: int, count: int, step: int, shape: Sequence[int], like: Literal | None = None) -> Value:
        kind = INT64 if like is None else like.dtype
        ends = (Literal.of(np.array(number), kind) for number in (start, start + count * step, step))
        return self.tape.add(Reshape(tuple(shape)), self.tape.add(Range(), *map(self.tape.constant, ends)))

    def _band(self, literal: Literal) -> Value | None:
        """A constant of two values, one of which fills a band along the diagonals of its last two axes."""
        shape = literal.shape
        if len(shape) < 2 or min(shape[-2:]) < 2 or any(size != 1 for size in shape[:-2]):
            return None
        matrix = literal.array().reshape(shape[-2:])
        high, wide = matrix.shape
        apart = np.arange(wide)[None, :] - np.arange(high)[:, None]
        for inside, outside in ((matrix[0, 0], matrix[0, -1]), (matrix[-1, 0], matrix[0, -1])):
            where = matrix == inside
            if inside == outside or not np.array_equal(matrix, np.where(where, inside, outside)):
                continue
            low, most = int(apart[where].min()), int(apart[where].max())
            if not np.array_equal(where, (low <= apart) & (apart <= most)):
                continue
            return self._chosen(literal, (low, most), (inside, outside))
        return None

    def _chosen(self, literal: Literal, band: tuple[int, int], values: tuple[Any, Any]) -> Value | None:
        """`values[0]` within a band of diagonals, else `values[1]`."""
        high, wide = literal.shape[-2:]
        add, lead = self.tape.pointwise, (1,) * (len(literal.shape) - 2)
        rows = self._range(0, high, 1, (*lead, high, 1))
        keys = self._range(0, wide, 1, (*lead, 1, wide))
        conditions = []
        low, most = band
        if most < wide - 1:
            conditions.append(add(lambda s, t: t <= s + most, rows, keys))
        if low > 1 - high:
            conditions.append(add(lambda s, t: s + low <= t, rows, keys))
        if not conditions:
            return None
        inside = conditions[0] if len(conditions) == 1 else add("and", *conditions)
        if literal.dtype.kind == "bool":
            return inside if values[0] else add("not", inside)
        yes, no = (self.tape.constant(Literal.of(np.array(value), literal.dtype)) for value in values)
        return add("select", inside, yes, no)


def _mask_steps(module: Module) -> set[Instruction]:
    """What only changes scores, by functions of elements and views."""
    found: set[Instruction] = set()
    for attention in find_attentions(module):
        scored = {attention.scores, attention.softmax}
        pending = list(attention.steps)
        while pending:
            instruction = pending.pop()
            if instruction in found or instruction in scored or isinstance(instruction.op, Constant):
                continue
            if instruction.op.name not in _WITHIN:
                continue
            found.add(instruction)
            pending += [operand.instruction for operand in instruction.operands if operand is not None]
    return found
