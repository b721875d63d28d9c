"""Attention: two products and the softmax between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from argosy.ir.dim import DimLike, dim_max, dim_min
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Module, Value
from argosy.ir.types import TensorType
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

__all__ = ["AttentionByRun", "AttentionInPlace", "TiledAttention"]


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
        _tiled(problem, steps)


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


@register_solution
class AttentionByRun(Solution):
    """A few queries or many, as the run will tell: calls for both, of which one has chunks to do."""

    name = "attention by run"
    anchors = frozenset({"attention"})
    rank = 1

    def applies(self, problem: Problem) -> str:
        rows = _attention(problem).scores.result().shape[-2]
        return "it is known how many queries there are" if isinstance(rows, int) else ""

    def lower(self, problem: Problem, config: None, steps: Steps) -> None:
        del config
        rows = _attention(problem).scores.result().shape[-2]
        many = dim_min(dim_max(rows - FEW, 0), 1)
        kernel = attention_in_place(problem.module, _attention(problem))
        reads = [steps.operand(index) for index in range(len(problem.module.parameters))]
        steps.call(replace(kernel, chunks=kernel.chunks * (1 - many)), reads, [steps.result()])
        _tiled(problem, steps, many)


def _tiled(problem: Problem, steps: Steps, times: DimLike = 1) -> None:
    """The steps of tiled attention; `times` is 0 in a run that does without."""
    module, attention = problem.module, _attention(problem)
    tile = tile_for(problem.arch, FLOAT32, 2 * BLOCK)
    scores, values = (Gemm(anchor, tile, plain(FLOAT32)) for anchor in (attention.scores, attention.product))
    direct = direct_step(module, scores)

    def packed(operand: Value, gemm: Gemm, pack: Callable[[Module, Gemm], Kernel], kind: TensorType) -> int:
        part = part_of(module, [operand])
        if all(steps.is_weight(index) for index in part.parameters):
            return packed_operand(steps, part, gemm, pack, kind)

        def some(part: Module, gemm: Gemm) -> Kernel:
            kernel = pack(part, gemm)
            return replace(kernel, chunks=kernel.chunks * times)

        dims = (kind.shape[0] * times, *kind.shape[1:])
        return packed_operand(steps, part, gemm, some, TensorType(kind.dtype, dims))

    ready = [packed(gemm.right, gemm, pack_right, right_type(gemm)) for gemm in (scores, values)]
    if direct is None:
        ready.append(packed(scores.left, scores, pack_left, left_type(scores)))
    changed = attention.softmax.operands[0]
    wanted = [module.results[0], values.left, *([] if changed is None else [changed])]
    wanted += [] if direct is None else [scores.left]
    part = part_of(module, wanted, {scores.anchor, attention.softmax, values.anchor})
    reads = [steps.operand(index) for index in part.parameters]
    kernel = attention_kernel(part.module, attention, scores, values, direct)
    steps.call(replace(kernel, chunks=kernel.chunks * times), [*reads, *ready], [steps.result()])


def _attention(problem: Problem) -> Attention:
    return find_attentions(problem.module)[0]
