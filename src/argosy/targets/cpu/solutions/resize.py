"""Resize: every mode, with scales, sizes and regions that may be known only when the program runs."""

from __future__ import annotations

from typing import Any

from argosy.ir.dtype import FLOAT64, INT64
from argosy.ir.types import TensorType
from argosy.ops.resize import Resize
from argosy.targets.cpu.codegen.resize_axes import resize_sizes
from argosy.targets.cpu.codegen.resizing import (
    changed_axes,
    interpolation_pass,
    interpolation_table,
    nearest_resize,
    nearest_table,
    rounded_copy,
    taps,
    widened_pass,
)
from argosy.targets.cpu.lone_op import LoneOp
from argosy.targets.cpu.solution import Problem, Steps, register_solution
from argosy.targets.cpu.solutions.steered import define_sizes
from argosy.targets.lowering.accesses import op_of, present

__all__ = ["ResizePasses"]


@register_solution
class ResizePasses(LoneOp):
    """One pass for the nearest elements; a pass for each axis to interpolate."""

    name = "resize passes"
    anchors = frozenset({"resize"})

    def applies(self, problem: Problem) -> str:
        declined = super().applies(problem)
        if not declined and problem.module.results[0].dtype.kind == "complex":
            (instruction,) = problem.module.instructions
            declined = "" if op_of(instruction, Resize).mode == "nearest" else "the passes add up real numbers"
        return declined

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        define_sizes(problem, steps, resize_sizes)
        module = problem.module
        (instruction,) = module.instructions
        op, x, result = op_of(instruction, Resize), present(instruction, 0), instruction.result()
        axes = changed_axes(module)
        if op.mode == "nearest":
            tables = []
            for axis in axes:
                tables.append(steps.temporary(TensorType(INT64, (result.shape[axis],))))
                self.call(problem, steps, nearest_table(module, axis), writes=tables[-1:])
            self.call(problem, steps, nearest_resize(module, axes), tables)
            return
        wide = result.dtype.compute if result.dtype.is_float else FLOAT64
        shape = x.shape
        source: list[int] = []
        for place, axis in enumerate(axes):
            after = (*shape[:axis], result.shape[axis], *shape[axis + 1 :])
            last = place == len(axes) - 1 and result.dtype is wide
            target = steps.result() if last else steps.temporary(TensorType(wide, after))
            if op.antialias:
                kernel = widened_pass(module, axis, shape, wide, first=place == 0)
                self.call(problem, steps, kernel, source, [target])
            else:
                entries = (result.shape[axis], taps(op))
                table = [steps.temporary(TensorType(kind, entries)) for kind in (INT64, wide)]
                self.call(problem, steps, interpolation_table(module, axis, wide), writes=table)
                kernel = interpolation_pass(module, axis, shape, wide, first=place == 0)
                self.call(problem, steps, kernel, [*table, *source], [target])
            shape, source = after, [target]
        if not axes or result.dtype is not wide:
            self.call(problem, steps, rounded_copy(module, wide, first=not axes), source)
