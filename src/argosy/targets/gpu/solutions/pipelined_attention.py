"""Attention by the copy engine and warp groups, on devices that have both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from argosy.targets.gpu.codegen.pipelined_attention import FlashTile, pipelined_attention
from argosy.targets.gpu.solution import Problem, Solution, Steps, register_solution
from argosy.targets.gpu.solutions.pipelined import multiplies_groups

__all__ = ["PipelinedAttention"]

_TILES: Final = (FlashTile(128, 2), FlashTile(64, 4))


@register_solution
class PipelinedAttention(Solution):
    """Attention whose keys and values one warp copies, while two groups multiply and exponentiate in turn."""

    name = "pipelined attention"
    anchors: ClassVar = frozenset({"attention"})
    rank = 1

    def applies(self, problem: Problem) -> str:
        if not (multiplies_groups(problem.arch) and problem.arch.units):
            return "the device has no copy engine beside matrix instructions of warp groups"
        return "plain tiles are taken where it has not been measured"

    def configs(self, problem: Problem) -> Sequence[Any]:
        del problem
        return _TILES

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        kernel = pipelined_attention(
            problem.module, problem.anchor_instruction, problem.orders, problem.order, config, problem.arch.units or 1
        )
        reads = [steps.operand(index) for index in range(len(problem.module.parameters))]
        steps.launch(kernel, reads, [steps.result(0, problem.order)])
