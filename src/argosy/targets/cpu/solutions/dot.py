"""Matrix products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from argosy.ir.dim import bounds
from argosy.ir.dtype import FLOAT32, UINT8
from argosy.ir.types import TensorType
from argosy.targets.cpu.codegen.gemm import Gemm, gemm_kernel, partial_type
from argosy.targets.cpu.codegen.gemm_packing import direct_step, left_type, pack_left, pack_right, right_type
from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.cpu.codegen.part import Part, part_of
from argosy.targets.cpu.codegen.product_loops import dot_loops
from argosy.targets.cpu.codegen.products import plain
from argosy.targets.cpu.codegen.quantized_gemm import quantized_gemm_kernel
from argosy.targets.cpu.codegen.quantized_panels import QuantizedPanels, pack_codes
from argosy.targets.cpu.codegen.tile import vector_type
from argosy.targets.cpu.solution import OneKernel, Problem, Solution, Steps, register_solution
from argosy.targets.lowering.accesses import DeclinedError

__all__ = ["DotLoops", "QuantizedDot", "TiledDot", "packed_operand"]

_SMALL = 256
"""Products of fewer multiplications than this take less time than to pack their operands."""


@register_solution
class DotLoops(OneKernel):
    """A sum for each element of the result."""

    name = "dot loops"
    anchors = frozenset({"dot"})

    def kernel(self, problem: Problem) -> Kernel:
        return dot_loops(problem.module, problem.anchor_instruction)


@register_solution
class TiledDot(Solution):
    """Packed operands, tiles in registers, what follows on the tiles. Weights are packed once, at load."""

    name = "tiled dot"
    anchors = frozenset({"dot"})
    rank = 1

    def applies(self, problem: Problem) -> str:
        gemm = Gemm.of(problem.anchor_instruction, problem.arch)
        if vector_type(gemm.sums) is None:
            return f"there are no tiles of {gemm.sums}"
        if gemm.right.rank < 2 or gemm.columns == 1:
            return "the right operand is a vector"
        most = bounds(gemm.rows * gemm.depth * gemm.columns)[1]
        if most is not None and most < _SMALL:
            return "it is too small to pack"
        return ""

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        module, gemm = problem.module, Gemm.of(problem.anchor_instruction, problem.arch)
        direct = direct_step(module, gemm)
        packed = [packed_operand(steps, part_of(module, [gemm.right]), gemm, pack_right, right_type(gemm))]
        if direct is None:
            packed.append(packed_operand(steps, part_of(module, [gemm.left]), gemm, pack_left, left_type(gemm)))
        values = [module.results[0]] if direct is None else [module.results[0], gemm.left]
        part = part_of(module, values, {gemm.anchor})
        reads = [steps.operand(index) for index in part.parameters]
        waiting = [steps.temporary(partial_type(gemm))] if gemm.split else []
        steps.call(gemm_kernel(part.module, gemm, direct), [*reads, *packed], [steps.result(), *waiting])


@register_solution
class QuantizedDot(TiledDot):
    """A product with weights that stay in codes of 2, 4 or 8 bits: their bytes are what memory must bring."""

    name = "quantized dot"
    rank = 2

    def applies(self, problem: Problem) -> str:
        gemm = Gemm.of(problem.anchor_instruction, problem.arch)
        if gemm.right.rank != 2 or gemm.products != plain(FLOAT32):
            return "the right operand is no matrix of float32"
        try:
            QuantizedPanels.of(gemm.right, gemm.tile, problem.arch)
        except DeclinedError as declined:
            return str(declined)
        return super().applies(problem)

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        module, gemm = problem.module, Gemm.of(problem.anchor_instruction, problem.arch)
        panels = QuantizedPanels.of(gemm.right, gemm.tile, problem.arch)
        gemm = replace(gemm, coded=panels)
        weights = part_of(module, [value for value in (panels.codes, panels.scale, panels.zero) if value is not None])
        if not all(steps.is_weight(index) for index in weights.parameters):
            raise DeclinedError("the codes come from the run")
        direct = direct_step(module, gemm)
        size = TensorType(UINT8, (panels.panels, panels.records, panels.record))
        packed = [steps.prepared(pack_codes(weights, panels), [steps.operand(i) for i in weights.parameters], size)]
        if direct is None:
            packed.append(packed_operand(steps, part_of(module, [gemm.left]), gemm, pack_left, left_type(gemm)))
        values = [module.results[0]] if direct is None else [module.results[0], gemm.left]
        part = part_of(module, values, {gemm.anchor})
        reads = [steps.operand(index) for index in part.parameters]
        waiting = [steps.temporary(partial_type(gemm))] if gemm.split else []
        kernel = quantized_gemm_kernel(part.module, gemm, panels, direct)
        steps.call(kernel, [*reads, *packed], [steps.result(), *waiting])


def packed_operand(steps: Steps, part: Part, gemm: Gemm, pack: Callable[..., Kernel], kind: TensorType) -> int:
    """The buffer of a packed operand: made once where it comes from weights alone."""
    kernel = pack(part.module, gemm)
    reads = [steps.operand(index) for index in part.parameters]
    if all(steps.is_weight(index) for index in part.parameters):
        return steps.prepared(kernel, reads, kind)
    buffer = steps.temporary(kind)
    steps.call(kernel, reads, [buffer])
    return buffer
