"""What an instruction is to the solutions: the problem that they are asked, and the order that readers want."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from argosy.ir.module import Instruction, Module, Value
from argosy.ir.types import TensorType
from argosy.ops.fused import Fused
from argosy.options import CompileOptions
from argosy.targets.gpu.arches.row import GpuArch
from argosy.targets.gpu.solution import Order, Problem, Solution, solutions_for
from argosy.targets.gpu.words import in_words
from argosy.targets.lowering.values import anchor_of, in_memory, lone_module

__all__ = ["Problems"]

_FAR = 8
"""Element-wise readers through which the wish of a window is looked for."""


@dataclass(frozen=True, slots=True)
class _Known:
    """An instruction as a module, its anchor, and the solutions that may do it, best first."""

    module: Module
    anchor: Instruction | None
    solutions: Sequence[Solution]


class Problems:
    """The problems of one module, for an arch and options; what each instruction is, is found out once."""

    def __init__(self, arch: GpuArch, options: CompileOptions) -> None:
        self._arch = arch
        self._options = options
        self._known: dict[Instruction, _Known] = {}

    def of(self, instruction: Instruction, orders: tuple[Order, ...], order: Order = None) -> Problem:
        """What the solutions are asked to do for an instruction, whose operands lie in these orders.

        `order` is the one that the readers of its result would like.
        """
        known = self._find(instruction)
        return Problem(known.module, known.anchor, self._arch, self._options, orders, order)

    def solutions(self, instruction: Instruction) -> Sequence[Solution]:
        """The solutions that may do an instruction, best first."""
        return self._find(instruction).solutions

    def wanted_order(
        self, value: Value, readers: Mapping[Value, Sequence[tuple[Instruction, int]]], far: int = _FAR
    ) -> Order:
        """The order in which the readers of a value would like its axes, seen through element-wise ones."""
        if not isinstance(value.type, TensorType) or value.type.dims is None or value.rank < 3:
            return None
        for reader, index in readers.get(value, ()):
            if not in_memory(reader):
                continue
            count = sum(operand is not None for operand in reader.operands)
            asked = self.of(reader, (None,) * count)
            for solution in self.solutions(reader):
                liked = solution.prefers(asked, index)
                if liked is not None and len(liked) == value.rank:
                    return liked
            passes = asked.anchor is None and len(reader.types) == 1 and _same_shape(value, reader.result())
            if passes and far:
                liked = self.wanted_order(reader.result(), readers, far - 1)
                if liked is not None:
                    return liked
        return None

    def natural_order(self, value: Value, readers: Mapping[Value, Sequence[tuple[Instruction, int]]]) -> Order:
        """How the maker of a value would like to write it, where reductions alone read it: they take any order."""
        made, taken = value.instruction, readers.get(value, ())
        if not taken or not in_memory(made) or not all(self._reduces(reader) for reader, _ in taken):
            return None
        asked = self.of(made, (None,) * sum(operand is not None for operand in made.operands))
        for solution in self.solutions(made):
            liked = solution.gives(asked)
            if liked is not None and len(liked) == value.rank:
                return liked
        return None

    def _reduces(self, reader: Instruction) -> bool:
        anchor = self._find(reader).anchor if in_memory(reader) else None
        return anchor is not None and anchor.op.name == "reduce"

    def _find(self, instruction: Instruction) -> _Known:
        if instruction not in self._known:
            op = instruction.op
            if isinstance(op, Fused):
                module = in_words(op.module)
                name, anchor = anchor_of(module, rows=True)
                self._known[instruction] = _Known(module, anchor, solutions_for(name))
            else:
                module = in_words(lone_module(instruction))
                self._known[instruction] = _Known(module, module.instructions[0], solutions_for(op.name))
        return self._known[instruction]


def _same_shape(left: Value, right: Value) -> bool:
    return isinstance(right.type, TensorType) and right.type.dims == left.type.dims  # type: ignore[union-attr]
