"""Deformable convolution by columns of samples, and columns put together to an image."""

from __future__ import annotations

from typing import Any

from argosy.ir import dim as dims
from argosy.ir.dim import DimLike
from argosy.ir.module import Instruction, Module
from argosy.ir.types import TensorType
from argosy.ops.col2im import Col2Im
from argosy.ops.deformable import DeformableConv
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.element import Elements
from argosy.targets.cpu.codegen.kernel import Kernel, chunk_count
from argosy.targets.cpu.codegen.op_kernel import OpKernel, dot_text
from argosy.targets.cpu.lone_op import LoneOp
from argosy.targets.cpu.solution import Problem, Steps, register_solution
from argosy.targets.cpu.solutions.steered import define_sizes
from argosy.targets.lowering.accesses import DeclinedError, op_of, present

__all__ = ["DeformableColumns", "ImageFromColumns"]


@register_solution
class DeformableColumns(LoneOp):
    """The samples of every place as a column, then products of columns and weights."""

    name = "deformable columns"
    anchors = frozenset({"deform_conv"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        (conv,) = problem.module.instructions
        x, weight, result = present(conv, 0), present(conv, 1), conv.result()
        taps = product(weight.shape[2:])
        columns = TensorType(x.dtype.compute, (x.shape[0], product(result.shape[2:]), x.shape[1], taps))
        buffer = steps.temporary(columns)
        self.call(problem, steps, _columns(problem.module), writes=[buffer])
        self.call(problem, steps, _products(problem.module), [buffer])


def _columns(module: Module) -> Kernel:
    kernel = OpKernel(module, [module.parameters[0].result().dtype.compute])
    text, op = kernel.text, op_of(kernel.instruction, DeformableConv)
    x, weight, result = kernel.operand(0), kernel.operand(1), kernel.instruction.result()
    kind = scalar.compute_type(x.dtype)
    spatial, outputs, window = x.shape[2:], result.shape[2:], weight.shape[2:]
    rank = len(spatial)
    channels, taps = text.let("int64", kernel.dim(0, 1)), text.let("int64", kernel.count(window))
    places, plane = text.let("int64", kernel.count(outputs)), text.let("int64", kernel.count(spatial))
    per_group = text.let("int64", f"{channels} / {op.offset_group}")
    steps = kernel.strides(spatial)
    with kernel.share("at", f"{kernel.dim(0, 0)} * {places}"):
        text.line(f"const int64 image = at / {places}, spot = at % {places};")
        out = kernel.counters("spot", outputs, "o")
        with text.loop("group", "0", str(op.offset_group)), text.loop("tap", "0", taps):
            tap = kernel.counters("tap", window, "k")
            row = f"(image * {op.offset_group} + group) * {taps} + tap"
            for axis in range(rank):
                base = f"{out[axis]} * {op.strides[axis]} + {tap[axis]} * {op.dilations[axis]}"
                base = f"{base} - {text.dim(op.pads[axis])}"
                move = kernel.load(2, f"(({row}) * {rank} + {axis}) * {places} + spot")
                place = text.let(kind, f"({kind})({base}) + {move}")
                # far outside all places are alike
                text.line(
                    f"const {kind} p{axis} = {place} > -2 ? ({place} < {text.dim(spatial[axis])} + 1 ? "
                    f"{place} : {text.dim(spatial[axis])} + 1) : -2;"
                )
                text.line(f"const {kind} f{axis} = __builtin_elementwise_floor(p{axis});")
            factor = kernel.load(4, f"({row}) * {places} + spot") if kernel.has(4) else "1"
            with text.loop("inner", "0", per_group):
                text.line(f"const int64 channel = group * {per_group} + inner;")
                text.line(f"{kind} total = 0;")
                with text.loop("corner", "0", str(1 << rank)):
                    text.line(f"{kind} share = 1; int64 source = 0; bool inside = true;")
                    for axis in range(rank):
                        up = f"(corner >> {rank - 1 - axis} & 1)"
                        text.line(f"const int64 c{axis} = (int64)f{axis} + {up};")
                        text.line(f"share *= {up} ? p{axis} - f{axis} : 1 - (p{axis} - f{axis});")
                        text.line(f"inside = inside && c{axis} >= 0 && c{axis} < {text.dim(spatial[axis])};")
                        text.line(f"source += c{axis} * {steps[axis]};")
                    value = kernel.load(0, f"(image * {channels} + channel) * {plane} + source")
                    text.line(f"if (inside) total += {value} * share;")
                text.line(f"y0[(at * {channels} + channel) * {taps} + tap] = total * {factor};")
    work = product(result.shape[2:]) * product(weight.shape[2:]) * x.shape[1] * x.shape[0] * 16
    return kernel.kernel(chunk_count(work, product(outputs) * x.shape[0]))


def _products(module: Module) -> Kernel:
    x = module.parameters[0].result()
    kernel = OpKernel(module, [x.dtype], [x.dtype.compute])
    text, op = kernel.text, op_of(kernel.instruction, DeformableConv)
    weight, result = kernel.operand(1), kernel.instruction.result()
    kind = scalar.compute_type(x.dtype)
    outputs, places = text.let("int64", kernel.dim(1, 0)), text.let("int64", kernel.count(result.shape[2:]))
    depth = text.let("int64", kernel.count(weight.shape[1:]))
    with kernel.share("row", f"{kernel.dim(0, 0)} * {outputs}"):
        text.line(f"const int64 image = row / {outputs}, output = row % {outputs};")
        text.line(f"const int64 group = output / ({outputs} / {op.group});")
        bias = kernel.load(3, "output") if kernel.has(3) else "0"
        with text.loop("spot", "0", places):
            text.line(f"{kind} total = 0;")
            with text.loop("i", "0", depth):
                text.line("#pragma clang fp reassociate(on)")
                column = f"temporary0[((image * {places} + spot) * {op.group} + group) * {depth} + i]"
                text.line(f"total += {kernel.load(1, f'output * {depth} + i')} * {column};")
            text.line(kernel.store(0, x.dtype, f"row * {places} + spot", f"total + {bias}"))
    work = product(result.shape) * product(weight.shape[1:])
    return kernel.kernel(chunk_count(work, x.shape[0] * weight.shape[0]))


@register_solution
class ImageFromColumns(LoneOp):
    """Every element of the image is the sum of those places of blocks that lie on it."""

    name = "image from columns"
    anchors = frozenset({"col2im"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        define_sizes(problem, steps, _image_sizes)
        self.call(problem, steps, _image(problem.module))


def _entries(elements: Elements, instruction: Instruction, index: int) -> list[DimLike]:
    found = elements.entries(None, present(instruction, index))
    if found is None:
        raise DeclinedError("the image or the block has no sizes")
    return found


def _image_sizes(elements: Elements, instruction: Instruction) -> list[list[DimLike]]:
    x = present(instruction, 0)
    block = product(tuple(_entries(elements, instruction, 2)))
    channels = elements.local(f"remaining_size({elements.text.dim(x.shape[1])}, {elements.text.dim(block)}, scratch)")
    return [[x.shape[0], channels, *_entries(elements, instruction, 1)]]


def _image(module: Module) -> Kernel:
    result = module.results[0]
    kernel = OpKernel(module, [result.dtype])
    text, op = kernel.text, op_of(kernel.instruction, Col2Im)
    image, block = result.shape[2:], _entries(kernel.elements, kernel.instruction, 2)
    rank, kind = len(image), scalar.compute_type(result.dtype)
    strides, dilations = op.strides or (1,) * rank, op.dilations or (1,) * rank
    pads = op.pads or (0,) * (2 * rank)
    counts: list[DimLike] = []
    for axis, size in enumerate(image):
        room = size + (pads[axis] + pads[rank + axis]) - dilations[axis] * (block[axis] - 1) - 1
        counts.append(dims.floordiv(room, strides[axis]) + 1)
    taps, blocks = text.let("int64", kernel.count(block)), text.let("int64", kernel.count(counts))
    plane = text.let("int64", kernel.count(image))
    text.line(f"if ({kernel.dim(0, 2)} != {blocks}) {{ argosy_fail(scratch, ARGOSY_SHAPES, 2); return; }}")
    with kernel.share("at", kernel.count(result.shape)):
        text.line(f"const int64 channel = at / {plane}, spot = at % {plane};")
        places = kernel.counters("spot", image, "p")
        text.line(f"{kind} total = 0;")
        with text.loop("tap", "0", taps):
            offsets = kernel.counters("tap", block, "k")
            text.line("bool inside = true;")
            steps = kernel.strides(counts)
            for axis in range(rank):
                text.line(
                    f"const int64 d{axis} = {places[axis]} + {pads[axis]} - {offsets[axis]} * {dilations[axis]}, "
                    f"b{axis} = d{axis} / {strides[axis]};"
                )
                text.line(
                    f"inside = inside && d{axis} >= 0 && d{axis} % {strides[axis]} == 0 && "
                    f"b{axis} < {text.dim(counts[axis])};"
                )
            spot = dot_text([f"b{axis}" for axis in range(rank)], steps)
            value = kernel.load(0, f"(channel * {taps} + tap) * {blocks} + {spot}")
            text.line(f"if (inside) total = {scalar.apply('add', ['total', value], [result.dtype] * 2, result.dtype)};")
        text.line(kernel.store(0, result.dtype, "at", "total"))
    return kernel.kernel(chunk_count(product(result.shape) * 8, product(result.shape)))
