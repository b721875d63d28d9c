"""Kernels of Fourier transforms whose length or axis only the run knows: stages of factors that the run finds.

The length is three factors, as equal as its divisors allow: a stage for each sums as many terms for every number. A
prime length is a sum over the signal for each frequency. All of it is in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.ir.dim import DimLike
from argosy.ir.dtype import FLOAT64, INT64
from argosy.ir.module import Instruction, Module
from argosy.ops.shapes import product
from argosy.ops.signal import Fourier
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.butterflies import Complex
from argosy.targets.gpu.codegen.element import Elements
from argosy.targets.gpu.codegen.faults import Fault
from argosy.targets.gpu.codegen.fourier_signal import Signal, store_result
from argosy.targets.gpu.codegen.fourier_stages import add_terms
from argosy.targets.gpu.codegen.kernel import Kernel, Launch
from argosy.targets.gpu.codegen.op_kernel import OpKernel
from argosy.targets.gpu.codegen.steering import number, optional
from argosy.targets.lowering.accesses import DeclinedError, op_of, present
from argosy.targets.lowering.transforms import known_axis

__all__ = ["FACTORS", "factors_kernel", "fourier_sizes", "most_numbers", "read_kernel", "sums_kernel", "table_kernel"]

FACTORS: Final = 3
"""Into how many factors a length is split."""
_DIVISORS: Final = 1024
"""Numbers that are tried at a time."""
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


def most_numbers(module: Module) -> DimLike:
    """At least how many numbers all signals have, cut or padded to the length: a one-sided result has half of them."""
    dft = module.instructions[-1]
    op = op_of(dft, Fourier)
    count = product(dft.result().shape[:-1])
    return 2 * count if op.onesided and not op.inverse else count


def table_kernel(module: Module, longest: DimLike) -> Kernel:
    """The cosine and sine of -2 pi k / n, of an inverse of 2 pi k / n; there are `longest` places in the table."""
    kernel = OpKernel(module, [FLOAT64])
    _, _, length = _axis_and_length(kernel.elements, kernel.instruction)
    kernel.items(longest)
    angle = f"i.to(tl.float64) / {length} * {scalar.constant(_TURN, FLOAT64)}"
    kernel.text.line(f"angle = tl.where(i < {length}, {angle}, 0.0)")
    kernel.put("2 * i", "libdevice.cos(angle)")
    sign = "" if op_of(kernel.instruction, Fourier).inverse else "-"
    kernel.put("2 * i + 1", f"{sign}libdevice.sin(angle)")
    return kernel.finished()


def factors_kernel(module: Module) -> Kernel:
    """The factors of the length: of those that divide what is left, the largest one below its root of that degree."""
    kernel = OpKernel(module, [INT64])
    text = kernel.text
    text.wide = True
    _, _, length = _axis_and_length(kernel.elements, kernel.instruction)
    text.line(f"left = tl.maximum({length}, 1).to(tl.int64)")
    for place in range(FACTORS - 1):
        degree = FACTORS - place
        power = " * ".join(["tried"] * degree)
        text.line("factor = left * 0 + 1")
        text.line(f"most = libdevice.pow(left.to(tl.float64), {scalar.constant(1 / degree, FLOAT64)}).to(tl.int64) + 2")
        with text.block(f"for begin in range(1, most, {_DIVISORS}):"):
            text.line(f"tried = begin + tl.arange(0, {_DIVISORS}).to(tl.int64)")
            text.line(f"fits = ({power} <= left) & (left % tried == 0)")
            text.line("factor = tl.maximum(factor, tl.max(tl.where(fits, tried, 1), 0))")
        text.line(f"tl.store({kernel.result()} + {place}, factor)")
        text.line("left = left // factor")
    text.line(f"tl.store({kernel.result()} + {FACTORS - 1}, left)")
    return kernel.kernel(Launch((1, 1, 1), 4), [INT64]).labelled("factors")


def read_kernel(module: Module) -> Kernel:
    """Copies the signals, cut or padded to the length, each with its real and then its imaginary parts."""
    kernel = OpKernel(module, [FLOAT64])
    _begin(kernel)
    kernel.text.derive("place", "i // inner % length", "i")
    kernel.text.derive("outer", "i // inner // length", "i")
    a, b = Signal(kernel, known_axis(kernel.instruction), "length").read("place")
    kernel.put("i", f"{a}.to(tl.float64)")
    kernel.put("i + plane", f"{b}.to(tl.float64)" if b else "0.0")
    return kernel.finished()


def sums_kernel(module: Module, place: int) -> Kernel:
    """The stage of factor `place`. Temporaries: the table, the factors, and the numbers of the stage before."""
    last = place == FACTORS - 1
    kernel = OpKernel(module, [] if last else [FLOAT64], [FLOAT64, INT64, FLOAT64])
    text, op = kernel.text, op_of(kernel.instruction, Fourier)
    kept = "length // 2 + 1" if last and op.onesided and not op.inverse else "length"
    _begin(kernel, kept)
    text.line("done = length * 0 + 1")
    for before in range(place):
        text.line(f"done = done * tl.load({kernel.temporary(1)} + {before}).to({text.index_type})")
    text.line(f"radix = tl.load({kernel.temporary(1)} + {place}).to({text.index_type})")
    text.line("whole = done * radix")
    text.line("parts = length // whole")
    # numbers k of the transforms of a whole, k < kept where this is the last one
    text.line(f"own_count = {'kept' if last else 'whole'}")
    text.derive("part", "i // inner % parts", "i")
    text.derive("own", "i // inner // parts % own_count", "i")
    text.derive("outer", "i // inner // parts // own_count", "i")
    text.line("step = (own * parts).to(tl.int64)")
    text.line("from_ = own % done")

    def held() -> Complex:
        at = text.let("((outer * done + from_) * (parts * radix) + part + parts * t) * inner + within")
        return kernel.load_temporary(2, at), kernel.load_temporary(2, f"{at} + plane")

    add_terms(kernel, held, "length", "radix", FLOAT64)
    if last:
        divisor = text.let("length.to(tl.float64)")
        store_result(kernel, "own", ("re", "im"), count="kept", length=divisor, kind=FLOAT64)
    else:
        kernel.put("i", "re")
        kernel.put("i + plane", "im")
    return kernel.finished()


def _begin(kernel: OpKernel, kept: str = "length") -> None:
    """A lane for each of the `kept` numbers of every signal; `plane` is where imaginary parts begin."""
    text, x = kernel.text, kernel.operand(0)
    axis, size, length = _axis_and_length(kernel.elements, kernel.instruction)
    inner, lines = number(kernel.elements, 1), number(kernel.elements, 1)
    for place, extent in enumerate(x.shape[:-1]):
        inner = text.let(f"{inner} * tl.where({axis} < {place}, {text.dim(extent)}, 1)")
        lines = text.let(f"{lines} * tl.where({axis} == {place}, 1, {text.dim(extent)})")
    most = most_numbers(kernel.module)
    text.wide = text.wide or kernel.is_large((most, 2), FLOAT64)
    kernel.items(most)
    # nothing is divided by 0 where there are no numbers, and no lane is inside
    for name, value in (("inner", inner), ("size", size), ("length", length)):
        text.line(f"{name} = tl.maximum({value}, {0 if name == 'size' else 1}).to({text.index_type})")
    text.line(f"kept = {kept}")
    text.line(f"plane = ({lines} * length).to({text.index_type})")
    text.line(f"inside = inside & (i < {lines} * kept) & ({length} > 0)")
    text.derive("within", "i % inner", "i")
