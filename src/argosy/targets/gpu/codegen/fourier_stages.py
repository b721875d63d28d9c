"""Fourier transforms of a known length in stages, one for each factor of it (J. Cooley, J. Tukey, 1965).

With transforms Y of length l of m p interleaved parts of a signal, those of length l p are, in Stockham's order, which
sorts itself,

    Z[j, K] = sum over t < p of Y[j + m t, K mod l] exp(-2 pi i t K / (l p)),  j < m, K < l p, n = l p m

so a stage takes n p products, all of them n (p + p' + …). A prime factor is a stage, whatever it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from argosy.ir.dim import DimLike
from argosy.ir.dtype import FLOAT64, DType
from argosy.ir.module import Module
from argosy.ops.shapes import product
from argosy.ops.signal import Fourier
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.op_kernel import BLOCK, OpKernel
from argosy.targets.lowering.accesses import op_of

__all__ = ["RADIX", "Stage", "stage_kernel", "stages_of", "turns_kernel"]

RADIX: Final = 64
"""About the largest factor that a stage takes: a smaller one would take more stages, which read and write all."""
_TURN: Final = 6.283185307179586


@dataclass(frozen=True, slots=True)
class Stage:
    """From transforms of length `done` to such of `done * radix`, in a signal of `length`."""

    length: int
    done: int
    radix: int

    @property
    def first(self) -> bool:
        """Whether it reads the operand."""
        return self.done == 1

    @property
    def last(self) -> bool:
        """Whether it writes the result."""
        return self.done * self.radix == self.length


def stages_of(length: int, radix: int = RADIX) -> list[Stage]:
    """The stages of a transform: prime factors, put together to as few and as equal ones as `radix` allows."""
    primes, left, factor = [], length, 2
    while left > 1:
        while left % factor == 0:
            primes.append(factor)
            left //= factor
        factor += 1 if factor * factor <= left else max(left - factor, 1)
    count = max(math.ceil(math.log(max(length, 2)) / math.log(radix) - 1e-9), 1)
    groups = [1] * count
    for prime in reversed(primes):
        groups[groups.index(min(groups))] *= prime
    done, found = 1, []
    for group in [group for group in groups if group > 1] or [1]:
        found.append(Stage(length, done, group))
        done *= group
    return found


def turns_kernel(length: int, wide: DType, *, inverse: bool) -> Kernel:
    """Writes the cosine and sine of -2 pi k / length, or of 2 pi k / length: computed in float64, rounded to `wide`."""
    kernel = KernelWriter(Module("turns", (), (), (), ()))
    text = kernel.text
    text.line(f"i = {kernel.program()} * {BLOCK} + tl.arange(0, {BLOCK})")
    text.line(f"inside = i < {length}")
    text.line(f"angle = i.to(tl.float64) / {scalar.constant(length, FLOAT64)} * {scalar.constant(_TURN, FLOAT64)}")
    kind = scalar.tl_type(wide)
    text.line(f"tl.store({kernel.result()} + 2 * i, libdevice.cos(angle).to({kind}), mask=inside)")
    sine = f"({'' if inverse else '-'}libdevice.sin(angle)).to({kind})"
    text.line(f"tl.store({kernel.result()} + 2 * i + 1, {sine}, mask=inside)")
    return kernel.kernel(Launch((-(-length // BLOCK), 1, 1), 4), [wide]).labelled("turns")


def stage_kernel(module: Module, axis: int, stage: Stage) -> Kernel:
    """A stage for all signals, a number to a lane. Temporaries: the turns, and of a later stage what the last wrote."""
    (result,) = module.results
    wide = result.dtype.compute
    temporaries = [wide] if stage.first else [wide, wide]
    kernel = OpKernel(module, [] if stage.last else [wide], temporaries)
    text, op, x = kernel.text, op_of(kernel.instruction, Fourier), kernel.operand(0)
    parts, n, whole = x.shape[-1], stage.length, stage.done * stage.radix
    inner = product(x.shape[axis + 1 : -1])
    lines = product((*x.shape[:axis], inner))
    text.wide = text.wide or kernel.is_large((lines, n, 2), wide)
    half = op.inverse and op.onesided
    kept = n // 2 + 1 if stage.last and op.onesided and not op.inverse else n
    kernel.items(product((lines, kept)))
    text.line(f"line, own = i // {kept}, i % {kept}")
    text.line(f"inner, size = {text.dim(inner)}, {text.dim(x.shape[axis])}")
    text.line(f"part, place = own // {whole}, own % {whole}")
    text.line(f"step = (place.to(tl.int64) * {n // whole} % {n}).to(tl.int32)")
    text.line("base = line // inner * size * inner + line % inner")
    for name in ("re", "im"):
        kernel.zeros(name, scalar.compute_type(wide))
    text.line(f"turn = tl.zeros([{BLOCK}], tl.int32)")
    with text.block(f"for t in range(0, {stage.radix}):"):
        c, s = kernel.load_temporary(0, "2 * turn"), kernel.load_temporary(0, "2 * turn + 1")
        text.line("turn = turn + step")
        text.line(f"turn = tl.where(turn >= {n}, turn - {n}, turn)")
        source = f"part + {n // whole} * t"
        if stage.first:
            a, b = _signal(kernel, source, n, parts, half=half)
        else:
            at = text.let(f"2 * (line * {n} + ({source}) * {stage.done} + place % {stage.done})")
            a, b = kernel.load_temporary(1, at), kernel.load_temporary(1, f"{at} + 1")
        text.line(f"re = re + ({a} * {c} - {b} * {s})" if b else f"re = re + {a} * {c}")
        text.line(f"im = im + ({b} * {c} + {a} * {s})" if b else f"im = im + {a} * {s}")
    if not stage.last:
        kernel.put("2 * i", "re")
        kernel.put("2 * i + 1", "im")
        return kernel.finished()
    text.line(f"to = line // inner * {kept} * inner + line % inner + own * inner")
    values = ["re"] if half else ["re", "im"]
    for place, value in enumerate(values):
        number = scalar.constant(n, wide)
        scaled = scalar.apply("div", [value, number], [wide, wide], wide) if op.inverse else value
        kernel.put(f"to * {len(values)} + {place}", text.let(scaled))
    return kernel.finished()


def _signal(kernel: OpKernel, source: str, n: int, parts: DimLike, *, half: bool) -> tuple[str, str]:
    """Both parts of an element of the operand; 0 behind its end. The imaginary part is "" where there is none."""
    text = kernel.text
    text.line(f"source = {source}")
    text.line(f"from_ = {f'tl.where(2 * source <= {n}, source, {n} - source)' if half else 'source'}")
    text.line("there = inside & (from_ < size)")
    at = text.let(f"(base + from_ * inner) * {text.dim(parts)}")
    a = kernel.load(0, at, "there")
    if parts != 2:
        return a, ""
    b = kernel.load(0, f"{at} + 1", "there")
    if half:
        # The half that is left out is the mirror image; the ends count as real.
        ends = f"(source == 0) | (2 * source == {n})"
        b = text.let(f"tl.where({ends}, 0.0, tl.where(from_ == source, {b}, -{b}))")
    return a, b
