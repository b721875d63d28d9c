"""Kernels of scatters that add: atomic sums of integers, which have the same bits in whatever order they are made.

Floats are added as multiples of a power of two that is the element's own: so small that the sum of as many updates as
an element may have, each as large as its largest one, fits 63 bits. What an update loses is at most half of that unit,
far less than sums in float32 lose (a fixed-point form of J. Demmel, H. D. Nguyen, "Parallel Reproducible Summation",
2015). Infinities and NaN are kept as flags.
"""

from __future__ import annotations

from typing import Final

from argosy.ir.dim import bounds
from argosy.ir.dtype import INT32, INT64, DType
from argosy.ir.module import Module
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.op_kernel import OpKernel
from argosy.targets.gpu.codegen.scatter import Scatter, target_of

__all__ = ["add_kernel", "largest_kernel", "nothing_kernel", "sums_type", "take_sum_kernel"]

_INFINITE: Final = 0x7F800000
"""Bits of an infinite float32; those of NaN are more."""
_LANES: Final = 512
"""Updates of a program: so many wait at once for what they read."""
_UNKNOWN: Final = 34
"""Bits of the number of updates of an element where only the run knows it."""


def sums_type(dtype: DType) -> DType:
    """Of the sums of elements."""
    return INT64 if dtype.is_float else dtype


def nothing_kernel(module: Module) -> Kernel:
    """Writes zeros: the sums, and of floats the largest updates."""
    kinds = _kinds(module)
    writer = OpKernel(Module("nothing", (), module.instructions, (), ()), kinds)
    slots = Scatter.of(module).slots
    writer.text.wide = writer.is_large(slots, INT64)
    writer.items(product(slots), lanes=1024)
    for place, kind in enumerate(kinds):
        writer.put("i", f"tl.zeros([1024], {scalar.tl_type(kind)})", place)
    return writer.finished().labelled("scatter_nothing")


def largest_kernel(module: Module) -> Kernel:
    """The bits of the largest update of every element, without their sign: greater ones are of greater numbers."""
    kernel = OpKernel(module, [INT32])
    text = kernel.text
    kernel.items(product(Scatter.of(module).numbers), lanes=_LANES)
    place, live = _target(kernel)
    text.line(f"bits = {_bits(kernel.load(2, 'i'))}")
    text.line(f"bits = tl.where({live}, bits, 0)")
    _at_once(kernel, place, live, "atomic_max", "tl.max(bits, 0)", "bits")
    return kernel.finished()


def add_kernel(module: Module) -> Kernel:
    """Adds all updates to the sums. Of floats the temporary are the bits of the largest ones."""
    kernel = OpKernel(module, [sums_type(module.results[0].dtype)], _kinds(module)[1:])
    text = kernel.text
    kernel.items(product(Scatter.of(module).numbers), lanes=_LANES)
    place, live = _target(kernel, checked=module.results[0].dtype.is_float)
    text.line(f"update = {kernel.load(2, 'i')}")
    if module.results[0].dtype.is_float:
        text.line(f"most = {kernel.load_temporary(0, place, live)}")
        text.line(f"finite = {live} & (most < {_INFINITE})")
        text.line(f"scaled = update.to(tl.float64) * {_power(_unit(module))}")
        text.line("terms = tl.where(finite, libdevice.rint(tl.where(finite, scaled, 0.0)), 0.0).to(tl.int64)")
        text.line(f"odd = {live} & ({_bits('update')} >= {_INFINITE})")
        text.line("flag = tl.where(update == update, tl.where(update > 0, 1, 2), 4).to(tl.int64)")
        text.line(f'tl.atomic_or({kernel.result()} + {place}, flag, mask=odd, sem="relaxed")')
        live = "finite"
    else:
        text.line(f"terms = tl.where({live}, update, 0)")
    _at_once(kernel, place, live, "atomic_add", "tl.sum(terms, 0)", "terms")
    return kernel.finished()


def take_sum_kernel(module: Module) -> Kernel:
    """Every element and its sum. Temporaries: the sums, and of floats the bits of the largest updates."""
    kernel = OpKernel(module, temporaries=_kinds(module))
    text, kind = kernel.text, module.results[0].dtype
    kernel.items(product(kernel.operand(0).shape))
    text.line(f"value = {kernel.load(0, 'i')}")
    text.line(f"total = {kernel.load_temporary(0, 'i')}")
    if kind.is_float:
        text.line(f"most = {kernel.load_temporary(1, 'i')}")
        text.line(f"added = value.to(tl.float64) + total.to(tl.float64) * {_power(f'(-{_unit(module)})')}")
        text.line('odd = tl.where(total == 1, float("inf"), tl.where(total == 2, float("-inf"), float("nan")))')
        text.line(f"added = tl.where(most < {_INFINITE}, added.to(tl.float32), value + odd)")
        text.line("value = tl.where(most == 0, value, added)")
    else:
        text.line("value = value + total")
    kernel.put("i", "value")
    return kernel.finished()


def _kinds(module: Module) -> list[DType]:
    kind = module.results[0].dtype
    return [sums_type(kind), INT32] if kind.is_float else [sums_type(kind)]


def _target(kernel: OpKernel, *, checked: bool = False) -> tuple[str, str]:
    """The element that update `i` goes to, and which updates there are."""
    place, valid = target_of(kernel, "i", checked=checked)
    kernel.text.line(f"live = inside & {valid}")
    return place, "live"


def _at_once(kernel: OpKernel, place: str, live: str, atomic: str, whole: str, each: str) -> None:
    """An atomic for each update, or for all of a program where they go to one element: those would wait in line."""
    text, result = kernel.text, kernel.result()
    text.line(f"at = {place}.to(tl.int64)")
    text.line(f"low = tl.min(tl.where({live}, at, {1 << 62}), 0)")
    text.line(f"high = tl.max(tl.where({live}, at, -1), 0)")
    with text.block("if low == high:"):
        text.line(f'tl.{atomic}({result} + low, {whole}, sem="relaxed")')
    with text.block("else:"):
        text.line(f'tl.{atomic}({result} + {place}, {each}, mask={live}, sem="relaxed")')


def _bits(value: str) -> str:
    return f"({value}.to(tl.float32).to(tl.int32, bitcast=True) & 0x7FFFFFFF)"


def _unit(module: Module) -> str:
    """The power of two by which updates are multiplied, from `most`, the bits of the largest one."""
    upper = bounds(Scatter.of(module).candidates)[1]
    count = _UNKNOWN if upper is None else upper.bit_length()
    # numbers whose bits are at most `most` are less than 2^((most >> 23) - 126)
    return f"({62 - count + 126} - (most >> 23))"


def _power(exponent: str) -> str:
    """Two to the power of an integer, as float64."""
    return f"(({exponent} + 1023).to(tl.int64) << 52).to(tl.float64, bitcast=True)"
