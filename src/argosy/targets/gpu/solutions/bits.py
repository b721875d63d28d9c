"""Bits read as another element type: a copy, where the result can't share the operand's memory."""

from __future__ import annotations

from typing import Any, ClassVar

from argosy.ir.dtype import dtype
from argosy.targets.gpu.draft import copy_kernel
from argosy.targets.gpu.lone_op import LoneOp
from argosy.targets.gpu.solution import Problem, Steps, register_solution

__all__ = ["BitCopy"]


@register_solution
class BitCopy(LoneOp):
    """A copy of unsigned integers of the width: no element is converted, so that NaN keeps its bits."""

    name = "bit copy"
    anchors: ClassVar = frozenset({"bit_cast"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        kind = problem.module.results[0].tensor
        # A copy takes complex numbers as words of its own accord.
        is_complex = kind.dtype.kind == "complex"
        holder = kind if is_complex else kind.with_dtype(dtype(f"uint{max(kind.dtype.bits, 8)}"))
        steps.launch(copy_kernel(holder, None, None), [steps.ordered(0, None)], [steps.result(0)])
