"""Transposed convolutions by columns: a matrix product, or few channels made in passing, and sums of what overlaps."""

from __future__ import annotations

from typing import Any, Final

from argosy.ir.builder import Builder
from argosy.ir.dim import DimLike
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Parameter, Value
from argosy.ops.matmul import Dot
from argosy.ops.view import Reshape, Transpose
from argosy.targets.cpu.codegen.column_sums import Columns, sum_columns
from argosy.targets.cpu.codegen.part import append, part_of
from argosy.targets.cpu.codegen.reorder import to_planar
from argosy.targets.cpu.codegen.tile import BLOCK
from argosy.targets.cpu.layout import Planar
from argosy.targets.cpu.solution import Problem, Solution, Steps, register_solution
from argosy.targets.cpu.solutions.blocked_steps import packed, packed_bias
from argosy.targets.cpu.solutions.inner_steps import lower_inner
from argosy.targets.lowering.accesses import DeclinedError, present

__all__ = ["ColumnConvolution", "NarrowColumnConvolution"]

_NARROW: Final = 12
"""Outputs of a group up to which blocks of them are mostly padding."""


@register_solution
class ColumnConvolution(Solution):
    """Every pixel times all weights, then sums of what meets at a place; image and result are row-major."""

    name = "transposed convolution by columns"
    anchors = frozenset({"conv_transpose"})

    def applies(self, problem: Problem) -> str:
        anchor = problem.anchor_instruction
        kinds = [value.dtype for value in (*anchor.operands, anchor.result()) if value is not None]
        if any(kind.compute is not FLOAT32 for kind in kinds):
            return f"there are no tiles of {', '.join(map(str, kinds))}"
        try:
            Columns.of(anchor)
        except DeclinedError as declined:
            return str(declined)
        return ""

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        module, anchor = problem.module, problem.anchor_instruction
        columns = Columns.of(anchor)
        x, weight = present(anchor, 0), present(anchor, 1)
        turned = isinstance(columns.pixels, int) and columns.pixels < BLOCK
        if columns.in_passing:
            reads = [_row_major(steps, problem, value) for value in (x, weight)]
        else:
            reads = [_product(problem, steps, columns, x, weight, turned=turned)]
        bias = anchor.operands[2] if len(anchor.operands) > 2 else None
        if bias is not None:
            reads.append(packed_bias(steps, module, bias, anchor.result().rank))
        rest = part_of(module, [module.results[0]], {anchor})
        kernel = sum_columns(rest.module, anchor, columns, turned=turned)
        steps.call(kernel, [*(steps.operand(index) for index in rest.parameters), *reads], [steps.result()])


@register_solution
class NarrowColumnConvolution(ColumnConvolution):
    """The same before blocks of channels, where those would be mostly padding."""

    name = "transposed convolution by narrow columns"
    rank = 2

    def applies(self, problem: Problem) -> str:
        if why := super().applies(problem):
            return why
        columns = Columns.of(problem.anchor_instruction)
        few = isinstance(columns.pixels, int) and columns.pixels < BLOCK // 2
        return "" if columns.each <= _NARROW or few else "blocks of its channels are full"


def _row_major(steps: Steps, problem: Problem, value: Value) -> int:
    """The buffer of a value of an op as row-major float32."""
    if isinstance(value.instruction.op, Parameter) and value.dtype is FLOAT32:
        return steps.operand(problem.module.parameters.index(value.instruction))
    part, layout = part_of(problem.module, [value]), Planar(((0, 0),) * (value.rank - 2))
    return packed(steps, part, to_planar(part.module, layout), layout.kind(value.shape))


def _product(problem: Problem, steps: Steps, columns: Columns, x: Value, weight: Value, *, turned: bool) -> int:
    """The buffer of the columns: weights times pixels; of few pixels, `turned`, pixels times weights."""
    part = part_of(problem.module, [x, weight])
    build = Builder("columns")
    values: dict[Value, Value] = {}
    append(build, part.module, values)
    image: tuple[DimLike, ...] = (x.shape[0], columns.group, columns.channels, columns.pixels)
    right = build.add(Reshape(image), values[x])
    left = build.add(Reshape((columns.group, columns.channels, columns.rows)), values[weight])
    if turned:
        result = build.add(Dot(FLOAT32), build.add(Transpose((0, 1, 3, 2)), right), left)
    else:
        result = build.add(Dot(FLOAT32), build.add(Transpose((0, 2, 1)), left), right)
    return lower_inner(build.module({"y": result}), result.instruction, problem, steps, part.parameters)
