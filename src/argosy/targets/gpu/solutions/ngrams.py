"""Counting n-grams: every gram of the pool is looked for in every row."""

from __future__ import annotations

from typing import Any, ClassVar

from argosy.targets.gpu.codegen.ngrams import count_kernel, count_sizes, weigh_kernel, zero_kernel
from argosy.targets.gpu.lone_op import LoneOp
from argosy.targets.gpu.solution import Problem, Steps, register_solution
from argosy.targets.gpu.solutions.steered import define_sizes

__all__ = ["NGramCounts"]


@register_solution
class NGramCounts(LoneOp):
    """Counts are whole numbers, whose sums are the same in any order: grams of one column add up by atomics."""

    name = "n-gram counts"
    anchors: ClassVar = frozenset({"count_ngrams"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        define_sizes(problem, steps, count_sizes)
        module = problem.module
        counts = steps.temporary(module.results[0].tensor)
        steps.launch(zero_kernel(module), [], [counts])
        for kernel in count_kernel(module):
            self.call(problem, steps, kernel, writes=[counts])
        self.call(problem, steps, weigh_kernel(module), [counts])
