"""What a derivative rule is: from the gradients of an instruction's results to those of its operands.

    @derivative(Transpose)
    def transpose(step: Backward) -> Gradients:
        \"\"\"Transposed back.\"\"\"

A rule appends instructions to `step.build`. It gives an entry for each operand, or for the first ones: None stands for
zero. What it can't differentiate it refuses by `step.refuse`, saying why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeAlias, TypeVar

from argosy.errors import UnsupportedError
from argosy.ir.builder import Builder
from argosy.ir.dim import DimLike
from argosy.ir.dtype import INT64, DType
from argosy.ir.module import Instruction, Value
from argosy.ir.op import Op
from argosy.ir.types import Dims
from argosy.ops.dim_values import DimValues
from argosy.ops.operands import present
from argosy.ops.view import Broadcast, Reshape
from argosy.registry import Registry
from argosy.rewrite.pattern import op_of

__all__ = ["DERIVATIVES", "Backward", "Derivative", "Gradients", "derivative", "filled", "reshaped", "size_of"]

K = TypeVar("K", bound=Op)

Gradients: TypeAlias = Sequence[Value | None]


@dataclass(frozen=True, slots=True)
class Backward:
    """An instruction to be differentiated.

    `gradients` has an entry for each result, None where it is zero; `wanted` says of each operand whether its
    gradient is asked for.
    """

    build: Builder
    instruction: Instruction
    gradients: tuple[Value | None, ...]
    wanted: tuple[bool, ...]

    def op(self, kind: type[K]) -> K:
        """The op, which is of the kind that its rule is registered for."""
        return op_of(self.result, kind)

    def operand(self, index: int) -> Value:
        """Operand `index`, which must be there."""
        return present(self.instruction.operands[index])

    def optional(self, index: int) -> Value | None:
        """Operand `index`, or None where it is absent."""
        operands = self.instruction.operands
        return operands[index] if index < len(operands) else None

    def wants(self, index: int) -> bool:
        """Whether the gradient of operand `index` is asked for."""
        return index < len(self.wanted) and self.wanted[index]

    @property
    def gradient(self) -> Value:
        """The gradient of the first result, which is the only one that has one."""
        return present(self.gradients[0])

    @property
    def result(self) -> Value:
        """The first result."""
        return self.instruction.result()

    def refuse(self, why: str) -> NoReturn:
        """Raise UnsupportedError: the instruction has no derivative, and why."""
        raise UnsupportedError(
            f"{self.instruction.op.name} has no derivative here: {why}", (), where=self.instruction.source
        )


Derivative: TypeAlias = Callable[[Backward], Gradients]
DERIVATIVES: Registry[type[Op], Derivative] = Registry("derivative", "argosy.rewrite.gradient.rules")
F = TypeVar("F", bound=Derivative)


def derivative(*ops: type[Op]) -> Callable[[F], F]:
    """Register a rule for `ops`."""

    def enter(rule: F) -> F:
        for op in ops:
            DERIVATIVES.add(op, rule)
        return rule

    return enter


# ------------------------------------------------------------------------------------- what rules have in common


def reshaped(build: Builder, value: Value, shape: Dims) -> Value:
    """`value` with other dims; itself where they are the same."""
    return value if value.shape == shape else build.add(Reshape(shape, allow_zero=True), value)


def filled(build: Builder, number: float, dtype: DType, shape: Dims) -> Value:
    """A tensor of one number."""
    return build.add(Broadcast(shape), build.constant(number, dtype)) if shape else build.constant(number, dtype)


def size_of(build: Builder, size: DimLike, dtype: DType = INT64) -> Value:
    """A size as a scalar."""
    if isinstance(size, int):
        return build.constant(size, dtype)
    return build.convert(build.add(DimValues((size,), scalar=True)), dtype)
