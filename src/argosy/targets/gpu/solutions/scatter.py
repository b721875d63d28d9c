"""Scatters: every element looks for its updates, is told which one came last, finds them sorted or adds integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from argosy.ir.dim import bounds, ceildiv
from argosy.ir.dtype import FLOAT32, INT32, INT64
from argosy.ir.types import TensorType
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen.adding import (
    add_kernel,
    largest_kernel,
    nothing_kernel,
    sums_type,
    take_sum_kernel,
)
from argosy.targets.gpu.codegen.combining import (
    PARTS,
    combine_kernel,
    no_runs_kernel,
    part_kernel,
    run_kernel,
    slots_kernel,
)
from argosy.targets.gpu.codegen.radix import SORT_BLOCKS, SortedLines
from argosy.targets.gpu.codegen.scatter import Scatter, last_kernel, none_kernel, search_kernel, take_last_kernel
from argosy.targets.gpu.lone_op import LoneOp
from argosy.targets.gpu.solution import Problem, Steps, register_solution
from argosy.targets.gpu.solutions.sorting import sort_lines

__all__ = ["ScatterAdded", "ScatterLast", "ScatterSearch", "ScatterSorted"]

_FEW: Final = 64
"""Updates among which looking is as good as being told."""
_CROWD: Final = 256
"""Updates of an element, on average, from which on they are sorted."""
_ANY: Final = 40
"""Bits of the number of an element where it is not known how many there are: no device holds as many."""


@register_solution
class ScatterLast(LoneOp):
    """For a scatter that replaces: the number of each element's last update, by atomic maxima, then every element.

    Maxima are the same in any order.
    """

    name = "scatter last"
    anchors: ClassVar = frozenset({"scatter_elements", "scatter_nd"})
    rank = 1

    def applies(self, problem: Problem) -> str:
        scatter = Scatter.of(problem.module)
        if scatter.reduction != "none":
            return "its updates are combined"
        upper = bounds(scatter.candidates)[1]
        if upper is not None and upper <= _FEW:
            return "an element has few updates to look at"
        return super().applies(problem)

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        module = problem.module
        scatter = Scatter.of(module)
        last = steps.temporary(TensorType(scatter.number_type, scatter.slots))
        steps.launch(none_kernel(module), [], [last])
        self.call(problem, steps, last_kernel(module), writes=[last])
        self.call(problem, steps, take_last_kernel(module), [last])


@register_solution
class ScatterSorted(LoneOp):
    """For a scatter that combines: the updates are sorted by what they go to, then every element takes its own.

    Several for one element are combined in their order, many in parts of a fixed size: the bits are always the same.
    """

    name = "scatter sorted"
    anchors: ClassVar = frozenset({"scatter_elements", "scatter_nd"})
    rank = 1

    def applies(self, problem: Problem) -> str:
        scatter = Scatter.of(problem.module)
        if scatter.reduction == "none":
            return "its updates replace"
        upper = bounds(scatter.candidates)[1]
        if upper is not None and upper <= _FEW:
            return "an element has few updates to look at"
        return super().applies(problem)

    def configs(self, problem: Problem) -> Sequence[tuple[int, int]]:
        del problem
        return [(block, part) for block in SORT_BLOCKS for part in PARTS]

    def lower(self, problem: Problem, config: tuple[int, int], steps: Steps) -> None:
        block, part = config
        module, scatter = problem.module, Scatter.of(problem.module)
        count, slots = product(scatter.numbers), product(scatter.slots)
        most = bounds(slots)[1]
        order = SortedLines(1, count, _ANY if most is None else most.bit_length(), block)
        keys = steps.temporary(TensorType(order.dtype, (count,)))
        begins, ends = (steps.temporary(TensorType(order.places, (slots + 1,))) for _ in range(2))
        self.call(problem, steps, slots_kernel(module, order), writes=[keys])
        keys, numbers = sort_lines(steps, keys, order)
        steps.launch(no_runs_kernel(order, slots + 1), [], [begins, ends])
        steps.launch(run_kernel(order), [keys], [begins, ends])
        inner = product(problem.module.results[0].shape[len(scatter.slots) :])
        kind = TensorType(problem.module.results[0].dtype.compute, (ceildiv(count, part), inner))
        folds = steps.temporary(kind)
        self.call(problem, steps, part_kernel(module, order, part), [keys, numbers], [folds])
        self.call(problem, steps, combine_kernel(module, order, part), [numbers, begins, ends, folds])


@register_solution
class ScatterAdded(LoneOp):
    """For a scatter that adds single elements: integer sums by atomics, which are the same in any order."""

    name = "scatter added"
    anchors: ClassVar = frozenset({"scatter_elements", "scatter_nd"})
    rank = 2

    def applies(self, problem: Problem) -> str:
        scatter = Scatter.of(problem.module)
        kind = problem.module.results[0].dtype
        if scatter.reduction != "add":
            return "its updates are not added"
        if not (kind.compute is FLOAT32 or kind in (INT32, INT64)):
            return f"sums of {kind} are not those of integers"
        if len(scatter.slots) != problem.module.results[0].rank:
            return "an update is a slice"
        upper = bounds(scatter.candidates)[1]
        if upper is not None and upper <= _FEW:
            return "an element has few updates to look at"
        slots, numbers = product(scatter.slots), product(scatter.numbers)
        if isinstance(slots, int) and isinstance(numbers, int) and slots * _CROWD < numbers:
            return "so many updates of an element would wait for each other"
        return super().applies(problem)

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        module, slots = problem.module, Scatter.of(problem.module).slots
        kind = module.results[0].dtype
        made = [steps.temporary(TensorType(sums_type(kind), slots))]
        if kind.is_float:
            made.append(steps.temporary(TensorType(INT32, slots)))
        steps.launch(nothing_kernel(module), [], made)
        if kind.is_float:
            self.call(problem, steps, largest_kernel(module), writes=made[1:])
        self.call(problem, steps, add_kernel(module), made[1:], made[:1])
        self.call(problem, steps, take_sum_kernel(module), made)


@register_solution
class ScatterSearch(LoneOp):
    """Every element goes over the updates that may be its own, in order, and rounds once.

    No two lanes write to one place, so that the bits are the same in every run.
    """

    name = "scatter search"
    anchors: ClassVar = frozenset({"scatter_elements", "scatter_nd"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        self.call(problem, steps, search_kernel(problem.module))
