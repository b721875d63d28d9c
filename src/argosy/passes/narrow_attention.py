"""Attention of short floats multiplies them as they are, and keeps float32 in between.

    softmax(f(dot(a q, b k))) v   =   dot[float32](convert(softmax(f(a b dot[float32](q, k)))), v)

A model in float16 or bfloat16 rounds its scores and weights at each step; where one kernel does all, none of that is
stored, and what is not rounded is nearer to what the model means. Factors of queries and keys become one of the scores.
Where a model, or an op of com.microsoft, widens queries, keys and values itself, products of them are the same without
that; the weights of values in a short float are rounded to it, as their average is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.errors import InternalError
from argosy.ir.builder import Namer
from argosy.ir.dtype import FLOAT32, DType
from argosy.ir.formula import Formula, Step
from argosy.ir.literal import Literal
from argosy.ir.module import Instruction, Module, Value
from argosy.ops.matmul import Dot
from argosy.ops.pointwise import Pointwise
from argosy.passes.manager import PassContext, register_pass
from argosy.rewrite.attention import Attention, find_attentions
from argosy.rewrite.rebuild import Rebuild

__all__ = ["NarrowAttention"]

_VIEWS: Final = frozenset({"reshape", "transpose", "squeeze", "unsqueeze", "broadcast"})
_SHORT: Final = frozenset({"float16", "bfloat16"})
_LARGE: Final = 1e4
"""Factors below this leave sums of products of float16 finite."""


@register_pass
@dataclass(frozen=True, slots=True)
class NarrowAttention:
    """Rewrite each attention whose queries, keys and values are short floats, widened or not.

    An `exact` one leaves factors where they are, and does not round weights that the model has in float32.
    """

    name = "narrow_attention"
    exact: bool = False

    def run(self, module: Module, context: PassContext) -> Module:
        """The module with such attentions in float32 between products of short floats."""
        return _Narrowing(module, context.namer, exact=self.exact).run()


@dataclass(frozen=True, slots=True)
class _Bare:
    """A value without factors and widening: `base`, seen through `views`, the last one first, times `factor`."""

    views: tuple[Instruction, ...]
    base: Value
    factor: float


@dataclass(frozen=True, slots=True)
class _Plan:
    """An attention, what it is made of, and what depends on its scores."""

    attention: Attention
    queries: _Bare
    keys: _Bare
    values: _Bare
    changed: frozenset[Instruction]


class _Narrowing(Rebuild):
    def __init__(self, module: Module, namer: Namer, *, exact: bool) -> None:
        super().__init__(module, namer)
        self._exact = exact
        self._plans: dict[Instruction, _Plan] = {}
        self._wide: dict[Value, Value] = {}
        readers: dict[Instruction, list[Instruction]] = {}
        for instruction in module.instructions:
            for operand in instruction.operands:
                if operand is not None:
                    readers.setdefault(operand.instruction, []).append(instruction)
        results = {value.instruction for value in module.results}
        for attention in find_attentions(module, short=True):
            rounded = _is_rounded(attention.product, readers, results)
            plan = self._plan(attention, rounded=rounded)
            if plan is not None:
                self._plans |= dict.fromkeys((*plan.changed, attention.product), plan)

    def _plan(self, attention: Attention, *, rounded: bool) -> _Plan | None:
        """How an attention is done; None where it is not of short floats, or is as it should be."""
        operands = (*attention.scores.operands[:2], attention.product.operands[1])
        parts = [self._bare(operand, scaled=place < 2) for place, operand in enumerate(operands) if operand is not None]
        kinds = {part.base.dtype for part in parts}
        weights, result = attention.product.operands[0], attention.product.result().dtype
        if len(parts) < len(operands) or len(kinds) != 1 or not _are_short(kinds) or weights is None:
            return None
        if not _are_short([result]) and (not rounded or (self._exact and weights.dtype is FLOAT32)):
            return None
        wide = attention.scores.result().dtype is FLOAT32 and attention.softmax.result().dtype is FLOAT32
        if wide and weights.dtype in kinds and [part.base for part in parts] == list(operands):
            return None
        changed = {attention.scores}
        steps = [each for each in self.module.instructions if each in attention.inner and each is not attention.scores]
        for step in steps:
            if any(operand is not None and operand.instruction in changed for operand in step.operands):
                changed.add(step)
        if not all(step.op.name in ("reshape", "softmax", "pointwise", "dot") for step in changed):
            return None
        return _Plan(attention, parts[0], parts[1], parts[2], frozenset(changed))

    def visit(self, instruction: Instruction) -> None:
        plan = self._plans.get(instruction)
        if plan is None:
            self.keep(instruction)
            return
        self.tape.at(instruction.source)
        if instruction is plan.attention.product:
            self.replace(instruction, [self._product(plan)])
        elif instruction is plan.attention.scores:
            self._wide[instruction.result()] = self._scores(plan)
        else:
            self._wide[instruction.result()] = self._step(instruction)
        self.tape.at("")

    def body(self, module: Module) -> Module:
        return _Narrowing(module, self.namer, exact=self._exact).run()

    def _scores(self, plan: _Plan) -> Value:
        scores = self.tape.add(Dot(FLOAT32), self._seen(plan.queries), self._seen(plan.keys))
        factor = plan.queries.factor * plan.keys.factor
        return scores if factor == 1 else self.tape.pointwise(lambda score: score * factor, scores)

    def _seen(self, part: _Bare) -> Value:
        """A bare operand as the attention sees it."""
        value = self.value(part.base)
        for view in reversed(part.views):
            value = self.tape.add(view.op, value, source=view.source)
        return value

    def _step(self, instruction: Instruction) -> Value:
        """What is done to scores, or the weights, in float32."""
        operands = [None if operand is None else self._widened(operand) for operand in instruction.operands]
        op = instruction.op
        if isinstance(op, Pointwise):
            kept = [operand for operand in operands if operand is not None]
            if [step.primitive for step in op.formula.steps] == ["convert"] and kept[0].dtype is FLOAT32:
                return kept[0]
            steps = tuple(
                Step(step.primitive, step.args, FLOAT32 if step.dtype and _are_short([step.dtype]) else step.dtype)
                for step in op.formula.steps
            )
            return self.tape.pointwise(Formula(op.formula.arity, steps), *kept)
        return self.tape.add(op, *operands)

    def _product(self, plan: _Plan) -> Value:
        product, values = plan.attention.product, self._seen(plan.values)
        weights = None if product.operands[0] is None else self._wide.get(product.operands[0])
        if weights is None:
            raise InternalError("the weights of an attention do not depend on its scores", where=product.source)
        found = self.tape.add(Dot(FLOAT32), self.tape.convert(weights, values.dtype), values)
        return self.tape.convert(self.tape.convert(found, values.dtype), product.result().dtype)

    def _widened(self, operand: Value) -> Value:
        """An operand in float32, where it is a short float."""
        found, literal = self._wide.get(operand, self.value(operand)), operand.constant
        if not _are_short([found.dtype]):
            return found
        if literal is not None and (literal.is_splat or literal.size == 1):
            return self.tape.constant(Literal.splat(literal.item(), FLOAT32, literal.shape))
        return self.tape.convert(found, FLOAT32)

    def _bare(self, value: Value, *, scaled: bool) -> _Bare:
        """A value without what widens it and, where `scaled`, without factors."""
        views: list[Instruction] = []
        found, factor = _Bare((), value, 1.0), 1.0
        while True:
            made = value.instruction
            source = made.operands[0] if made.operands else None
            primitive = made.op.formula.primitive if isinstance(made.op, Pointwise) else None
            if primitive == "convert" and source is not None and _are_short([source.dtype]) and value.dtype is FLOAT32:
                value = source
            elif primitive == "mul" and scaled and not self._exact and (part := _factor(made)) is not None:
                value, factor = part[0], factor * part[1]
            elif made.op.name in _VIEWS and len(made.operands) == 1 and source is not None:
                views.append(made)
                value = source
                continue
            else:
                return found
            found = _Bare(tuple(views), value, factor)


def _factor(product: Instruction) -> tuple[Value, float] | None:
    """What a pointwise product scales by one positive number, and that number."""
    left, right = product.operands
    for value, other in ((left, right), (right, left)):
        literal = None if other is None else other.constant
        if value is not None and literal is not None and literal.size == 1 and value.shape == product.result().shape:
            number = float(literal.item())
            return (value, number) if 0 < number < _LARGE else None
    return None


def _are_short(kinds: Iterable[DType]) -> bool:
    return all(kind.name in _SHORT for kind in kinds)


def _is_rounded(
    instruction: Instruction, readers: Mapping[Instruction, Sequence[Instruction]], results: Collection[Instruction]
) -> bool:
    """Whether all that reads an instruction rounds it to a short float, perhaps behind views."""

    def rounds(reader: Instruction) -> bool:
        if isinstance(reader.op, Pointwise):
            return reader.op.formula.primitive == "convert" and _are_short([reader.result().dtype])
        return reader.op.name in _VIEWS and _is_rounded(reader, readers, results)

    return instruction not in results and all(map(rounds, readers.get(instruction, ())))
