"""Grid sampling: the weights of all neighbours of a place are computed once for all channels."""

from __future__ import annotations

from typing import Any

from argosy.ir.dtype import FLOAT64, DType
from argosy.ir.module import Module
from argosy.ops.sampling import GridSample
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.kernel import Kernel, chunk_count
from argosy.targets.cpu.codegen.op_kernel import OpKernel
from argosy.targets.cpu.lone_op import LoneOp
from argosy.targets.cpu.solution import Problem, Steps, register_solution
from argosy.targets.lowering.accesses import op_of

__all__ = ["GridSamples"]

_TAPS = {"nearest": 1, "linear": 2, "cubic": 4}
_CUBIC_A = -0.75
_EXACT_BITS = 53


@register_solution
class GridSamples(LoneOp):
    """A loop over places; inside, one over channels."""

    name = "grid samples"
    anchors = frozenset({"grid_sample"})

    def applies(self, problem: Problem) -> str:
        declined = super().applies(problem)
        if declined:
            return declined
        (instruction,) = problem.module.instructions
        dtype = problem.module.results[0].dtype
        if dtype.kind == "complex":
            return "the loop adds up real numbers"
        if op_of(instruction, GridSample).mode == "nearest" and dtype.is_integer and dtype.bits > _EXACT_BITS:
            return f"the loop computes in float64, which does not hold every {dtype}"
        return ""

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        self.call(problem, steps, _grid_sample(problem.module))


def _grid_sample(module: Module) -> Kernel:
    kernel = OpKernel(module, [module.results[0].dtype])
    text, op = kernel.text, op_of(kernel.instruction, GridSample)
    x, grid = kernel.operand(0), kernel.operand(1)
    spatial, outputs = x.shape[2:], grid.shape[1:-1]
    rank, taps = len(spatial), _TAPS[op.mode]
    wide = x.dtype.compute if x.dtype.is_float else FLOAT64
    kind, points = scalar.compute_type(wide), grid.dtype.compute
    sizes = [text.let("int64", text.dim(size)) for size in spatial]
    places = text.let("int64", kernel.count(outputs))
    channels, plane = text.let("int64", kernel.dim(0, 1)), text.let("int64", kernel.count(spatial))
    empty = f"{channels} * {plane} == 0"
    with kernel.share("at", f"{kernel.dim(0, 0)} * {places}"):
        text.line(f"const int64 image = at / {places}, spot = at % {places};")
        for axis in range(rank):
            # the last axis comes first in the grid
            raw = kernel.load(1, f"at * {rank} + {rank - 1 - axis}")
            text.line(f"int64 index{axis}[{taps}]; {points} weight{axis}[{taps}];")
            _axis_taps(kernel, op, axis, raw, sizes[axis], points)
        combinations = taps**rank
        text.line(f"int64 source[{combinations}]; {kind} factor[{combinations}];")
        with text.loop("n", "0", str(combinations)):
            text.line("int64 left = n, place = 0, step = 1;")
            text.line(f"{points} weight = 1;")
            for axis in reversed(range(rank)):
                text.line(f"place += index{axis}[left % {taps}] * step; step *= {sizes[axis]};")
                text.line(f"weight *= weight{axis}[left % {taps}]; left /= {taps};")
            text.line(f"source[n] = place; factor[n] = ({kind})weight;")
        with text.loop("channel", "0", channels):
            text.line(f"const int64 base = (image * {channels} + channel) * {plane};")
            text.line(f"{kind} total = 0;")
            with text.loop("n", "0", f"{empty} ? 0 : {combinations}"):
                value = kernel.load(0, "base + source[n]")
                # an element that does not count may be infinite
                text.line(f"total += factor[n] == 0 ? 0 : ({kind}){value} * factor[n];")
            result = scalar.apply("convert", ["total"], [wide], x.dtype) if wide is not x.dtype.compute else "total"
            text.line(kernel.store(0, x.dtype, f"(image * {channels} + channel) * {places} + spot", result))
    work = product(module.results[0].shape) * taps**rank
    return kernel.kernel(chunk_count(work, product(outputs) * x.shape[0]))


def _axis_taps(kernel: OpKernel, op: GridSample, axis: int, raw: str, size: str, points: DType) -> None:
    """Fill `index` and `weight` of an axis: where to read, and how much it counts."""
    text, kind = kernel.text, scalar.compute_type(points)
    low, high = ("0", f"({size} - 1)") if op.align_corners else ("-0.5", f"({size} - 0.5)")
    edges = f"({kind}){low}, ({kind}){high}"
    point = text.let(kind, raw)
    unit = (
        f"({point} + 1) / 2 * ({kind})({size} - 1)" if op.align_corners else f"(({point} + 1) * ({kind}){size} - 1) / 2"
    )
    place = text.let(kind, unit)
    if op.mode == "nearest":
        place = text.let(kind, f"__builtin_elementwise_roundeven({place})")
    if op.padding == "reflection":
        place = text.let(kind, f"reflect_{points}({place}, {edges})")
    # elements beyond the border are looked up one by one; far off all are alike, NaN is place 0
    place = text.let(kind, f"{place} != {place} ? 0 : {place} < -8 ? -8 : {place} > {size} + 8 ? {size} + 8 : {place}")
    base = text.let(kind, f"__builtin_elementwise_floor({place})")
    t, whole = text.let(kind, f"{place} - {base}"), text.let("int64", f"(int64){base}")
    match op.mode:
        case "nearest":
            weights, first = ["1"], 0
        case "linear":
            weights, first = [f"1 - {t}", t], 0
        case _:
            a = scalar.constant(_CUBIC_A, FLOAT64)
            distances = (f"{t} + 1", t, f"1 - {t}", f"2 - {t}")
            weights, first = [f"({kind})cubic_weight({distance}, {a})" for distance in distances], -1
    for tap, weight in enumerate(weights):
        index = text.let("int64", f"{whole} + {first + tap}")
        inside = f"clamp_int64({index}, 0, {size} - 1)"
        if op.padding == "zeros":
            weight = f"{index} < 0 || {index} >= {size} ? 0 : {weight}"  # noqa: PLW2901 - the weight with its guard
        elif op.padding == "reflection":
            low64, high64 = f"(float64){low}", f"(float64){high}"
            inside = f"clamp_int64((int64)reflect_float64((float64){index}, {low64}, {high64}), 0, {size} - 1)"
        text.line(f"index{axis}[{tap}] = {inside}; weight{axis}[{tap}] = {weight};")
