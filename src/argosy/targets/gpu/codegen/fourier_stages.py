"""Fourier transforms in stages, one for each factor of the length (J. Cooley, J. Tukey, 1965).

With transforms Y of length l of m p interleaved parts of a signal, those of length l p are

    Z[k, j] = sum over t < p of Y[k mod l, j + m t] exp(-2 pi i t k / (l p)),  k < l p, j < m, n = l p m

A lane takes the p numbers with one k mod l and one j into registers, and makes p of Z of them (`butterflies.py`). A
large prime factor, or one that only the run knows, is a sum for each number of Z. Between stages real and imaginary
parts lie apart, so that lanes read and write side by side; of real signals only k <= l / 2 are kept, the others mirror
them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from argosy.ir.dtype import FLOAT64, DType
from argosy.ir.module import Module
from argosy.ops.shapes import product
from argosy.ops.signal import Fourier
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.butterflies import Butterflies, Complex
from argosy.targets.gpu.codegen.fourier_signal import Signal, is_folded, store_result
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.op_kernel import BLOCK, OpKernel
from argosy.targets.lowering.accesses import op_of

__all__ = ["RADICES", "Stage", "add_terms", "stage_kernel", "stages_of", "turns_kernel"]

RADICES: Final = (32, 16, 8, 4)
"""The largest factor that a stage may have, best first: a smaller one takes fewer registers, and more stages."""
_LARGEST_PRIME: Final = 13
_LANES: Final = 128
_NEAR: Final = 8
"""Turns of a lane that are loaded, and their multiples of 8: the others are products of two."""
_ROW: Final = 4
"""Numbers that a lane loads at once where they lie side by side."""
_TURN: Final = 6.283185307179586


@dataclass(frozen=True, slots=True)
class Stage:
    """From transforms of length `done` to such of `done * radix`, in a signal of `length`."""

    length: int
    done: int
    radix: int
    first: bool

    @property
    def last(self) -> bool:
        """Whether it writes the result."""
        return self.done * self.radix == self.length

    @property
    def summed(self) -> bool:
        """Whether it is a sum for each number: its factor is a large prime."""
        return any(prime > _LARGEST_PRIME for prime in _primes(self.radix))


def stages_of(length: int, radix: int = RADICES[0]) -> list[Stage]:
    """The stages of a transform: small primes, put together to as few and as equal factors as `radix` allows.

    The first reads each number once: before a large prime that stands alone there is one of radix 1.
    """
    primes = _primes(length)
    small = sorted((prime for prime in primes if prime <= _LARGEST_PRIME), reverse=True)
    count = max(math.ceil(math.log(max(math.prod(small), 2)) / math.log(radix) - 1e-9), 1)
    groups = _grouped(small, count)
    while max(groups) > max(radix, *small, 1) and count < len(small):
        count += 1
        groups = _grouped(small, count)
    large = [prime for prime in primes if prime > _LARGEST_PRIME]
    done, found = 1, []
    for place, factor in enumerate([*([group for group in groups if group > 1] or [1]), *large]):
        found.append(Stage(length, done, factor, place == 0))
        done *= factor
    return found


def _grouped(primes: list[int], count: int) -> list[int]:
    groups = [1] * count
    for prime in primes:
        groups[groups.index(min(groups))] *= prime
    return groups


def _primes(number: int) -> list[int]:
    found, factor = [], 2
    while number > 1:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1 if factor * factor <= number else max(number - factor, 1)
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


def stage_kernel(module: Module, axis: int, stage: Stage, wave: int) -> Kernel:
    """A stage for all signals, for a device whose waves have so many lanes.

    Temporaries: the turns, and of a later stage what the last wrote.
    """
    return _StageKernel(module, axis, stage).kernel(wave)


class _StageKernel:
    """`parts` is m, `kept` how many k of the l of `stage.done` there are, `own` which of them a lane has."""

    def __init__(self, module: Module, axis: int, stage: Stage) -> None:
        self.stage, self.wide = stage, module.results[0].dtype.compute
        temporaries = [self.wide] if stage.first else [self.wide, self.wide]
        self.k = OpKernel(module, [] if stage.last else [self.wide], temporaries)
        self.text, self.op, x = self.k.text, op_of(self.k.instruction, Fourier), self.k.operand(0)
        self.folded = is_folded(self.op, x.shape[-1])
        self.parts = stage.length // (stage.done * stage.radix)
        self.whole = stage.done * stage.radix
        self.count = stage.length // 2 + 1 if self.op.onesided and not self.op.inverse else stage.length
        """Numbers of the result along the axis."""
        self.outer, self.inner = product(x.shape[:axis]), product(x.shape[axis + 1 : -1])
        self.size = x.shape[axis]
        self.axis = axis
        self.text.wide = self.text.wide or self.k.is_large((self.outer, self.inner, stage.length, 2), self.wide)

    def kept(self, length: int) -> int:
        """How many numbers of a transform are held between stages."""
        return length // 2 + 1 if self.folded else length

    def kernel(self, wave: int) -> Kernel:
        """The kernel."""
        own = (self.count if self.stage.last else self.kept(self.whole)) if self.summed else self.kept(self.stage.done)
        lanes = BLOCK if self.summed else _LANES
        text = self.text
        self.k.items(product((self.outer, own, self.parts, self.inner)), lanes=lanes)
        text.line(f"inner, size = {text.dim(self.inner)}, {text.dim(self.size)}")
        text.derive("within", "i * 0" if self.inner == 1 else "i % inner", "i")
        text.derive("left", "i" if self.inner == 1 else "i // inner", "i")
        text.derive("part", f"left % {self.parts}" if self.parts > 1 else "left * 0", "i")
        text.derive("own", f"left // {self.parts} % {own}", "i")
        text.derive("outer", f"left // {self.parts * own}", "i")
        if self.summed:
            self._sums()
        else:
            self._butterflies()
        return self.k.finished(lanes // wave if lanes == _LANES else 4)

    @property
    def summed(self) -> bool:
        """Whether a lane makes one number of a sum."""
        return self.stage.summed

    def _butterflies(self) -> None:
        stage, text = self.stage, self.text
        values: list[Complex] = []
        inverse = self.op.inverse
        butterflies = Butterflies(text, self.wide, inverse=inverse)
        if stage.first:
            signal = Signal(self.k, self.axis, str(stage.length))
            values = [signal.read(f"part + {self.parts * place}") for place in range(stage.radix)]
        else:
            held = self._held_all()
            turns = self._turns(butterflies)
            values = held[:1] + [butterflies.product(*each) for each in zip(held[1:], turns, strict=True)]
        found = butterflies.transform(values)
        if self.folded and stage.done > 1:
            text.line(f"other = inside & (own != 0) & (2 * own != {stage.done})")
        for number, value in enumerate(found):
            self._put(number, value)

    def _turns(self, butterflies: Butterflies) -> list[Complex]:
        """Of each input but the first what it is turned by."""
        near = [self._turn(place) for place in range(1, min(self.stage.radix, _NEAR))]
        found = list(near)
        for begin in range(_NEAR, self.stage.radix, _NEAR):
            far = self._turn(begin)
            found.append(far)
            found += [butterflies.product(far, each) for each in near[: self.stage.radix - begin - 1]]
        return found

    def _turn(self, place: int) -> Complex:
        at = f"own * {2 * place * self.parts}"
        c, s = self.k.load_neighbours(self.k.temporary(0), self.wide, at, 2)
        return c, s

    def _held(self, own: str, place: str) -> Complex:
        """What the stage before left for a number."""
        kept, parts = self.kept(self.stage.done), self.parts * self.stage.radix
        at = self.text.let(f"((outer * {kept} + {own}) * {parts} + ({place})) * inner + within")
        return self.k.load_temporary(1, at), self.k.load_temporary(1, f"{at} + {self._plane(kept * parts)}")

    def _held_all(self) -> list[Complex]:
        """What the stage before left for all inputs of a lane; in a row where they lie side by side."""
        radix = self.stage.radix
        if self.inner != 1 or self.parts > 1 or radix % _ROW:
            return [self._held("own", f"part + {self.parts * place}") for place in range(radix)]
        at = self.text.let(f"(outer * {self.kept(self.stage.done)} + own) * {radix}")
        planes = [
            [
                name
                for place in range(0, radix, _ROW)
                for name in self.k.load_neighbours(self.k.temporary(1), self.wide, f"{at} + {begin}{place}", _ROW)
            ]
            for begin in ("", f"{self._plane(self.kept(self.stage.done) * radix)} + ")
        ]
        return list(zip(*planes, strict=True))

    def _plane(self, count: int) -> str:
        """Where the imaginary parts begin, of so many numbers of every signal."""
        return self.text.dim(product((self.outer, count, self.inner)))

    def _put(self, number: int, value: Complex) -> None:
        """Store number `own + done * number` of the transform, mirrored where that is what is kept of it."""
        stage = self.stage
        place = f"(own + {stage.done * number})" if number else "own"
        direct = stage.last and not self.op.onesided
        if not self.folded:
            beyond = stage.last and self.op.onesided and not self.op.inverse
            self._store(place, value, f"inside & ({place} < {self.count})" if beyond else "inside")
            return
        mirrored = (value[0], self.text.let(f"-{value[1]}") if value[1] else "")
        other = f"({self.whole} - {place})"
        if direct:
            self._store(place, value, "inside")
            if stage.done > 1:
                self._store(other, mirrored, "other")
        elif 2 * number < stage.radix:
            self._store(place, value, "inside")
        elif 2 * number > stage.radix:
            if stage.done > 1:
                self._store(other, mirrored, "other")
        else:
            self._store(place, value, "inside & (own == 0)")
            if stage.done > 1:
                self._store(other, mirrored, "other")

    def _store(self, place: str, value: Complex, mask: str) -> None:
        if self.stage.last:
            length = scalar.constant(self.stage.length, self.wide)
            store_result(self.k, place, value, count=str(self.count), length=length, kind=self.wide, mask=mask)
            return
        kept = self.kept(self.whole)
        at = self.text.let(f"((outer * {kept} + {place}) * {self.parts} + part) * inner + within")
        self.k.put(at, value[0], mask=mask)
        self.k.put(f"{at} + {self._plane(kept * self.parts)}", value[1] or "0.0", mask=mask)

    def _sums(self) -> None:
        stage, text = self.stage, self.text
        text.line(f"step = (own * {self.parts}).to(tl.int32)")
        text.derive("from_", f"own % {stage.done}", "i")
        if self.folded:
            text.line(f"mirrored = 2 * from_ > {stage.done}")
            text.derive("from_", f"tl.where(mirrored, {stage.done} - from_, from_)", "from_")

        def held() -> Complex:
            a, b = self._held("from_", f"part + {self.parts} * t")
            return a, text.let(f"tl.where(mirrored, -{b}, {b})") if self.folded else b

        add_terms(self.k, held, str(stage.length), str(stage.radix), self.wide)
        self._store("own", ("re", "im"), "inside")


def add_terms(kernel: OpKernel, held: Callable[[], Complex], length: str, radix: str, kind: DType) -> None:
    """Sum terms `held` of number t, turned by t `step`, into `re` and `im`: t < `radix`; temporary 0 has the turns."""
    text = kernel.text
    for name in ("re", "im"):
        kernel.zeros(name, scalar.tl_type(kind))
    text.line("turn = step * 0")
    with text.block(f"for t in range(0, {radix}):"):
        a, b = held()
        c, s = kernel.load_temporary(0, "2 * turn"), kernel.load_temporary(0, "2 * turn + 1")
        text.line("turn = turn + step")
        text.line(f"turn = tl.where(turn >= {length}, turn - {length}, turn)")
        text.line(f"re = re + ({a} * {c} - {b} * {s})")
        text.line(f"im = im + ({b} * {c} + {a} * {s})")
