"""Ops that keep as many elements as the data says: counted, then picked by their positions."""

from __future__ import annotations

from typing import Any, ClassVar

from argosy.ir.dim import DimLike
from argosy.ir.dtype import INT64
from argosy.ir.module import Instruction, Module, Parameter
from argosy.ir.types import TensorType
from argosy.ops.index import Compress, Gather
from argosy.ops.shapes import normalize_axis, product
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.loops import elementwise_kernel
from argosy.targets.gpu.codegen.selecting import (
    blocks_of,
    coordinates_kernel,
    count_kernel,
    offsets_kernel,
    positions_kernel,
)
from argosy.targets.gpu.solution import Problem, Solution, Steps, register_solution
from argosy.targets.lowering.accesses import op_of, present

__all__ = ["CompressPicks", "NonZeroCoordinates", "pick_kernel", "selected"]


def selected(steps: Steps, flags: int, kind: TensorType, count: DimLike, limit: DimLike | None = None) -> int:
    """The buffer with the positions of elements that are not zero: int64[count]. It gives `count` its value."""
    offsets = TensorType(INT64, (blocks_of(kind),))
    counts, before, total = steps.temporary(offsets), steps.temporary(offsets), steps.temporary(TensorType(INT64, (1,)))
    steps.launch(count_kernel(kind, limit), [flags], [counts])
    steps.launch(offsets_kernel(blocks_of(kind)), [counts], [before, total])
    for name, _ in steps.undefined(0):
        steps.define(name, total)
    positions = steps.temporary(TensorType(INT64, (count,)))
    steps.launch(positions_kernel(kind, limit), [flags, before], [positions])
    return positions


@register_solution
class NonZeroCoordinates(Solution):
    """Positions, then their coordinates."""

    name = "nonzero coordinates"
    anchors: ClassVar = frozenset({"nonzero"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        anchor = problem.anchor_instruction
        x, count = present(anchor, 0), anchor.result().shape[1]
        positions = selected(steps, steps.ordered(0, None), x.tensor, count)
        steps.launch(coordinates_kernel(x.shape, count), [positions], [steps.result()])


@register_solution
class CompressPicks(Solution):
    """Positions where the condition holds, then what lies there."""

    name = "compress picks"
    anchors: ClassVar = frozenset({"compress"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        anchor = problem.anchor_instruction
        op, x, flags = op_of(anchor, Compress), present(anchor, 0), present(anchor, 1)
        shape = (product(x.shape),) if op.axis is None else x.shape
        axis = 0 if op.axis is None else normalize_axis(op.axis, x.rank)
        count = anchor.result().shape[axis]
        positions = selected(steps, steps.operand(1), flags.tensor, count, shape[axis])
        kernel = pick_kernel(x.tensor.with_dims(shape), axis, count)
        steps.launch(kernel, [steps.ordered(0, None), positions], [steps.result()])


def pick_kernel(kind: TensorType, axis: int, count: DimLike) -> Kernel:
    """Slices along an axis at positions that are known to be inside."""
    kinds = (kind, TensorType(INT64, (count,)))
    parameters = [
        Instruction(Parameter(own), (), (own,), (None,), (name,)) for own, name in zip(kinds, "xi", strict=True)
    ]
    gather = Gather(axis)
    operands = tuple(parameter.result() for parameter in parameters)
    made = Instruction(gather, operands, gather.result_types(*operands), (None,), ("y",))
    module = Module("pick", tuple(parameters), (made,), (made.result(),), ("y",))
    return elementwise_kernel(module, (None, None), None).labelled("pick")
