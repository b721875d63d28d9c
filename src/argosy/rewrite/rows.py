"""Where a module works on whole rows: norms and softmaxes with what is element-wise before, between and after them.

A *row* is the last axis of a shape. What reduces a row, takes it as a whole or goes over its elements can be computed
together where the row is held at once, and reads it once. What follows a product or a convolution is left to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from argosy.ir.dim import equal
from argosy.ir.module import Constant, Instruction, Module
from argosy.ir.types import TensorType
from argosy.ops.operands import numbers
from argosy.ops.reduce import Reduce, Softmax
from argosy.ops.shapes import normalize_axis

__all__ = ["find_rows", "reduces_rows"]

_LONGEST: Final = 16384
"""Elements of a row that are held at once."""
_PRODUCTS: Final = frozenset({"dot", "conv", "conv_transpose"})
_STEPS: Final = frozenset({"pointwise", "quantize", "dequantize"})
"""Ops that go over a row element by element."""
_KINDS: Final = frozenset({"sum", "mean", "max", "min"})


def reduces_rows(instruction: Instruction) -> bool:
    """Whether an op reduces the last axis of its operand and keeps it, or is a softmax along it."""
    op = instruction.op
    source = instruction.operands[0] if instruction.operands else None
    if source is None or not isinstance(source.type, TensorType) or not source.type.dims or not source.dtype.is_float:
        return False
    last, size = source.rank - 1, source.shape[-1]
    if not isinstance(size, int) or not 1 < size <= _LONGEST:
        return False
    if isinstance(op, Softmax):
        return normalize_axis(op.axis, source.rank) == last
    if not isinstance(op, Reduce) or op.kind not in _KINDS or not op.keep_dims:
        return False
    axes = numbers(op.axes, instruction.operands[1] if len(instruction.operands) > 1 else None)
    return axes is not None and [normalize_axis(axis, source.rank) for axis in axes] == [last]


def find_rows(module: Module) -> Mapping[Instruction, frozenset[Instruction]]:
    """The last instruction of each group that works on rows, and the others; they are read inside the group alone."""
    readers: dict[Instruction, list[Instruction]] = {}
    for instruction in module.instructions:
        for operand in instruction.operands:
            if operand is not None:
                readers.setdefault(operand.instruction, []).append(instruction)
    results = {value.instruction for value in module.results}
    epilogues = _epilogues(module.instructions, readers)
    found: dict[Instruction, frozenset[Instruction]] = {}
    taken: set[Instruction] = set()
    for place in range(len(module.instructions) - 1, -1, -1):
        root = module.instructions[place]
        if root in taken or not (_goes_over(root) or reduces_rows(root)) or root in epilogues:
            continue
        rows = _rows(root)
        inside = {root}
        for instruction in reversed(module.instructions[:place]):
            own = readers.get(instruction, [])
            if not own or instruction in results or instruction in taken or any(r not in inside for r in own):
                continue
            fits = reduces_rows(instruction) or (_goes_over(instruction) and instruction not in epilogues)
            if fits and _of_rows(instruction, rows):
                inside.add(instruction)
        steps = [each for each in inside if reduces_rows(each)]
        if len(steps) > 1 or (steps and len(inside) > 1 and not _is_lone(steps[0], root)):
            found[root] = frozenset(inside - {root})
            taken |= inside
    return found


def _is_lone(step: Instruction, root: Instruction) -> bool:
    """Whether a reduction with what follows it has no row to go over again: its result is as short as it."""
    return isinstance(step.op, Reduce) and _shape(root)[-1:] == (1,)


def _shape(instruction: Instruction) -> Sequence[object]:
    kind = instruction.types[0]
    return kind.dims if isinstance(kind, TensorType) and kind.dims is not None else ()


def _rows(instruction: Instruction) -> tuple[object, ...]:
    """All dims but the last, and the length of a row: of a reduction, that of what it reduces."""
    source = instruction.operands[0] if reduces_rows(instruction) else None
    shape = source.shape if source is not None else tuple(_shape(instruction))
    return tuple(shape)


def _of_rows(instruction: Instruction, rows: tuple[object, ...]) -> bool:
    """Whether it goes over the same rows: elements of them, or one number to each."""
    own = _rows(instruction)
    if len(own) != len(rows):
        return False
    same = all(equal(a, b) for a, b in zip(own[:-1], rows[:-1], strict=True))  # type: ignore[arg-type]
    return same and (bool(equal(own[-1], rows[-1])) or own[-1] == 1 or rows[-1] == 1)  # type: ignore[arg-type]


def _goes_over(instruction: Instruction) -> bool:
    kinds = [*instruction.types, *(operand.type for operand in instruction.operands if operand is not None)]
    ranked = all(isinstance(kind, TensorType) and kind.dims is not None for kind in kinds)
    return instruction.op.name in _STEPS and ranked and bool(_shape(instruction))


def _epilogues(
    instructions: Sequence[Instruction], readers: Mapping[Instruction, Sequence[Instruction]]
) -> set[Instruction]:
    """What can be computed behind a product, for it goes element by element over its result, which it alone reads."""
    found: set[Instruction] = set()
    for instruction in instructions:
        if instruction.op.name not in _STEPS:
            continue
        for operand in instruction.operands:
            if operand is None or isinstance(operand.instruction.op, Constant):
                continue
            made = operand.instruction
            if set(readers.get(made, ())) != {instruction}:
                continue
            if (made.op.name in _PRODUCTS or made in found) and _shape(made) == _shape(instruction):
                found.add(instruction)
    return found
