"""Kernels of scatters. An update has a number, in row-major order; of several for one element the last one counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from argosy.ir.dim import DimLike
from argosy.ir.dtype import INT32, INT64, UINT8, DType
from argosy.ir.module import Instruction, Module
from argosy.ops.scatter import ScatterElements, ScatterND
from argosy.ops.shapes import normalize_axis, product
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.faults import Fault
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter
from argosy.targets.gpu.codegen.op_kernel import BLOCK, OpKernel
from argosy.targets.gpu.codegen.reduction import fold_step
from argosy.targets.lowering.accesses import DeclinedError, op_of, present

__all__ = [
    "FOLDS",
    "Scatter",
    "depth_of",
    "last_kernel",
    "none_kernel",
    "search_kernel",
    "take_last_kernel",
    "target_of",
]

FOLDS: Final = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}


@dataclass(frozen=True, slots=True)
class Scatter:
    """What both scatters have: `slots` are the dims of what an update replaces, `numbers` those of the updates.

    `candidates` is how many updates may be those of one element.
    """

    reduction: str
    slots: tuple[DimLike, ...]
    numbers: tuple[DimLike, ...]
    candidates: DimLike

    @property
    def number_type(self) -> DType:
        """Of the number of an update."""
        return INT64 if KernelWriter.is_large(self.numbers, UINT8) else INT32

    @staticmethod
    def of(module: Module) -> Scatter:
        """The scatter that a module holds."""
        scatter = module.instructions[-1]
        op, x, indices = scatter.op, present(scatter, 0), present(scatter, 1)
        if isinstance(op, ScatterElements):
            axis = normalize_axis(op.axis, x.rank)
            return Scatter(op.reduction, x.shape, indices.shape, indices.shape[axis])
        depth = depth_of(scatter)
        numbers = indices.shape[:-1]
        return Scatter(op_of(scatter, ScatterND).reduction, x.shape[:depth], numbers, product(numbers))


def depth_of(scatter: Instruction) -> int:
    """How many axes the indices of a `scatter_nd` name."""
    depth = present(scatter, 1).shape[-1]
    if not isinstance(depth, int):
        raise DeclinedError("the depth of the indices is known only when the program runs")
    return depth


def none_kernel(module: Module) -> Kernel:
    """Says of every slot that it has no update: -1."""
    scatter = Scatter.of(module)
    kind = scatter.number_type
    writer = OpKernel(Module("none", (), module.instructions, (), ()), [kind])
    writer.text.wide = writer.is_large(scatter.slots, kind)
    writer.items(product(scatter.slots))
    writer.put("i", f"tl.full([{BLOCK}], -1, {scalar.tl_type(kind)})")
    return writer.finished()


def last_kernel(module: Module) -> Kernel:
    """The number of the last update of every slot, by atomic maxima."""
    scatter = Scatter.of(module)
    kind = scatter.number_type
    kernel = OpKernel(module, [kind])
    kernel.items(product(scatter.numbers))
    place, valid = target_of(kernel, "i")
    number = f"i.to({scalar.tl_type(kind)})"
    kernel.text.line(f"tl.atomic_max({kernel.result()} + {place}, {number}, mask=inside & {valid})")
    return kernel.finished()


def take_last_kernel(module: Module) -> Kernel:
    """Every element is that of its last update, or its own. The temporary holds the updates' numbers."""
    kernel = OpKernel(module, temporaries=[Scatter.of(module).number_type])
    text, x = kernel.text, kernel.operand(0)
    kernel.items(product(x.shape))
    if isinstance(kernel.instruction.op, ScatterElements):
        text.line("slot, behind, inner = i, 0, 1")
    else:
        inner = kernel.count(x.shape[depth_of(kernel.instruction) :])
        text.line(f"inner = {inner}")
        text.line("slot, behind = i // inner, i % inner")
    number = kernel.load_temporary(0, "slot")
    text.line(f"told = inside & ({number} >= 0)")
    update = kernel.load(2, f"{number} * inner + behind", "told")
    kernel.put("i", f"tl.where(told, {update}, {kernel.load(0, 'i')})")
    return kernel.finished()


def search_kernel(module: Module) -> Kernel:
    """Every element takes or combines the updates that are its own, in order."""
    kernel = OpKernel(module)
    text, x, scatter = kernel.text, kernel.operand(0), Scatter.of(module)
    kernel.items(product(x.shape))
    text.line(f"value = {kernel.load(0, 'i')}")
    op = kernel.instruction.op
    if isinstance(op, ScatterElements):
        axis, indices = normalize_axis(op.axis, x.rank), kernel.operand(1)
        places = kernel.counters("i", x.shape, "c")
        steps = kernel.strides(indices.shape)
        others = [number for number in range(x.rank) if number != axis]
        near = " & ".join(["inside", *(f"({places[n]} < {text.dim(indices.shape[n])})" for n in others)])
        text.line(f"near = {near}")
        text.line(f"base = {' + '.join(f'{places[n]} * {steps[n]}' for n in others) or '0 * i'}")
        with text.block(f"for k in range(0, {text.dim(scatter.candidates)}):"):
            text.line(f"at = base + k * {steps[axis]}")
            index = kernel.load(1, "at", "near")
            size = text.dim(x.shape[axis])
            kernel.elements.fault(f"near & outside({index}, {size})", Fault.INDEX, index)
            text.line(f"hit = near & (tl.where({index} < 0, {index} + {size}, {index}) == {places[axis]})")
            _take(kernel, "at", scatter.reduction)
    else:
        inner = kernel.count(x.shape[depth_of(kernel.instruction) :])
        text.line(f"inner = {inner}")
        text.line("slot, behind = i // inner, i % inner")
        with text.block(f"for k in range(0, {text.dim(scatter.candidates)}):"):
            text.line("number = k + i * 0")
            place, valid = target_of(kernel, "number", "")
            text.line(f"hit = inside & {valid} & (slot == {place})")
            _take(kernel, "number * inner + behind", scatter.reduction)
    kernel.put("i", "value")
    return kernel.finished()


def _take(kernel: OpKernel, at: str, reduction: str) -> None:
    update, kind = kernel.load(2, at, "hit"), kernel.operand(0).dtype
    taken = update if reduction == "none" else fold_step(FOLDS[reduction], "value", update, kind)
    kernel.text.line(f"value = tl.where(hit, {taken}, value).to({scalar.compute_type(kind)})")


def target_of(kernel: OpKernel, number: str, mask: str = "inside", *, checked: bool = False) -> tuple[str, str]:
    """The slot that update `number` goes to, and whether its indices are within the tensor.

    Where they are not, that is a fault, unless another kernel of the op has `checked` them.
    """
    text, x, indices = kernel.text, kernel.operand(0), kernel.operand(1)
    op = kernel.instruction.op
    if isinstance(op, ScatterElements):
        axis = normalize_axis(op.axis, x.rank)
        places: list[str] = kernel.counters(number, indices.shape, "c")
        size = text.dim(x.shape[axis])
        raw = kernel.load(1, number, mask)
        if not checked:
            kernel.elements.fault(f"outside({raw}, {size})", Fault.INDEX, raw)
        places[axis] = text.let(f"tl.where({raw} < 0, {raw} + {size}, {raw})")
        valid = [
            f"({place} >= 0) & ({place} < {text.dim(extent)})" for place, extent in zip(places, x.shape, strict=True)
        ]
        steps = kernel.strides(x.shape)
    else:
        places, valid = [], []
        depth = depth_of(kernel.instruction)
        for level in range(depth):
            size = text.dim(x.shape[level])
            raw = kernel.load(1, f"{number} * {depth} + {level}", mask)
            if not checked:
                kernel.elements.fault(f"outside({raw}, {size})", Fault.INDEX, raw)
            places.append(text.let(f"tl.where({raw} < 0, {raw} + {size}, {raw})"))
            valid.append(f"({places[-1]} >= 0) & ({places[-1]} < {size})")
        steps = kernel.strides(x.shape[:depth])
    place = text.let(" + ".join(f"{at} * {step}" for at, step in zip(places, steps, strict=True)) or f"{number} * 0")
    return place, f"({' & '.join(valid)})" if valid else f"({number} >= 0)"
