"""Attention: two products and the softmax between them."""

from __future__ import annotations

from argosy.ir.dtype import FLOAT32
from argosy.rewrite.attention import Attention, find_attentions
from argosy.targets.cpu.codegen.attention import attention_kernel
from argosy.targets.cpu.codegen.attention_in_place import FEW, attention_in_place
from argosy.targets.cpu.codegen.gemm import Gemm
from argosy.targets.cpu.codegen.gemm_packing import direct_step, left_type, pack_left, pack_right, right_type
from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.cpu.codegen.part import part_of
from argosy.targets.cpu.codegen.products import plain
from argosy.targets.cpu.codegen.tile import BLOCK, tile_for
from argosy.targets.cpu.solution import OneKernel, Problem, Solution, Steps, register_solution
from argosy.targets.cpu.solutions.dot import packed_operand

__all__ = ["AttentionInPlace", "TiledAttention"]


@register_solution
class TiledAttention(Solution):
    """Keys and values packed, a tile of queries at a time, no matrix of scores."""

    name = "tiled attention"
    anchors = frozenset({"attention"})

    def applies(self, problem: Problem) -> str:
        del problem
        return ""

    def lower(self, problem: Problem, config: None, steps: Steps) -> None:
        del config
        module, attention = problem.module, _attention(problem)
        tile = tile_for(problem.arch, FLOAT32, 2 * BLOCK)
        scores, values = (Gemm(anchor, tile, plain(FLOAT32)) for anchor in (attention.scores, attention.product))
        direct = direct_step(module, scores)
        ready = [
            packed_operand(steps, part_of(module, [gemm.right]), gemm, pack_right, right_type(gemm))
            for gemm in (scores, values)
        ]
        if direct is None:
            ready.append(packed_operand(steps, part_of(module, [scores.left]), scores, pack_left, left_type(scores)))
        changed = attention.softmax.operands[0]
        wanted = [module.results[0], values.left, *([] if changed is None else [changed])]
        wanted += [] if direct is None else [scores.left]
        part = part_of(module, wanted, {scores.anchor, attention.softmax, values.anchor})
        reads = [steps.operand(index) for index in part.parameters]
        steps.call(attention_kernel(part.module, attention, scores, values, direct), [*reads, *ready], [steps.result()])


@register_solution
class AttentionInPlace(OneKernel):
    """A few queries: keys and values where they are, no matrix of scores."""

    name = "attention in place"
    anchors = frozenset({"attention"})
    rank = 1

    def applies(self, problem: Problem) -> str:
        rows = _attention(problem).scores.result().shape[-2]
        return "" if isinstance(rows, int) and rows <= FEW else "there may be more than a few queries"

    def kernel(self, problem: Problem) -> Kernel:
        return attention_in_place(problem.module, _attention(problem))


def _attention(problem: Problem) -> Attention:
    return find_attentions(problem.module)[0]
