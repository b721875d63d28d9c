"""Scatter: a copy of the data, then the updates one by one, so that of several for one element the last counts."""

from __future__ import annotations

from typing import Any

from argosy.ir.dtype import DType
from argosy.ir.module import Instruction, Module
from argosy.ir.types import TensorType
from argosy.ops.scatter import ScatterElements, ScatterND
from argosy.ops.shapes import normalize_axis, product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.kernel import Kernel, chunk_count
from argosy.targets.cpu.codegen.op_kernel import OpKernel, dot_text
from argosy.targets.cpu.codegen.reduction import fold_step
from argosy.targets.cpu.lone_op import LoneOp
from argosy.targets.cpu.solution import Problem, Steps, register_solution
from argosy.targets.lowering.accesses import DeclinedError

__all__ = ["ScatterLoops"]

_FOLDS = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}


@register_solution
class ScatterLoops(LoneOp):
    """Short floats are combined in float32 and rounded once, in a buffer of their own."""

    name = "scatter loops"
    anchors = frozenset({"scatter_elements", "scatter_nd"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        (scatter,) = problem.module.instructions
        result = scatter.result()
        wide = result.dtype.compute if _reduction(scatter) != "none" else result.dtype
        target = steps.result() if wide is result.dtype else steps.temporary(TensorType(wide, result.shape))
        self.call(problem, steps, _copy(problem.module, wide), writes=[target])
        self.call(problem, steps, _updates(problem.module, wide), writes=[target])
        if wide is not result.dtype:
            self.call(problem, steps, _rounded(problem.module, wide), [target])


def _reduction(scatter: Instruction) -> str:
    if isinstance(scatter.op, (ScatterElements, ScatterND)):
        return scatter.op.reduction
    raise DeclinedError(f"{scatter.op.name} is no scatter")


def _copy(module: Module, wide: DType) -> Kernel:
    kernel = OpKernel(module, [wide])
    x = kernel.operand(0)
    with kernel.share("i", kernel.count(x.shape)):
        kernel.text.line(kernel.store(0, wide, "i", kernel.load(0, "i")))
    return kernel.kernel(chunk_count(product(x.shape), product(x.shape)))


def _rounded(module: Module, wide: DType) -> Kernel:
    result = module.results[0]
    kernel = OpKernel(module, [result.dtype], [wide])
    with kernel.share("i", kernel.count(result.shape)):
        kernel.text.line(kernel.store(0, result.dtype, "i", scalar.load(wide, "temporary0", "i")))
    return kernel.kernel(chunk_count(product(result.shape), product(result.shape)))


def _updates(module: Module, wide: DType) -> Kernel:
    kernel = OpKernel(module, [wide])
    (scatter,) = module.instructions
    if isinstance(scatter.op, ScatterElements):
        _elements(kernel, scatter.op, wide)
    else:
        _slices(kernel, wide)
    return kernel.kernel(1)


def _elements(kernel: OpKernel, op: ScatterElements, wide: DType) -> None:
    x, indices = kernel.operand(0), kernel.operand(1)
    axis = normalize_axis(op.axis, x.rank)
    _check_shapes(kernel, list(range(x.rank)), kernel.operand(2).shape)
    with kernel.text.loop("i", "0", kernel.count(indices.shape)):
        places = kernel.counters("i", indices.shape, "c")
        for number, place in enumerate(places):
            if number != axis:
                outside = f"{place} >= {kernel.dim(0, number)}"
                kernel.text.line(f"if ({outside}) {{ argosy_fail(scratch, ARGOSY_INDEX, {place}); return; }}")
        places[axis] = _index(kernel, "i", kernel.dim(0, axis))
        _write(kernel, dot_text(places, kernel.strides(x.shape)), "i", op.reduction, wide)


def _slices(kernel: OpKernel, wide: DType) -> None:
    x, indices = kernel.operand(0), kernel.operand(1)
    depth = indices.shape[-1]
    if not isinstance(depth, int):
        raise DeclinedError("the depth of the indices is known only when the program runs")
    steps = kernel.strides(x.shape)
    inner = kernel.text.let("int64", kernel.count(x.shape[depth:]))
    with kernel.text.loop("i", "0", kernel.count(indices.shape[:-1])):
        places = [_index(kernel, f"i * {depth} + {level}", kernel.dim(0, level)) for level in range(depth)]
        base = kernel.text.let("int64", dot_text(places, steps[:depth]))
        with kernel.text.loop("j", "0", inner):
            _write(kernel, f"{base} + j", f"i * {inner} + j", _reduction(kernel.instruction), wide)


def _check_shapes(kernel: OpKernel, axes: list[int], updates: tuple[Any, ...]) -> None:
    for axis in axes:
        left, right = kernel.dim(1, axis), kernel.text.dim(updates[axis])
        if left != right:
            kernel.text.line(f"if ({left} != {right}) {{ argosy_fail(scratch, ARGOSY_SHAPES, {axis}); return; }}")


def _index(kernel: OpKernel, at: str, size: str) -> str:
    place = kernel.text.let("int64", f"(int64){kernel.load(1, at)}")
    # nothing is written for an index that is out of range
    kernel.text.line(
        f"if ({place} < -{size} || {place} >= {size}) {{ argosy_fail(scratch, ARGOSY_INDEX, {place}); return; }}"
    )
    return kernel.text.let("int64", f"{place} + ({place} < 0 ? {size} : 0)")


def _write(kernel: OpKernel, to: str, at: str, reduction: str, wide: DType) -> None:
    place = kernel.text.let("int64", to)
    value = kernel.load(2, at)
    if reduction != "none":
        held = kernel.text.let(scalar.compute_type(wide), scalar.load(wide, kernel.result(), place))
        update = kernel.text.let(scalar.compute_type(wide), value)
        value = fold_step(_FOLDS[reduction], held, update, wide)
    kernel.text.line(kernel.store(0, wide, place, value))
