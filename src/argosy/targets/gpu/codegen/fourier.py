"""Kernels of the discrete Fourier transform: a table of sines, then a sum over the signal for each frequency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.ir.dim import DimLike
from argosy.ir.dtype import FLOAT64
from argosy.ir.module import Instruction, Module
from argosy.ops.shapes import product
from argosy.ops.signal import Fourier
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.element import Elements
from argosy.targets.gpu.codegen.faults import Fault
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.op_kernel import OpKernel
from argosy.targets.gpu.codegen.steering import number, optional
from argosy.targets.lowering.accesses import DeclinedError, op_of, present

__all__ = ["fourier_sizes", "table_kernel", "transform_kernel"]

_TURN: Final = 6.283185307179586


def _axis_and_length(elements: Elements, instruction: Instruction) -> tuple[str, str, str]:
    """Integers of the kernel: the axis, its size, and the length of the transform."""
    op, x, text = op_of(instruction, Fourier), present(instruction, 0), elements.text
    axes = elements.entries(None if op.axis is None else (op.axis,), optional(instruction, 2))
    lengths = elements.entries(None if op.length is None else (op.length,), optional(instruction, 1))
    if not axes:
        raise DeclinedError("the axis of a Fourier transform is not one number")
    given = number(elements, axes[0])
    axis = text.let(f"tl.where({given} < 0, {given} + {x.rank}, {given})")
    if not isinstance(axes[0], int):
        elements.fault(f"({axis} < 0) | ({axis} >= {x.rank - 1})", Fault.INDEX, given)
    size = number(elements, 0)
    for place, extent in enumerate(x.shape[:-1]):
        size = text.let(f"tl.where({axis} == {place}, {number(elements, extent)}, {size})")
    half = op.inverse and op.onesided
    length = number(elements, lengths[0]) if lengths else text.let(f"2 * ({size} - 1)") if half else size
    return axis, size, length


def fourier_sizes(elements: Elements, instruction: Instruction) -> Sequence[Sequence[DimLike]]:
    """The dims of the result of a `dft`."""
    op, x = op_of(instruction, Fourier), present(instruction, 0)
    axis, _, length = _axis_and_length(elements, instruction)
    kept = f"{length} // 2 + 1" if op.onesided and not op.inverse else length
    shape = [
        elements.local(f"tl.where({axis} == {place}, {kept}, {number(elements, size)})")
        for place, size in enumerate(x.shape[:-1])
    ]
    return [[*shape, instruction.result().shape[-1]]]


def table_kernel(module: Module, longest: DimLike) -> Kernel:
    """The cosine and sine of -2 pi k / n; there are `longest` places in the table."""
    kernel = OpKernel(module, [FLOAT64])
    _, _, length = _axis_and_length(kernel.elements, kernel.instruction)
    kernel.items(longest)
    angle = f"i.to(tl.float64) / {length} * {scalar.constant(_TURN, FLOAT64)}"
    kernel.text.line(f"angle = tl.where(i < {length}, {angle}, 0.0)")
    kernel.put("2 * i", "libdevice.cos(angle)")
    kernel.put("2 * i + 1", "-libdevice.sin(angle)")
    return kernel.finished()


def transform_kernel(module: Module) -> Kernel:
    """The kernel of a `dft`; its temporary is the table. A lane makes both parts of a number."""
    result = module.results[0]
    kernel = OpKernel(module, temporaries=[FLOAT64])
    text, op, x = kernel.text, op_of(kernel.instruction, Fourier), kernel.operand(0)
    parts = x.shape[-1]
    if not isinstance(parts, int):
        raise DeclinedError("it is not known whether the signal is real")
    axis, size, length = _axis_and_length(kernel.elements, kernel.instruction)
    half = op.inverse and op.onesided
    inner = number(kernel.elements, 1)
    for place, extent in enumerate(x.shape[:-1]):
        inner = text.let(f"{inner} * tl.where({axis} < {place}, {text.dim(extent)}, 1)")
    kernel.items(product(result.shape[:-1]))
    text.line(f"kept = {f'{length} // 2 + 1' if op.onesided and not op.inverse else length}")
    text.line(f"taken = tl.minimum({size}, {f'{length} // 2 + 1' if half else length})")
    # the axis at hand is one of three: what is before it, itself, and what is behind
    text.line(f"within, k = i % {inner}, i // {inner} % tl.maximum(kept, 1)")
    text.line(f"base = i // {inner} // tl.maximum(kept, 1) * {size} * {inner} + within")
    kernel.zeros("re", "tl.float64")
    kernel.zeros("im", "tl.float64")
    text.line("turn = (i * 0).to(tl.int64)")
    with text.block("for j in range(0, taken):"):
        c, s = kernel.load_temporary(0, "2 * turn"), kernel.load_temporary(0, "2 * turn + 1")
        text.line("turn = turn + k")
        text.line(f"turn = tl.where(turn >= {length}, turn - {length}, turn)")
        a = text.let(f"{kernel.load(0, f'(base + j * {inner}) * {parts}')}.to(tl.float64)")
        b = "0.0"
        if parts == 2:
            b = text.let(f"{kernel.load(0, f'(base + j * {inner}) * {parts} + 1')}.to(tl.float64)")
        if half:
            # the half that is left out is the mirror image: all but the ends count twice
            text.line(f"once = (j == 0) | (2 * j == {length})")
            text.line(f"re = re + tl.where(once, {a} * {c}, 2.0 * ({a} * {c} + {b} * {s}))")
        elif op.inverse:
            text.line(f"re = re + ({a} * {c} + {b} * {s})")
            text.line(f"im = im + ({b} * {c} - {a} * {s})")
        else:
            text.line(f"re = re + ({a} * {c} - {b} * {s})")
            text.line(f"im = im + ({b} * {c} + {a} * {s})")
    values = ["re"] if half else ["re", "im"]
    for part, value in enumerate(values):
        whole = f"({value} / {length})" if op.inverse else value
        rounded = scalar.apply("convert", [whole], [FLOAT64], x.dtype.compute)
        kernel.put(f"i * {len(values)} + {part}", text.let(rounded))
    return kernel.finished()
