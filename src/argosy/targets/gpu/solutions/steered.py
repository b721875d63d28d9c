"""Ops whose operands say at run time how large the results are: one kernel for the sizes, then the op itself."""

from __future__ import annotations

from typing import Any, ClassVar

from argosy.ir.dtype import INT64
from argosy.ir.module import Instruction, Module, Parameter
from argosy.ir.types import TensorType
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen.joining import take_kernel
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.loops import elementwise_kernel
from argosy.targets.gpu.codegen.result_sizes import ResultSizes, result_sizes, sizes_kernel
from argosy.targets.gpu.codegen.steered_reduction import reduction_sizes, steered_reduction
from argosy.targets.gpu.solution import Problem, Solution, Steps, register_solution
from argosy.targets.lowering.accesses import present, split_access

__all__ = ["PlainCopy", "SteeredLoops", "SteeredReduction", "SteeredSplit", "define_sizes"]


def define_sizes(problem: Problem, steps: Steps, sizes: ResultSizes = result_sizes) -> None:
    """Give the symbols that the op's results define their values, which a kernel of its own computes."""
    wanted: dict[str, tuple[int, int]] = {}
    for number in range(len(problem.module.results)):
        for name, axis in steps.undefined(number):
            wanted.setdefault(name, (number, axis))
    if not wanted:
        return
    kernel = sizes_kernel(problem.module, problem.orders, list(wanted.values()), sizes)
    buffer = steps.temporary(TensorType(INT64, (len(wanted),)))
    steps.launch(kernel, [steps.operand(i) for i in range(len(problem.module.parameters))], [buffer])
    for place, name in enumerate(wanted):
        steps.define(name, buffer, element=place)


@register_solution
class SteeredLoops(Solution):
    """Views and picks by index: a loop over the result, once its sizes are known."""

    name = "steered loops"
    anchors: ClassVar = frozenset({"slice", "pad", "tile", "broadcast", "range", "one_hot", "frames"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        define_sizes(problem, steps)
        kernel = elementwise_kernel(problem.module, problem.orders, problem.order)
        reads = [steps.operand(i) for i in range(len(problem.module.parameters))]
        steps.launch(kernel, reads, [steps.result(0, problem.order)])


@register_solution
class PlainCopy(Solution):
    """The same elements in the same order under other dims: a copy."""

    name = "plain copy"
    anchors: ClassVar = frozenset({"reshape", "squeeze", "unsqueeze"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        define_sizes(problem, steps)
        steps.launch(_copy_kernel(problem.module.results[0].tensor), [steps.ordered(0, None)], [steps.result()])


@register_solution
class SteeredSplit(Solution):
    """Pieces of sizes that an operand gives."""

    name = "steered split"
    anchors: ClassVar = frozenset({"split"})
    rank = -1

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        define_sizes(problem, steps)
        anchor, order = problem.anchor_instruction, problem.orders[0]
        x = present(anchor, 0)
        for index in range(len(anchor.types)):
            kernel = take_kernel(anchor.result(index), x.tensor, split_access(anchor, index), order, order)
            steps.launch(kernel, [steps.operand(0)], [steps.result(index, order)])


@register_solution
class SteeredReduction(Solution):
    """Sums and extremes over axes that an operand gives."""

    name = "steered reduction"
    anchors: ClassVar = frozenset({"reduce"})
    rank = -1

    def applies(self, problem: Problem) -> str:
        return "" if len(problem.module.instructions) == 1 else "it is fused with other ops"

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        define_sizes(problem, steps, reduction_sizes)
        reads = [steps.operand(i) for i in range(len(problem.module.parameters))]
        steps.launch(steered_reduction(problem.module, problem.orders), reads, [steps.result()])


def _copy_kernel(kind: TensorType) -> Kernel:
    """Copies the elements of a tensor as if it had one axis: both shapes have as many."""
    flat = TensorType(kind.dtype, (product(kind.shape),))
    source = Instruction(Parameter(flat), (), (flat,), (None,), ("x",))
    return elementwise_kernel(Module("copy", (source,), (), (source.result(),), ("y",)), (None,), None)
