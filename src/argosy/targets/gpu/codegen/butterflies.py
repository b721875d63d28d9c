"""Discrete Fourier transforms of a few numbers in registers: straight lines, factor by factor.

A transform of a b numbers is one of each of a interleaved parts, turned and joined by b of a numbers (J. Cooley,
J. Tukey, 1965). What is known to be real, or a turn by a quarter, costs no product.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

from argosy.ir.dtype import DType
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.text import TritonText

__all__ = ["Butterflies", "Complex"]

Complex: TypeAlias = tuple[str, str]
"""Variables with both parts of a number; the second is "" where it is real."""
_TURN: Final = 2 * math.pi


class Butterflies:
    """Writes transforms of values of the compute type `wide`; the inverse is not divided."""

    def __init__(self, text: TritonText, wide: DType, *, inverse: bool) -> None:
        self._text, self._wide, self._inverse = text, wide, inverse
        self._constants: dict[float, str] = {}

    def transform(self, values: list[Complex]) -> list[Complex]:
        """The transform of some numbers."""
        count = len(values)
        if count == 1:
            return values
        factor = next((each for each in (4, 2, 3) if count % each == 0), 0) or _least_factor(count)
        rest = count // factor
        parts = [self.transform(values[place::factor]) for place in range(factor)]
        real = all(not value[1] for value in values)
        found: dict[int, Complex] = {}
        # of a real signal the one half is the mirror image of the other
        for place in range(rest // 2 + 1 if real else rest):
            turned = [self._turned(part[place], number * place, count) for number, part in enumerate(parts)]
            for number, value in enumerate(self._short(turned)):
                found[place + rest * number] = value
        return [found[place] if place in found else self._mirrored(found[count - place]) for place in range(count)]

    def product(self, value: Complex, turn: Complex) -> Complex:
        """The product of two numbers."""
        (a, b), (c, s) = value, turn
        if not b:
            return self._let(f"{a} * {c}"), self._let(f"{a} * {s}")
        return self._let(f"{a} * {c} - {b} * {s}"), self._let(f"{a} * {s} + {b} * {c}")

    def _let(self, expression: str) -> str:
        return self._text.let(expression, "f")

    def _constant(self, value: float) -> str:
        if value not in self._constants:
            self._constants[value] = self._let(scalar.constant(value, self._wide))
        return self._constants[value]

    def _mirrored(self, value: Complex) -> Complex:
        return value[0], self._let(f"-{value[1]}") if value[1] else ""

    def _sum(self, left: Complex, right: Complex, sign: str = "+") -> Complex:
        a, b = left
        c, d = right
        if not d:
            return self._let(f"{a} {sign} {c}"), b
        other = self._let(f"{b} {sign} {d}") if b else d if sign == "+" else self._let(f"-{d}")
        return self._let(f"{a} {sign} {c}"), other

    def _quarter(self, value: Complex, *, back: bool) -> Complex:
        """A number times -i, or times i where `back`."""
        a, b = value
        zero = self._constant(0.0)
        if back:
            return (self._let(f"-{b}") if b else zero), a
        return b or zero, self._let(f"-{a}")

    def _turned(self, value: Complex, turn: int, count: int) -> Complex:
        """A number times exp(-2 pi i turn / count), or the inverse of that."""
        turn %= count
        if turn == 0:
            return value
        if 4 * turn % count == 0:
            quarters = 4 * turn // count
            if quarters == 2:
                return self._let(f"-{value[0]}"), self._let(f"-{value[1]}") if value[1] else ""
            return self._quarter(value, back=(quarters == 3) is not self._inverse)
        c, s = (part(_TURN * turn / count) for part in (math.cos, math.sin))
        if 8 * turn % count == 0:
            c, s = (math.copysign(math.sqrt(0.5), part) for part in (c, s))
        return self.product(value, (self._constant(c), self._constant(s if self._inverse else -s)))

    def _short(self, values: list[Complex]) -> list[Complex]:
        """The transform of 2, 4 or an odd number of numbers."""
        if len(values) == 2:
            return [self._sum(values[0], values[1]), self._sum(values[0], values[1], "-")]
        if len(values) == 4:
            even, odd = self._short(values[::2]), self._short(values[1::2])
            turned = self._quarter(odd[1], back=self._inverse)
            return [
                self._sum(even[0], odd[0]), self._sum(even[1], turned),
                self._sum(even[0], odd[0], "-"), self._sum(even[1], turned, "-"),
            ]  # fmt: skip
        return self._odd(values)

    def _odd(self, values: list[Complex]) -> list[Complex]:
        """By sums and differences of numbers that mirror each other: sums go with cosines, differences with sines."""
        count, first = len(values), values[0]
        pairs = [(values[place], values[-place]) for place in range(1, count // 2 + 1)]
        sums, differences = ([self._sum(*pair, sign) for pair in pairs] for sign in "+-")
        first_out = first
        for each in sums:
            first_out = self._sum(first_out, each)
        found = [first_out] * count
        for k in range(1, count // 2 + 1):
            angles = [_TURN * (place * k % count) / count for place in range(1, count // 2 + 1)]
            even, odd = first, None
            for angle, total, difference in zip(angles, sums, differences, strict=True):
                even = self._sum(even, self._scaled(total, math.cos(angle)))
                share = self._scaled(difference, math.sin(angle))
                odd = share if odd is None else self._sum(odd, share)
            if odd is not None:
                turned = self._quarter(odd, back=self._inverse)
                found[k], found[count - k] = self._sum(even, turned), self._sum(even, turned, "-")
        return found

    def _scaled(self, value: Complex, factor: float) -> Complex:
        by = self._constant(factor)
        return self._let(f"{value[0]} * {by}"), self._let(f"{value[1]} * {by}") if value[1] else ""


def _least_factor(count: int) -> int:
    return next((each for each in range(5, math.isqrt(count) + 1, 2) if count % each == 0), count)
