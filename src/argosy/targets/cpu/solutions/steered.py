"""Ops whose operands say at run time how large the results are: one kernel for the sizes, then the op itself."""

from __future__ import annotations

from typing import Any

from argosy.ir import access as maps
from argosy.ir.dim import bounds
from argosy.ir.dtype import INT64
from argosy.ir.module import Instruction, Module, Parameter
from argosy.ir.types import TensorType
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen.kernel import Kernel, KernelWriter
from argosy.targets.cpu.codegen.loops import Nest, copy_code, elementwise_kernel, store_kernel
from argosy.targets.cpu.codegen.result_sizes import ResultSizes, result_sizes
from argosy.targets.cpu.solution import Problem, Solution, Steps, register_solution

__all__ = ["PlainCopy", "SteeredLoops", "copy_kernel", "define_sizes", "sizes_kernel"]


def define_sizes(problem: Problem, steps: Steps, sizes: ResultSizes = result_sizes) -> None:
    """Give the symbols that the op's results define their values, which a kernel of its own computes."""
    wanted: dict[str, tuple[int, int]] = {}
    for number in range(len(problem.module.results)):
        for name, axis in steps.undefined(number):
            wanted.setdefault(name, (number, axis))
    if not wanted:
        return
    kernel = sizes_kernel(problem.module, list(wanted.values()), sizes)
    buffer = steps.temporary(TensorType(INT64, (len(wanted),)))
    steps.call(kernel, [steps.operand(i) for i in range(len(problem.module.parameters))], [buffer])
    for place, name in enumerate(wanted):
        steps.define(name, buffer, element=place)


def sizes_kernel(module: Module, wanted: list[tuple[int, int]], sizes: ResultSizes) -> Kernel:
    """Stores the dims (result, axis) that are `wanted`, in this order, as int64."""
    writer = KernelWriter(module, [INT64])
    found = sizes(writer.elements, module.instructions[-1])
    for place, (number, axis) in enumerate(wanted):
        most = bounds(module.results[number].shape[axis])[1]
        limit = "INT64_MAX" if most is None else writer.text.dim(most)
        writer.text.line(f"y0[{place}] = checked_size({writer.text.dim(found[number][axis])}, {limit}, scratch);")
    return writer.kernel(1)


@register_solution
class SteeredLoops(Solution):
    """Views and picks by index: a loop nest over the result, once its sizes are known."""

    name = "steered loops"
    anchors = frozenset({"slice", "pad", "tile", "broadcast", "range", "one_hot", "frames"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        define_sizes(problem, steps)
        kernel = elementwise_kernel(problem.module)
        steps.call(kernel, [steps.operand(i) for i in range(len(problem.module.parameters))], [steps.result()])


@register_solution
class PlainCopy(Solution):
    """The same bits in the same order, under other dims or another type: a copy."""

    name = "plain copy"
    anchors = frozenset({"reshape", "squeeze", "unsqueeze", "bit_cast"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        define_sizes(problem, steps)
        result = problem.module.results[0]
        steps.call(copy_kernel(result.tensor), [steps.operand(0)], [steps.result()])


def copy_kernel(kind: TensorType) -> Kernel:
    """Copies the elements of a tensor, whatever they mean: NaNs keep their bits."""
    total = (product(kind.dims or ()),)
    code = copy_code(kind.dtype)
    source = Instruction(Parameter(TensorType(code, total)), (), (TensorType(code, total),), (None,), ("x0",))
    module = Module("copy", (source,), (), (source.result(),), ("y0",))
    return store_kernel(module, [code], [Nest(source.result(), total, 0, maps.identity(total))])
