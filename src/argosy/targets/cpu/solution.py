"""What a solution is: one way to do one fused op.

`applies` says why it can't, or nothing; `configs` lists its variants best first, by a cost model; `lower` writes
the steps. The lowering takes the best config of the first solution that applies; measuring is for later.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from argosy.errors import InternalError
from argosy.ir.module import Instruction, Module
from argosy.ir.types import TensorType
from argosy.options import CompileOptions
from argosy.registry import Registry
from argosy.targets.cpu.arch import CpuArch
from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.cpu.layout import Blocked

__all__ = ["SOLUTIONS", "OneKernel", "Problem", "Solution", "Steps", "register_solution", "solutions_for"]


@dataclass(frozen=True, slots=True)
class Problem:
    """A fused module, its anchor (None where it has none, or the only instruction for an op that does not fuse)."""

    module: Module
    anchor: Instruction | None
    arch: CpuArch
    options: CompileOptions
    layouts: tuple[Blocked | None, ...] = ()
    """The blocked form in which a parameter is at hand already, for each of them; empty while others ask ahead."""

    @property
    def anchor_instruction(self) -> Instruction:
        """The anchor of a problem that has one."""
        if self.anchor is None:
            raise InternalError("the problem has no anchor")
        return self.anchor


class Steps(Protocol):
    """What a solution writes its steps into. Buffers are numbers."""

    def operand(self, index: int) -> int:
        """The buffer of parameter `index` of the problem's module."""
        ...

    def result(self, index: int = 0) -> int:
        """The buffer of a result."""
        ...

    def blocked(self, index: int, need: Blocked, axes: tuple[int | None, ...] | None = None) -> tuple[int, Blocked]:
        """Parameter `index` as a blocked image that covers `need`: the buffer and its layout.

        Axis i of the image is axis `axes[i]` of the parameter, or of size 1 where that is None; by default its own.
        """
        ...

    def blocked_result(self, layout: Blocked, index: int = 0) -> int:
        """The buffer of a result that is written in a blocked layout."""
        ...

    def wanted(self, index: int = 0) -> Blocked | None:
        """The blocked layout that the readers of a result would like, or None where they take it row-major."""
        ...

    def is_weight(self, index: int) -> bool:
        """Whether parameter `index` is a weight, so that what depends on it alone may be prepared."""
        ...

    def temporary(self, kind: TensorType) -> int:
        """A buffer that lives as long as the steps of this op need it."""
        ...

    def draw_number(self) -> int:
        """A buffer with the number of the draw, an int64: of the run and the iterations that it is in."""
        ...

    def undefined(self, index: int = 0) -> Sequence[tuple[str, int]]:
        """Symbols that only this op gives a value, by `define`: their names and axes in result `index`."""
        ...

    def prepared(self, kernel: Kernel, reads: Sequence[int], kind: TensorType) -> int:
        """A buffer made from weights by a kernel, once at load."""
        ...

    def call(self, kernel: Kernel, reads: Sequence[int], writes: Sequence[int]) -> None:
        """Append a call: the kernel's pointers are `reads` and then `writes`."""
        ...

    def define(self, symbol: str, buffer: int, axis: int | None = None, element: int = 0) -> None:
        """Give a data-dependent symbol its value: an element of an integer buffer that a call has written."""
        ...


class Solution(ABC):
    """Base of the solutions; registered by `@register_solution`. Of several for one anchor, higher `rank` first."""

    name: ClassVar[str]
    anchors: ClassVar[frozenset[str]]
    rank: ClassVar[int] = 0

    def applies(self, problem: Problem) -> str:
        """Why the solution can't do this problem; empty where it can, as by default."""
        del problem
        return ""

    def prefers(self, problem: Problem, index: int) -> Blocked | None:
        """The blocked layout in which the solution would like parameter `index`; None where it takes it row-major."""
        del problem, index
        return None

    def keeps_layout(self, problem: Problem) -> bool:
        """Whether blocked results had best lie as the operands do: they then are one another's parts."""
        del problem
        return False

    def configs(self, problem: Problem) -> Sequence[Any]:
        """Variants, best first; one without choices by default."""
        del problem
        return (None,)

    @abstractmethod
    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        """Write the steps. May raise DeclinedError where only the attempt shows that it can't."""


class OneKernel(Solution):
    """Base of the solutions that always apply and are one kernel over all parameters and results."""

    @abstractmethod
    def kernel(self, problem: Problem) -> Kernel:
        """The kernel; raises DeclinedError where it can't be generated."""

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        module = problem.module
        reads = [steps.operand(index) for index in range(len(module.parameters))]
        steps.call(self.kernel(problem), reads, [steps.result(index) for index in range(len(module.results))])


SOLUTIONS: Registry[str, type[Solution]] = Registry("solution", "argosy.targets.cpu.solutions")


def register_solution(cls: type[Solution]) -> type[Solution]:
    """Class decorator: enters a solution under its name."""
    SOLUTIONS.add(cls.name, cls)
    return cls


def solutions_for(anchor: str) -> list[Solution]:
    """The solutions for an anchor ("" for none), best first."""
    found = [cls for _, cls in SOLUTIONS.items() if anchor in cls.anchors]
    return [cls() for cls in sorted(found, key=lambda cls: (-cls.rank, cls.name))]
