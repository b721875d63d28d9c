"""Large products and convolutions on devices with a copy engine and matrix instructions of warp groups.

A model of their time, fitted to 4 products and 26 convolutions on an H200 (fp16, 5 to 7 tiles each; its first choice
loses 1 % to the best): of the two groups one multiplies while the other does what follows its sums,

    begin + rounds * max(main, after) + min(main, after),
    main = steps * max(flops / F, bytes / B),    after = turn + elements * epilogue

where `rounds` are the tiles of a program; and no less than what moves to memory and back takes. Where tiles fill the
device twice this is faster than plain ones; else, and where functions follow the sums, where the models say so.

Functions that follow the sums are not hidden so: a group that computes them keeps the other from feeding the matrix
units (GELU: 12 rounds of 64 x 128 take 4.0 µs each, main is 2.7, after 1.3). They are written out for each result of a
thread, once for each group, which is more code than a unit keeps; between other kernels it is fetched anew in each
launch: with 46, 92 and 128 KB of it a product takes 4, 11 and 25 µs longer in BERT than in a row of its like.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from argosy.ops.convolution import Conv
from argosy.targets.gpu.arches.row import GpuArch
from argosy.targets.gpu.codegen.dot_shape import shape_of
from argosy.targets.gpu.codegen.operands import MatrixWay
from argosy.targets.gpu.codegen.pipelined import DEEP, PipelinedTile
from argosy.targets.gpu.codegen.pipelined_forms import pipelined_convolution, pipelined_product, read_whole
from argosy.targets.gpu.solution import Order, Problem, Solution, Steps, register_solution
from argosy.targets.gpu.solutions.products import convolution_size, dot_size, product_way
from argosy.targets.gpu.solutions.tiles import ProductSize, tile_time, tiles
from argosy.targets.gpu.solutions.windows import last_channels
from argosy.targets.lowering.accesses import present

__all__ = ["PipelinedConvolution", "PipelinedProduct", "multiplies_groups", "pipelined_tiles"]

_LEFT: Final = 2 * 1024
"""Bytes of shared memory that are no tiles: barriers, and what starts of tiles are rounded up by."""
_MOST_STAGES: Final = 8
_LEAST: Final = 64 * 128 * 0.7
"""Results for each unit of the device from which on tiles fill it."""
_SURELY: Final = 2
"""How often tiles fill a device from which on pipelined ones are taken whatever the models say."""
_LONG: Final = 8 * DEEP
"""Places of the inner axis from which on tiles that follow no others have enough to do."""
_SHAPES: Final = ((64, (128, 64)), (64, (128,)), (128, (64,)), (128, (128,)), (64, (256,)), (64, (64,)))
"""Rows of tiles, and their columns."""
_SHORT: Final = 2
"""Bytes of an element."""
# In microseconds, on an H200, and shares as in `tiles`.
_BEGIN: Final = 1.5
_TURN: Final = 0.4
_EPILOGUE: Final = 5e-5
_REACHED: Final = 0.75
_CACHED: Final = 3.0
_MOVED: Final = 0.7
"""The share of the data sheet's bandwidth that memory reaches."""
_SEEN: Final = 0.75
"""The share of `after` that is not hidden where it computes functions."""
_KEPT: Final = 32.0
_FETCHED: Final = 0.15
"""KB of code that are kept, and what each further one takes."""
_FUNCTION: Final = 23 * 16 / 1024
"""KB of code for a result on which functions are computed."""
_GROUP: Final = 128
"""Threads of a group."""


def pipelined_tiles(size: ProductSize, arch: GpuArch) -> list[PipelinedTile]:
    """Tiles that fill the columns and fit into shared memory, the fastest first."""
    found = []
    for high, widths in _SHAPES:
        wide = sum(widths)
        room = arch.shared_memory_per_block - _LEFT - 2 * high * wide * _SHORT
        stages = min(room // (DEEP * (high + wide) * _SHORT), _MOST_STAGES)
        if size.columns % wide == 0 and stages >= 2:
            found.append(PipelinedTile(high, widths, stages))
    return sorted(found, key=lambda tile: _time(tile, size, arch))


def _made(tile: PipelinedTile, size: ProductSize) -> int:
    return -(-size.rows * size.batch // tile.rows) * (size.columns // tile.columns)


def _time(tile: PipelinedTile, size: ProductSize, arch: GpuArch) -> float:
    """Microseconds."""
    units, peak, bandwidth = arch.units or 1, arch.product.peak(size.kind), arch.product.bandwidth
    if not peak or not bandwidth:
        return float("inf")
    work = 2 * tile.rows * tile.columns * DEEP / (peak * _REACHED / units)
    copied = (tile.rows + tile.columns) * DEEP * _SHORT / (bandwidth * _CACHED / units)
    main = size.inner / DEEP * max(work, copied) * 1e6
    after = _TURN + tile.rows * tile.columns * _EPILOGUE * size.weight
    main += _SEEN * after if size.has_functions else 0
    rows = size.rows * size.batch
    moved = rows * (size.inner / size.taps + size.columns * (1 + size.others)) * _SHORT / (bandwidth * _MOVED) * 1e6
    rounds = -(-_made(tile, size) // units)
    code = 2 * tile.rows * tile.columns / _GROUP * _FUNCTION if size.has_functions else 0
    return _BEGIN + max(rounds * max(main, after) + min(main, after), moved) + _FETCHED * max(code - _KEPT, 0)


def multiplies_groups(arch: GpuArch) -> bool:
    """Whether a device has what pipelined kernels are made of."""
    return arch.has("tensor_copy") and any(op.mnemonic.startswith("wgmma") for op in arch.matrix)


def _why_not(problem: Problem, size_of: Callable[[Problem, MatrixWay], ProductSize]) -> str:
    """Why a problem is not done so: the device, the types, sizes, or because another way is faster."""
    arch = problem.arch
    if not (multiplies_groups(arch) and arch.units):
        return "the device has no copy engine beside matrix instructions of warp groups"
    kinds = {present(problem.anchor_instruction, place).dtype.name for place in (0, 1)}
    way = product_way(problem)
    if way is None or kinds not in ({"float16"}, {"bfloat16"}):
        return "its operands are not of 16 bits"
    size = size_of(problem, way)
    if not size.fixed:
        return "its sizes are symbolic"
    filled = size.rows * size.batch * size.columns / (_LEAST * arch.units)
    if filled < 1:
        return "its tiles do not fill the device"
    if filled < _SURELY and size.inner < _LONG:
        return "its inner axis is short, and its tiles fill the device but once"
    found, others = pipelined_tiles(size, arch), tiles(size, arch)
    if not found:
        return "no tiles fill its columns"
    compared = others and (filled < _SURELY or size.has_functions)
    faster = compared and tile_time(others[0], size, arch) <= _time(found[0], size, arch)
    return "plain tiles are faster" if faster else ""


@register_solution
class PipelinedProduct(Solution):
    """A product whose steps are copied by one warp and multiplied by two groups in turn."""

    name = "pipelined product"
    anchors: ClassVar = frozenset({"dot"})
    rank = 1

    def applies(self, problem: Problem) -> str:
        shape = shape_of(problem.anchor_instruction)
        if shape.row_axis is None or present(problem.anchor_instruction, 1).rank != 2:
            return "its right operand is no matrix"
        return _why_not(problem, dot_size)

    def prefers(self, problem: Problem, index: int) -> Order:
        if not multiplies_groups(problem.arch):
            return None
        found = read_whole(present(problem.anchor_instruction, 0))
        return found[1] if found is not None and found[0] is problem.module.parameters[index] else None

    def configs(self, problem: Problem) -> Sequence[Any]:
        way = product_way(problem)
        return () if way is None else pipelined_tiles(dot_size(problem, way), problem.arch)

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        kernel = pipelined_product(
            problem.module, problem.anchor_instruction, problem.orders, problem.order, config, problem.arch.units or 1
        )
        reads = [steps.operand(index) for index in range(len(problem.module.parameters))]
        steps.launch(kernel, reads, [steps.result(0, problem.order)])


@register_solution
class PipelinedConvolution(Solution):
    """A convolution in the same way, whose patches the copy engine gathers."""

    name = "pipelined convolution"
    anchors: ClassVar = frozenset({"conv"})
    rank = 1

    def applies(self, problem: Problem) -> str:
        op, x = problem.anchor_instruction.op, present(problem.anchor_instruction, 0)
        if not isinstance(op, Conv) or op.group != 1 or x.rank != 4 or not isinstance(x.shape[1], int):
            return "it is no convolution of images in one group"
        return "steps do not fill its channels" if x.shape[1] % DEEP else _why_not(problem, convolution_size)

    def prefers(self, problem: Problem, index: int) -> Order:
        return last_channels(problem, index)

    def configs(self, problem: Problem) -> Sequence[Any]:
        way = product_way(problem)
        return () if way is None else pipelined_tiles(convolution_size(problem, way), problem.arch)

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        anchor, module = problem.anchor_instruction, problem.module
        weight = present(anchor, 1)
        orders = list(problem.orders)
        reads: list[int] = []
        for index, parameter in enumerate(module.parameters):
            if parameter is weight.instruction and steps.is_weight(index):
                orders[index] = (2, 3, 1, 0)
                reads.append(steps.ordered(index, orders[index]))
            else:
                reads.append(steps.operand(index))
        kernel = pipelined_convolution(module, anchor, orders, problem.order, config, problem.arch.units or 1)
        steps.launch(kernel, reads, [steps.result(0, problem.order)])
