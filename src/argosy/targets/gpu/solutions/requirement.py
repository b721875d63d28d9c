"""What a run must satisfy: one comparison."""

from __future__ import annotations

from typing import Any, ClassVar

from argosy.ir.access import Access
from argosy.ops.requirement import Require
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen.faults import Fault
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.steering import number
from argosy.targets.gpu.solution import Problem, Solution, Steps, register_solution
from argosy.targets.lowering.accesses import op_of, present

__all__ = ["Requirement"]


@register_solution
class Requirement(Solution):
    """Reports shapes that do not fit each other, which is why the branch not taken can't run."""

    name = "requirement"
    anchors: ClassVar = frozenset({"require"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        steps.launch(_requirement(problem), [steps.operand(0)], [])


def _requirement(problem: Problem) -> Kernel:
    writer = KernelWriter(problem.module)
    elements, condition = writer.elements, present(problem.anchor_instruction, 0)
    op = op_of(problem.anchor_instruction, Require)
    count = number(elements, product(condition.shape))
    elements.fault(f"{count} != 1", Fault.SHAPES, "-1")
    with writer.text.block(f"if {count} > 0:"):
        value = elements.of(condition, Access((), condition.shape, (0,) * condition.rank))
        elements.fault(f"{value} != {int(op.expected)}", Fault.SHAPES, "-1")
    return writer.kernel(Launch((1, 1, 1), 1)).labelled("require")
