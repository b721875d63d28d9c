"""Products and convolutions by matrix instructions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from argosy.ops.shapes import product
from argosy.targets.gpu.codegen.attention import attention_kernel
from argosy.targets.gpu.codegen.blocks import at_most, size_hint
from argosy.targets.gpu.codegen.convolution import conv_kernel, why_no_product
from argosy.targets.gpu.codegen.element import present
from argosy.targets.gpu.codegen.product import Tile, dot_kernel, in_matrix, shape_of
from argosy.targets.gpu.solution import Order, Problem, Solution, Steps, register_solution
from argosy.targets.gpu.solutions.windows import last_channels

__all__ = ["FlashAttention", "MatrixConvolution", "MatrixProduct"]


@dataclass(frozen=True, slots=True)
class _Size:
    """A product as its tiles see it: rows, columns, inner axis, products side by side, type in an arch's words."""

    rows: int
    columns: int
    inner: int
    batch: int
    dtype: str


_DTYPES: Final = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}


def _tiles(problem: Problem, size: _Size) -> list[Tile]:
    """Tiles to try, best first: the largest of which there are enough to fill the device, then smaller ones."""
    units = problem.arch.units or 64
    stages = 3 if problem.arch.has("async_copy") else 2
    found: list[tuple[float, Tile]] = []
    # Without matrix instructions threads hold the operands of a step in registers, beside their sums.
    by_hand = size.dtype == "fp32" or not problem.arch.has(f"matrix_{size.dtype}")
    deep = 32 if by_hand else 64
    inner = max(at_most(size.inner, deep), 16)
    for high in (128, 64, 32, 16):
        for wide in (128, 64, 32, 16):
            if high > max(at_most(size.rows, 128), 16) or wide > max(at_most(size.columns, 128), 16):
                continue
            if by_hand and high * wide > 64 * 64:
                continue
            programs = -(-size.rows // high) * -(-size.columns // wide) * size.batch
            waves = -(-programs // units)
            # A step of a program: its products, or the loading of its operands where that takes longer.
            work = max(high * wide / (1 if min(high, wide) >= 32 else 0.5), 48 * (high + wide))
            found.append((waves * (work * size.inner + 20000), Tile(high, wide, inner, 4, stages)))
    return [tile for _, tile in sorted(found, key=lambda each: each[0])]


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
        shape, left = shape_of(anchor), present(anchor, 0)
        if not in_matrix(left.dtype, present(anchor, 1).dtype):
            high, wide = max(at_most(shape.rows, 32), 1), max(at_most(shape.columns, 64), 1)
            return (Tile(high, wide, 1, 4 if high * wide >= 512 else 1, 1),)
        size = _Size(
            size_hint(shape.rows), size_hint(shape.columns), size_hint(shape.inner), size_hint(product(shape.batch), 1),
            _DTYPES.get(left.dtype.name, "int8"),
        )  # fmt: skip
        return _tiles(problem, size)

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        kernel = dot_kernel(
            problem.module, problem.anchor_instruction, problem.orders, problem.order, config,
            tf32=problem.options.allow_tf32,
        )  # fmt: skip
        reads = [steps.operand(index) for index in range(len(problem.module.parameters))]
        steps.launch(kernel, reads, [steps.result(0, problem.order)])


@register_solution
class MatrixConvolution(Solution):
    """A convolution as a product, without gathering patches."""

    name = "matrix convolution"
    anchors: ClassVar = frozenset({"conv", "conv_transpose"})

    def applies(self, problem: Problem) -> str:
        return why_no_product(problem.anchor_instruction)

    def prefers(self, problem: Problem, index: int) -> Order:
        return last_channels(problem, index)

    def configs(self, problem: Problem) -> Sequence[Any]:
        anchor = problem.anchor_instruction
        result, weight, x = anchor.result(), present(anchor, 1), present(anchor, 0)
        group = getattr(anchor.op, "group", 1)
        places = product((result.shape[0], *result.shape[2:]))
        inner = size_hint(x.shape[1]) // group * size_hint(product(weight.shape[2:]))
        dtype = _DTYPES.get(x.dtype.name, "int8")
        size = _Size(size_hint(places), size_hint(result.shape[1]) // group, inner, group, dtype)
        return _tiles(problem, size)

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        anchor, module = problem.anchor_instruction, problem.module
        weight = present(anchor, 1)
        orders = list(problem.orders)
        reads: list[int] = []
        for index, parameter in enumerate(module.parameters):
            if parameter is weight.instruction and steps.is_weight(index):
                # Taps outermost, then channels: what a tile reads lies together.
                leading = (1, 0) if anchor.op.name == "conv" else (0, 1)
                orders[index] = (*range(2, weight.rank), *leading)
                reads.append(steps.ordered(index, orders[index]))
            else:
                reads.append(steps.operand(index))
        kernel = conv_kernel(module, anchor, orders, problem.order, config, tf32=problem.options.allow_tf32)
        steps.launch(kernel, reads, [steps.result(0, problem.order)])


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
        rows = max(at_most(root.shape[-2], 64), 16)
        found = [Tile(rows, 64, 16, 4, 2), Tile(rows, 32, 16, 4, 2), Tile(16, 32, 16, 4, 1), Tile(16, 16, 16, 2, 1)]
        return [tile for tile in found if tile.rows <= rows]

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        kernel = attention_kernel(
            problem.module, problem.anchor_instruction, problem.orders, problem.order, config,
            tf32=problem.options.allow_tf32,
        )  # fmt: skip
        reads = [steps.operand(index) for index in range(len(problem.module.parameters))]
        steps.launch(kernel, reads, [steps.result(0, problem.order)])
