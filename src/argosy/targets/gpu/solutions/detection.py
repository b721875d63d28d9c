"""Non-maximum suppression: boxes in order of their score, without those that overlap a better one too much."""

from __future__ import annotations

from typing import Any, ClassVar

from argosy.ir.dtype import FLOAT32, INT64, UINT8
from argosy.ir.types import TensorType
from argosy.targets.gpu.codegen.selecting import offsets_kernel
from argosy.targets.gpu.codegen.suppression import rows_of_boxes_kernel, select_kernel
from argosy.targets.gpu.solution import Problem, Solution, Steps, register_solution
from argosy.targets.lowering.accesses import present

__all__ = ["GreedySuppression"]


@register_solution
class GreedySuppression(Solution):
    """Every batch and class on its own; then their boxes in one list."""

    name = "greedy suppression"
    anchors: ClassVar = frozenset({"non_max_suppression"})

    def applies(self, problem: Problem) -> str:
        kinds = {present(problem.anchor_instruction, index).dtype for index in (0, 1)}
        return "" if kinds == {FLOAT32} else "its boxes or scores are not float32"

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        module = problem.module
        batches, classes, count = present(problem.anchor_instruction, 1).shape
        lines = batches * classes
        each = TensorType(INT64, (lines,))
        chosen, counts, before = (steps.temporary(kind) for kind in (TensorType(INT64, (lines, count)), each, each))
        notes, total = steps.temporary(TensorType(UINT8, (lines, count))), steps.temporary(TensorType(INT64, (1,)))
        reads = [steps.ordered(index, None) for index in range(len(module.parameters))]
        steps.launch(select_kernel(module), reads, [chosen, counts, notes])
        steps.launch(offsets_kernel(lines), [counts], [before, total])
        for name, _ in steps.undefined():
            steps.define(name, total)
        steps.launch(rows_of_boxes_kernel(lines, classes, count), [chosen, counts, before], [steps.result()])
