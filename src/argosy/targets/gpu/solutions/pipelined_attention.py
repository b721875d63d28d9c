"""Attention by the copy engine and warp groups, on devices that have both.

On an H200 (fp16, heads of 64 and 128, with a causal mask and without) it takes 0.66 to 0.89 of the time of plain tiles
from 2,048 keys on, 1.0 to 1.25 with 512, and 1.3 with 128. Of 12 configs the one here was the fastest but once, by 1 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from argosy.ops.shapes import product
from argosy.targets.gpu.codegen.blocks import at_most, size_hint
from argosy.targets.gpu.codegen.pipelined_attention import GROUP_ROWS, FlashTile, pipelined_attention
from argosy.targets.gpu.solution import Problem, Solution, Steps, register_solution
from argosy.targets.gpu.solutions.pipelined import multiplies_groups
from argosy.targets.lowering.accesses import present

__all__ = ["PipelinedAttention"]

_TILE: Final = FlashTile(128, 2, turns=True, pinned=False)
_LEAST: Final = 1024
"""Keys from which on it is faster than plain tiles."""


@register_solution
class PipelinedAttention(Solution):
    """Attention whose keys and values one warp copies, while two groups multiply and exponentiate in turn."""

    name = "pipelined attention"
    anchors: ClassVar = frozenset({"attention"})
    rank = 1

    def applies(self, problem: Problem) -> str:
        if not (multiplies_groups(problem.arch) and problem.arch.units):
            return "the device has no copy engine beside matrix instructions of warp groups"
        root, keys = problem.module.results[0], present(problem.anchor_instruction, 0).shape[-1]
        rows = size_hint(product(root.shape[:-1]), 1)
        if at_most(keys, _LEAST) < _LEAST or rows < 2 * GROUP_ROWS * problem.arch.units:
            return "plain tiles are faster"
        return ""

    def configs(self, problem: Problem) -> Sequence[Any]:
        del problem
        return (_TILE,)

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        kernel = pipelined_attention(
            problem.module, problem.anchor_instruction, problem.orders, problem.order, config, problem.arch.units or 1
        )
        reads = [steps.operand(index) for index in range(len(problem.module.parameters))]
        steps.launch(kernel, reads, [steps.result(0, problem.order)])
