"""Convolutions along the lines of planar images: for groups of few channels, and few outputs."""

from __future__ import annotations

import math
from typing import Any, Final

from argosy.ir.dim import Dim
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Parameter
from argosy.ir.types import Dims
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen.conv_window import Window, source_of
from argosy.targets.cpu.codegen.convolution_cost import direct_cycles, line_cycles
from argosy.targets.cpu.codegen.depthwise import LONGEST
from argosy.targets.cpu.codegen.line_conv import line_kernel, pack_lines
from argosy.targets.cpu.codegen.line_tiles import Lines, lines_type
from argosy.targets.cpu.codegen.part import part_of
from argosy.targets.cpu.codegen.tile import BLOCK, tile_for
from argosy.targets.cpu.layout import LANES
from argosy.targets.cpu.solution import Problem, Solution, Steps, register_solution
from argosy.targets.cpu.solutions.blocked_steps import packed, packed_bias
from argosy.targets.lowering.accesses import DeclinedError, present

__all__ = ["LineConvolution"]

_BLOCKING: Final = 20
"""Cycles to bring 16 numbers into blocks, or back."""
_COPYING: Final = 10
"""Cycles to copy 16 numbers in their order."""
_MARGIN: Final = 1.25
"""How much faster lines must be: what the neighbours of an op save that stays in blocks is not known."""
_PIXELS: Final = 28


@register_solution
class LineConvolution(Solution):
    """Vectors of neighbouring pixels times single weights; image and result are row-major."""

    name = "line convolution"
    anchors = frozenset({"conv"})
    rank = 4

    def applies(self, problem: Problem) -> str:
        anchor = problem.anchor_instruction
        kinds = [value.dtype for value in (*anchor.operands, anchor.result()) if value is not None]
        if any(kind.compute is not FLOAT32 for kind in kinds):
            return f"there are no lines of {', '.join(map(str, kinds))}"
        try:
            lines = Lines.of(Window.of(anchor), problem.arch)
        except DeclinedError as declined:
            return str(declined)
        pixels = product(lines.window.result[2:])
        if isinstance(pixels, int) and pixels < BLOCK:
            return "its image is smaller than a vector"
        return self._costs(problem, lines, blocked_result=False)

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        module, anchor = problem.module, problem.anchor_instruction
        lines = Lines.of(Window.of(anchor), problem.arch)
        if steps.wanted() is not None and (why := self._costs(problem, lines, blocked_result=True)):
            raise DeclinedError(why)
        weight, x = present(anchor, 1), source_of(anchor)
        part = part_of(module, [weight])
        temporaries = [packed(steps, part, pack_lines(part.module, weight, lines), lines_type(lines))]
        bias = anchor.operands[2] if len(anchor.operands) > 2 else None
        if bias is not None:
            temporaries.append(packed_bias(steps, module, bias, anchor.result().rank))
        part = part_of(module, [module.results[0], x], {anchor})
        reads = [steps.operand(index) for index in part.parameters]
        steps.call(line_kernel(part.module, anchor, x, lines), [*reads, *temporaries], [steps.result()])

    def _costs(self, problem: Problem, lines: Lines, *, blocked_result: bool) -> str:
        """Why blocks are better; empty where lines are. `blocked_result` says that the readers want it in blocks."""
        anchor = problem.anchor_instruction
        window, x = lines.window, source_of(anchor)
        image, made = _vectors(window.source), _vectors(window.result)
        index = problem.module.parameters.index(x.instruction) if isinstance(x.instruction.op, Parameter) else None
        lies_blocked = index is not None and bool(problem.layouts) and problem.layouts[index] is not None
        mine = line_cycles(lines, problem.arch) + _COPYING * image
        mine += _BLOCKING * (image * lies_blocked + made * blocked_result)
        blocks = _blocked_cycles(window, problem)
        blocks += _BLOCKING * (image * (not lies_blocked) + made * (not blocked_result))
        return f"it takes about {mine} cycles, in blocks {blocks}" if blocks <= mine * _MARGIN else ""


def _vectors(shape: Dims) -> int:
    return math.prod(_PIXELS if isinstance(size, Dim) else size for size in shape) // BLOCK


def _blocked_cycles(window: Window, problem: Problem) -> int:
    """Cycles of the better of the ways to convolve images in blocks."""
    arch = problem.arch
    if window.group > 1 and window.group == window.source[1] == window.result[1] and window.kernel[-1] <= LONGEST:
        vectors = _vectors((window.result[0], -(-window.group // LANES) * LANES, *window.result[2:]))
        return vectors * math.prod(window.kernel) * max(1, BLOCK * 32 // arch.vector_bits) // arch.multiply_adds
    return direct_cycles(window, tile_for(arch, FLOAT32, window.result[1]), arch)
