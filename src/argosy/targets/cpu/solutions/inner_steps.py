"""A product inside another op: the solutions of products write its steps, over buffers that the op has at hand."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.ir.module import Instruction, Module
from argosy.ir.types import TensorType
from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.cpu.layout import Blocked
from argosy.targets.cpu.solution import Problem, Steps, solutions_for
from argosy.targets.lowering.accesses import DeclinedError
from argosy.targets.lowering.choices import LEFT_OUT

__all__ = ["lower_inner"]


def lower_inner(module: Module, anchor: Instruction, outer: Problem, steps: Steps, operands: Sequence[int]) -> int:
    """Write the steps of `module`, whose parameters are `operands` of the outer problem; the buffer of its result.

    A parameter may read its operand under other dims of as many elements, then row-major. Raises DeclinedError where
    nothing applies.
    """
    own = [parameter.types for parameter in module.parameters]
    kept = [types == outer.module.parameters[index].types for types, index in zip(own, operands, strict=True)]
    layouts = outer.layouts or (None,) * len(outer.module.parameters)
    lying = tuple(layouts[index] if same else None for index, same in zip(operands, kept, strict=True))
    problem = Problem(module, anchor, outer.arch, outer.options, lying)
    reasons = []
    left_out = outer.options.leaves_out("solution")
    for solution in solutions_for(anchor.op.name):
        why = LEFT_OUT if solution.name in left_out else solution.applies(problem)
        if why:
            reasons.append(f"{solution.name}: {why}")
            continue
        inner = _InnerSteps(steps, operands, kept, module.results[0].tensor)
        solution.lower(problem, solution.configs(problem)[0], inner)
        return inner.result()
    raise DeclinedError("; ".join(reasons))


class _InnerSteps:
    """Steps of the inner op, passed on to those of the outer one."""

    def __init__(self, outer: Steps, operands: Sequence[int], kept: Sequence[bool], kind: TensorType) -> None:
        self._outer = outer
        self._operands = operands
        self._kept = kept
        self._kind = kind
        self._result: int | None = None

    def operand(self, index: int) -> int:
        """See `Steps`, as for the others."""
        return self._outer.operand(self._operands[index])

    def result(self, index: int = 0) -> int:
        del index
        if self._result is None:
            self._result = self._outer.temporary(self._kind)
        return self._result

    def blocked(self, index: int, need: Blocked, axes: tuple[int | None, ...] | None = None) -> tuple[int, Blocked]:
        if not self._kept[index]:
            raise DeclinedError("an inner product reads an operand under other dims")
        return self._outer.blocked(self._operands[index], need, axes)

    def blocked_result(self, layout: Blocked, index: int = 0) -> int:
        raise DeclinedError("an inner product has no blocked result")

    def wanted(self, index: int = 0) -> Blocked | None:
        return None

    def is_weight(self, index: int) -> bool:
        return self._outer.is_weight(self._operands[index])

    def temporary(self, kind: TensorType) -> int:
        return self._outer.temporary(kind)

    def draw_number(self) -> int:
        return self._outer.draw_number()

    def undefined(self, index: int = 0) -> Sequence[tuple[str, int]]:
        return ()

    def prepared(self, kernel: Kernel, reads: Sequence[int], kind: TensorType) -> int:
        return self._outer.prepared(kernel, reads, kind)

    def call(self, kernel: Kernel, reads: Sequence[int], writes: Sequence[int]) -> None:
        self._outer.call(kernel, reads, writes)

    def define(self, symbol: str, buffer: int, axis: int | None = None, element: int = 0) -> None:
        self._outer.define(symbol, buffer, axis, element)
