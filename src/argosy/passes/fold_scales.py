"""Scales and shifts of channels behind a convolution go into its weights and its bias.

    conv(x, w, b) * s + t = conv(x, w * s, b * s + t)

for `s` and `t` that hold one constant number for each output channel, as a normalisation with known moments does.
The product `w * s` stays in the program, where it is computed once, when the weights are packed: the file keeps each
weight as it came. Sums are rounded at other places than before, so that exact sums forbid it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from argosy.ir.builder import Namer
from argosy.ir.dtype import FLOAT32
from argosy.ir.formula import Formula, Step
from argosy.ir.literal import Literal
from argosy.ir.module import Instruction, Module, Value
from argosy.ops.convolution import Conv
from argosy.ops.pointwise import Pointwise
from argosy.passes.manager import PassContext, register_pass
from argosy.rewrite.rebuild import Rebuild

__all__ = ["FoldScales"]

Numbers: TypeAlias = NDArray[Any]
_ONE: Numbers = np.ones(1)


@register_pass
@dataclass(frozen=True, slots=True)
class FoldScales:
    """conv(x, w, b) * s + t = conv(x, w * s, b * s + t), for one number of `s` and `t` to each channel."""

    name = "fold_scales"

    def run(self, module: Module, context: PassContext) -> Module:
        """The module with what is linear in the result of a convolution done by it."""
        return _Fold(module, context.namer).run()


@dataclass(frozen=True, slots=True)
class _Line:
    """`scale * v + shift` for every channel; `scale` is None where it does not depend on v."""

    scale: Numbers | None
    shift: Numbers


class _Fold(Rebuild):
    def __init__(self, module: Module, namer: Namer) -> None:
        super().__init__(module, namer)
        operands = [operand for inner in module.instructions for operand in inner.operands]
        self._readers = Counter([*operands, *module.results])

    def body(self, module: Module) -> Module:
        return _Fold(module, self.namer).run()

    def visit(self, instruction: Instruction) -> None:
        if not self._folded(instruction):
            self.keep(instruction)

    def _folded(self, instruction: Instruction) -> bool:
        """Whether an instruction has become part of the convolution that it reads."""
        op = instruction.op
        if not isinstance(op, Pointwise) or any(operand is None for operand in instruction.operands):
            return False
        operands = [operand for operand in instruction.operands if operand is not None]
        sums = [operand for operand in operands if isinstance(self.value(operand).instruction.op, Conv)]
        if len(sums) != 1 or self._readers[sums[0]] != 1 or sums[0].type != instruction.types[0]:
            return False
        conv = self.value(sums[0]).instruction
        lines = [
            _Line(_ONE, np.zeros(1)) if operand is sums[0] else _by_channel(operand, sums[0]) for operand in operands
        ]
        line = _line(op.formula, lines)
        if line is None or line.scale is None:
            return False
        made = self._scaled(conv, line.scale, line.shift, instruction)
        if made is not None:
            self.replace(instruction, [made])
        return made is not None

    def _scaled(self, conv: Instruction, scale: Numbers, shift: Numbers, reader: Instruction) -> Value | None:
        """The convolution with its weights scaled and its bias moved; None where it is none of constant float32."""
        x, weight, *rest = conv.operands
        bias = rest[0] if rest else None
        count = conv.result().shape[1]
        if x is None or weight is None or not isinstance(count, int) or conv.result().dtype is not FLOAT32:
            return None
        base, before = _weights(weight)
        added = None if bias is None else bias.constant
        if base.constant is None or base.dtype is not FLOAT32 or (bias is not None and added is None):
            return None
        moved = shift + (0.0 if added is None else scale * np.asarray(added.array(), np.float64))
        scale = scale * before
        if not np.isfinite(scale).all() or not np.isfinite(moved).all():
            return None
        tape = self.tape
        if (scale != 1).any():
            column = np.broadcast_to(scale, (count,)).astype(np.float32).reshape(count, *(1,) * (base.rank - 1))
            base = tape.add(Pointwise(Formula.of("mul")), base, tape.constant(Literal.of(column)), source=conv.source)
        offset = np.broadcast_to(moved, (count,)).astype(np.float32)
        return tape.add(conv.op, x, base, tape.constant(Literal.of(offset)), names=reader.names, source=conv.source)


def _weights(weight: Value) -> tuple[Value, Numbers]:
    """Weights that this pass has scaled already as they were, and the scales."""
    made = weight.instruction
    if isinstance(made.op, Pointwise) and made.op.formula == Formula.of("mul"):
        base, scale = made.operands
        if base is not None and scale is not None and base.constant is not None and scale.constant is not None:
            return base, np.asarray(scale.constant.array(), np.float64).reshape(-1)
    return weight, _ONE


def _by_channel(value: Value, sums: Value) -> _Line | None:
    """A constant with one number for each channel, or one for all."""
    if value.constant is None or value.dtype is not FLOAT32 or value.rank > sums.rank:
        return None
    axes = range(sums.rank - value.rank, sums.rank)
    if any(size != 1 for axis, size in zip(axes, value.shape, strict=True) if axis != 1):
        return None
    return _Line(None, np.asarray(value.constant.array(), np.float64).reshape(-1))


def _line(formula: Formula, operands: list[_Line | None]) -> _Line | None:
    """What a formula computes, where that is linear in what the convolution gives."""
    lines = list(operands)
    for step in formula.steps:
        args = [lines[ref] if isinstance(ref, int) else _Line(None, np.array([float(ref.value)])) for ref in step.args]
        lines.append(None if any(arg is None for arg in args) else _step(step, [arg for arg in args if arg]))
    return lines[-1]


def _step(step: Step, args: list[_Line]) -> _Line | None:
    first, second = args[0], args[-1]
    with np.errstate(all="ignore"):
        match step.primitive:
            case "add":
                return _Line(_sum(first.scale, second.scale), first.shift + second.shift)
            case "sub":
                return _step(Step("add", step.args), [first, _times(second, -_ONE)])
            case "neg":
                return _times(first, -_ONE)
            case "mul" if second.scale is None:
                return _times(first, second.shift)
            case "mul" if first.scale is None:
                return _times(second, first.shift)
            case "div" if second.scale is None:
                return _times(first, 1 / second.shift)
            case _:
                return None


def _times(line: _Line, factor: Numbers) -> _Line:
    return _Line(None if line.scale is None else line.scale * factor, line.shift * factor)


def _sum(first: Numbers | None, second: Numbers | None) -> Numbers | None:
    if first is None or second is None:
        return first if second is None else second
    return first + second
