"""Products with weights that stay in codes of 2, 4 or 8 bits: their bytes are what memory must bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Value
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen.blocks import at_most
from argosy.targets.gpu.codegen.coded import CodedRight, pack_codes
from argosy.targets.gpu.codegen.coded_rows import RowsBlock, coded_rows_kernel
from argosy.targets.gpu.codegen.dot_shape import shape_of
from argosy.targets.gpu.codegen.product import dot_kernel
from argosy.targets.gpu.solution import Problem, Solution, Steps, register_solution
from argosy.targets.gpu.solutions.products import product_size, product_way, temporaries
from argosy.targets.gpu.solutions.tiles import tiles
from argosy.targets.lowering.accesses import DeclinedError, present

__all__ = ["CodedProduct"]

_FEW: Final = 4
"""Rows that are multiplied without matrix instructions: for so few, memory is what takes the time."""
_IN_FLIGHT: Final = 64
"""Bytes that a thread loads at once."""


@register_solution
class CodedProduct(Solution):
    """A product with packed codes, which are made into numbers where they are multiplied."""

    name = "coded product"
    anchors: ClassVar = frozenset({"dot"})
    rank = 1

    def applies(self, problem: Problem) -> str:
        anchor = problem.anchor_instruction
        left, right = present(anchor, 0), present(anchor, 1)
        if right.rank != 2 or not left.dtype.is_float or anchor.result().dtype.compute is not FLOAT32:
            return "the right operand is no matrix that a float is multiplied with"
        try:
            coded = CodedRight.of(right)
        except DeclinedError as declined:
            return str(declined)
        if product_way(problem) is None or left.shape[-1] != coded.depth:
            return "its inner axis is symbolic"
        return ""

    def configs(self, problem: Problem) -> Sequence[Any]:
        anchor, arch = problem.anchor_instruction, problem.arch
        shape, way, coded = shape_of(anchor), product_way(problem), CodedRight.of(present(anchor, 1))
        if way is None:
            return ()
        found: list[Any] = []
        if isinstance(shape.rows, int) and shape.rows <= _FEW:
            columns = at_most(coded.columns, 16 if coded.columns >= 64 * (arch.units or 64) else 8)
            for warps in (4, 2):
                held = warps * arch.wave_size * _IN_FLIGHT // coded.stretch
                found.append(RowsBlock(columns, min(at_most(coded.units, 64), max(held // columns, 1)), warps))
        size = product_size(problem, way, shape.rows, shape.columns, shape.inner, product(shape.batch), 1)
        seen = set()
        for tile in tiles(size, arch):
            even = coded.units % tile.splits == 0
            own = replace(tile, inner=coded.unit, splits=tile.splits if even else 1)
            if own not in seen:
                seen.add(own)
                found.append(own)
        return found

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        module, anchor, way = problem.module, problem.anchor_instruction, product_way(problem)
        coded = CodedRight.of(present(anchor, 1))
        places = {parameter: place for place, parameter in enumerate(module.parameters)}
        own = places[coded.codes.instruction]
        if not steps.is_weight(own):
            raise DeclinedError("the codes come from the run")
        orders, reads = list(problem.orders), [0] * len(places)
        for parameter, place in places.items():
            if place == own:
                orders[place] = None
                reads[place] = steps.prepared(pack_codes(coded), [steps.ordered(place, None)], coded.packed)
            elif self._is_turned(coded, parameter.result()) and steps.is_weight(place):
                orders[place] = (1, 0)  # columns beside each other
                reads[place] = steps.ordered(place, orders[place])
            else:
                reads[place] = steps.operand(place)
        weights = [steps.is_weight(place) for place in places.values()]
        extra: list[int] = []
        if isinstance(config, RowsBlock):
            kernel = coded_rows_kernel(module, anchor, orders, problem.order, config, coded, weights)
        else:
            kernel = dot_kernel(
                module, anchor, orders, problem.order, config, way, weights, coded=coded,
                tf32=problem.options.allow_tf32,
            )  # fmt: skip
            extra = [] if way is None else temporaries(config, kernel, way.sums, steps)
        steps.launch(kernel, reads, [*extra, steps.result(0, problem.order)])

    @staticmethod
    def _is_turned(coded: CodedRight, value: Value) -> bool:
        """Whether it is a parameter of blocks whose columns are its rows."""
        return coded.turned and value.rank > 1 and value in (coded.scale, coded.zero)
