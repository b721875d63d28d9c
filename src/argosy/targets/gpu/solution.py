"""What a solution is: one way to do one fused op on a GPU.

`applies` says why it can't, or nothing; `configs` lists its variants best first, by a cost model; `lower` writes the
steps. The lowering takes the first config whose kernels the toolchain does not refuse.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

from argosy.errors import InternalError
from argosy.ir.module import Instruction, Module
from argosy.ir.types import TensorType
from argosy.options import CompileOptions
from argosy.registry import Registry
from argosy.targets.gpu.arches.row import GpuArch
from argosy.targets.gpu.codegen.kernel import Kernel

__all__ = ["SOLUTIONS", "Order", "Problem", "Solution", "Steps", "register_solution", "solutions_for"]

Order: TypeAlias = tuple[int, ...] | None
"""How the axes of a tensor lie in memory, outermost first; None stands for row-major."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A fused module, its anchor (None where it has none, or the only instruction for an op that does not fuse).

    `orders` are those of the parameters as they lie, `order` is the one in which the readers would like the result.
    """

    module: Module
    anchor: Instruction | None
    arch: GpuArch
    options: CompileOptions
    orders: tuple[Order, ...]
    order: Order = None

    @property
    def anchor_instruction(self) -> Instruction:
        """The anchor of a problem that has one."""
        if self.anchor is None:
            raise InternalError("the problem has no anchor")
        return self.anchor


class Steps(Protocol):
    """What a solution writes its steps into. Buffers are numbers."""

    def operand(self, index: int) -> int:
        """The buffer of parameter `index`, as it lies."""
        ...

    def ordered(self, index: int, order: Order) -> int:
        """Parameter `index` in another order of its axes: made at load from a weight, else by a kernel of its own."""
        ...

    def prepared(self, kernel: Kernel, reads: Sequence[int], kind: TensorType) -> int:
        """A buffer that a kernel makes from weights alone, once, at load."""
        ...

    def result(self, index: int = 0, order: Order = None) -> int:
        """The buffer of a result, whose axes lie in an order."""
        ...

    def is_weight(self, index: int) -> bool:
        """Whether parameter `index` is a weight, so that what depends on it alone may be prepared."""
        ...

    def temporary(self, kind: TensorType) -> int:
        """A buffer that lives as long as the steps of this op need it."""
        ...

    def undefined(self, index: int = 0) -> Sequence[tuple[str, int]]:
        """Symbols that only this op gives a value: their names and axes in a result."""
        ...

    def define(self, symbol: str, buffer: int, element: int = 0) -> None:
        """Bind a symbol to an element of an int64 buffer that was written."""
        ...

    def draw_number(self) -> int:
        """A buffer with the number of the draw, an int64: of the run and the iterations that it is in."""
        ...

    def launch(self, kernel: Kernel, reads: Sequence[int], writes: Sequence[int], numbers: Sequence[int] = ()) -> None:
        """Append a launch: the kernel's pointers are `reads` and then `writes`, its numbers `numbers`."""
        ...


class Solution(ABC):
    """Base of the solutions; registered by `@register_solution`. Of several for one anchor, higher `rank` first."""

    name: ClassVar[str]
    anchors: ClassVar[frozenset[str]]
    rank: ClassVar[int] = 0

    def applies(self, problem: Problem) -> str:
        """Why the solution can't do this problem; empty where it can, as by default. May raise DeclinedError."""
        del problem
        return ""

    def prefers(self, problem: Problem, index: int) -> Order:
        """The order in which the solution would like parameter `index`; None where row-major is as good."""
        del problem, index
        return None

    def gives(self, problem: Problem) -> Order:
        """The order in which the solution would like to write its result; None where row-major is as good."""
        del problem
        return None

    def configs(self, problem: Problem) -> Sequence[Any]:
        """Variants, best first; one without choices by default."""
        del problem
        return (None,)

    @abstractmethod
    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        """Write the steps. May raise DeclinedError where only the attempt shows that it can't."""


SOLUTIONS: Registry[str, type[Solution]] = Registry("GPU solution", "argosy.targets.gpu.solutions")


def register_solution(cls: type[Solution]) -> type[Solution]:
    """Class decorator: enters a solution under its name."""
    SOLUTIONS.add(cls.name, cls)
    return cls


def solutions_for(anchor: str) -> list[Solution]:
    """The solutions for an anchor ("" for none), best first."""
    found = [cls for _, cls in SOLUTIONS.items() if anchor in cls.anchors]
    return [cls() for cls in sorted(found, key=lambda cls: (-cls.rank, cls.name))]
