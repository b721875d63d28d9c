"""Products and convolutions by matrix instructions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from argosy.ir.dim import DimLike
from argosy.ir.dtype import DType
from argosy.ir.types import TensorType
from argosy.ops.pointwise import Pointwise
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen.attention import attention_kernel
from argosy.targets.gpu.codegen.blocks import at_most, size_hint
from argosy.targets.gpu.codegen.convolution import conv_kernel, inner_stretch, why_no_product
from argosy.targets.gpu.codegen.dot_shape import shape_of
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.operands import MatrixWay, matrix_way
from argosy.targets.gpu.codegen.product import dot_kernel
from argosy.targets.gpu.codegen.summing import Tile
from argosy.targets.gpu.solution import Order, Problem, Solution, Steps, register_solution
from argosy.targets.gpu.solutions.tiles import ProductSize, tiles
from argosy.targets.gpu.solutions.windows import last_channels
from argosy.targets.lowering.accesses import DeclinedError, present

__all__ = [
    "FlashAttention", "MatrixConvolution", "MatrixProduct", "convolution_size", "dot_size", "launch_product",
    "product_size", "product_way", "temporaries",
]  # fmt: skip


_DOUBLED: Final = 128 * 128
"""Sums of a tile that take more than a few warps' registers where they lie there twice."""
_ONE_STEP: Final = 128
"""Keys that attention takes in one step where there are no more."""
_FUNCTION: Final = 1.2
_COSTLY: Final = frozenset({"erf", "exp", "tanh", "log", "pow", "sin", "cos"})


def _epilogue(problem: Problem) -> tuple[float, int]:
    """How costly what follows the sums is, where a plain store is 1, and how many tensors of its size it reads.

    It costs more with those, and with functions.
    """
    result = problem.anchor_instruction.result()
    others = sum(parameter.result().shape == result.shape for parameter in problem.module.parameters)
    primitives = {
        step.primitive
        for each in problem.module.instructions
        if isinstance(each.op, Pointwise)
        for step in each.op.formula.steps
    }
    return 1.0 + others + _FUNCTION * bool(primitives & _COSTLY), others


def product_way(problem: Problem) -> MatrixWay | None:
    """How the operands of the anchor are multiplied."""
    anchor = problem.anchor_instruction
    left, right, rough = present(anchor, 0), present(anchor, 1), problem.options.accuracy == "relaxed"
    return matrix_way(left.dtype, right.dtype, anchor.result().dtype, problem.arch, rough=rough)


def product_size(
    problem: Problem, way: MatrixWay, rows: DimLike, columns: DimLike, inner: DimLike, batch: DimLike, taps: int
) -> ProductSize:
    """The product of a problem as its tiles see it."""
    fixed = all(isinstance(size, int) for size in (rows, columns, inner, batch))
    weight, others = _epilogue(problem)
    return ProductSize(
        size_hint(rows), size_hint(columns), size_hint(inner), size_hint(batch, 1), way.width, taps,
        weight, way.kind, fixed, others,
    )  # fmt: skip


def dot_size(problem: Problem, way: MatrixWay) -> ProductSize:
    """The product of a problem whose anchor is a `dot`."""
    shape = shape_of(problem.anchor_instruction)
    return product_size(problem, way, shape.rows, shape.columns, shape.inner, product(shape.batch), 1)


def convolution_size(problem: Problem, way: MatrixWay) -> ProductSize:
    """The product of a problem whose anchor is a convolution."""
    anchor = problem.anchor_instruction
    result, weight, x = anchor.result(), present(anchor, 1), present(anchor, 0)
    group = getattr(anchor.op, "group", 1)
    rows = product((result.shape[0], *result.shape[2:]))
    channels, columns = size_hint(x.shape[1]) // group, size_hint(result.shape[1]) // group
    taps, stretch = inner_stretch(weight.shape[2:], channels)
    return product_size(problem, way, rows, columns, taps * stretch, group, taps)


def temporaries(tile: Tile, kernel: Kernel, sums: DType, steps: Steps) -> list[int]:
    """The buffer for the parts of split sums."""
    if tile.splits == 1:
        return []
    return [steps.temporary(TensorType(sums, (kernel.counters, tile.splits, tile.rows * tile.columns)))]


def launch_product(
    problem: Problem, config: Any, steps: Steps, reads: Sequence[int], weights: Sequence[bool], result: int
) -> None:
    """Append the kernel of a problem whose anchor is a `dot`, from the buffers `reads` into `result`.

    `weights` says which of its parameters are the same in every run.
    """
    way = product_way(problem)
    kernel = dot_kernel(
        problem.module, problem.anchor_instruction, problem.orders, problem.order, config, way, weights,
        tf32=problem.options.allow_tf32,
    )  # fmt: skip
    extra = [] if way is None else temporaries(config, kernel, way.sums, steps)
    steps.launch(kernel, reads, [*extra, result])


@register_solution
class MatrixProduct(Solution):
    """A product in tiles."""

    name = "matrix product"
    anchors: ClassVar = frozenset({"dot"})

    def applies(self, problem: Problem) -> str:
        del problem
        return ""

    def configs(self, problem: Problem) -> Sequence[Any]:
        anchor = problem.anchor_instruction
        way = product_way(problem)
        if way is None:
            shape = shape_of(anchor)
            high, wide = max(at_most(shape.rows, 32), 1), max(at_most(shape.columns, 64), 1)
            return (Tile(high, wide, 1, 4 if high * wide >= 512 else 1, 1),)
        found = tiles(dot_size(problem, way), problem.arch)
        if way.rough:  # sums of a step lie beside those of all
            return [replace(tile, warps=8) if tile.rows * tile.columns >= _DOUBLED else tile for tile in found]
        return found

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        way, right = product_way(problem), present(problem.anchor_instruction, 1)
        orders = list(problem.orders)
        reads: list[int] = []
        for place, parameter in enumerate(problem.module.parameters):
            if parameter is right.instruction and way and way.width == 1 and right.rank > 1 and steps.is_weight(place):
                # Instructions on bytes want neighbours along the inner axis beside each other.
                orders[place] = (*range(right.rank - 2), right.rank - 1, right.rank - 2)
                reads.append(steps.ordered(place, orders[place]))
            else:
                reads.append(steps.operand(place))
        weights = [steps.is_weight(place) for place in range(len(orders))]
        result = steps.result(0, problem.order)
        launch_product(replace(problem, orders=tuple(orders)), config, steps, reads, weights, result)


@register_solution
class MatrixConvolution(Solution):
    """A convolution as a product, without gathering patches."""

    name = "matrix convolution"
    anchors: ClassVar = frozenset({"conv", "conv_transpose"})

    def applies(self, problem: Problem) -> str:
        return why_no_product(problem.anchor_instruction, product_way(problem))

    def prefers(self, problem: Problem, index: int) -> Order:
        return last_channels(problem, index)

    def gives(self, problem: Problem) -> Order:
        return (0, *range(2, problem.anchor_instruction.result().rank), 1)

    def configs(self, problem: Problem) -> Sequence[Any]:
        way = product_way(problem)
        return () if way is None else tiles(convolution_size(problem, way), problem.arch)

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        anchor, module = problem.anchor_instruction, problem.module
        weight, way = present(anchor, 1), product_way(problem)
        if way is None:
            raise DeclinedError("it is no product")
        orders = list(problem.orders)
        reads: list[int] = []
        for index, parameter in enumerate(module.parameters):
            if parameter is weight.instruction and steps.is_weight(index):
                # Taps outermost, then channels: what a tile reads lies together; of bytes, all of the inner axis.
                leading = (1, 0) if anchor.op.name == "conv" else (0, 1)
                taps = range(2, weight.rank)
                orders[index] = (*taps, *leading) if way.width > 1 else (leading[1], *taps, leading[0])
                reads.append(steps.ordered(index, orders[index]))
            else:
                reads.append(steps.operand(index))
        weights = [steps.is_weight(place) for place in range(len(orders))]
        kernel = conv_kernel(
            module, anchor, orders, problem.order, config, way, weights, tf32=problem.options.allow_tf32
        )
        writes = [*temporaries(config, kernel, way.sums, steps), steps.result(0, problem.order)]
        steps.launch(kernel, reads, writes)


@register_solution
class FlashAttention(Solution):
    """Attention with a running softmax."""

    name = "flash"
    anchors: ClassVar = frozenset({"attention"})

    def applies(self, problem: Problem) -> str:
        del problem
        return ""

    def configs(self, problem: Problem) -> Sequence[Any]:
        root = problem.module.results[0]
        rows, keys = max(at_most(root.shape[-2], 64), 16), problem.anchor_instruction.operands[0]
        stages = 3 if problem.arch.has("async_copy") else 2
        found = [
            Tile(rows, 64, 16, 4, stages),
            Tile(rows, 32, 16, 4, 2),
            Tile(16, 32, 16, 4, 1),
            Tile(16, 16, 16, 2, 1),
        ]
        if keys is not None and problem.arch.has("tensor_copy") and at_most(keys.shape[-1], 256) == _ONE_STEP:
            # All keys at once: nothing is rescaled.
            found.insert(0, Tile(rows, _ONE_STEP, 16, 4, 2))
        programs = -(-size_hint(root.shape[-2]) // rows) * size_hint(product(root.shape[:-2]), 1)
        if programs < (problem.arch.units or 64) and keys is not None:  # too few to fill the device: smaller ones
            found.insert(0, Tile(16, max(at_most(keys.shape[-1], 128), 16), 16, 2, 1))
        return [tile for tile in found if tile.rows <= rows]

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        kernel = attention_kernel(
            problem.module, problem.anchor_instruction, problem.orders, problem.order, config,
            tf32=problem.options.allow_tf32,
        )  # fmt: skip
        reads = [steps.operand(index) for index in range(len(problem.module.parameters))]
        steps.launch(kernel, reads, [steps.result(0, problem.order)])
