"""How far outputs may be from the expected ones: the project's own rule, or the tolerances that are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from argosy.comparison import Agree, Mismatch, Rule, compare
from argosy.errors import UsageError
from argosy.ir.dtype import Array, DType
from argosy.verification.measure import measure

__all__ = ["Tolerance", "spacing"]


@dataclass(frozen=True, slots=True)
class _Within:
    """|found - expected| <= atol + rtol |expected|, exactly as asked; integers are equal."""

    atol: float
    rtol: float

    def allowed(self, expected: Array, dtype: DType) -> Array:
        return np.asarray(self.atol + self.rtol * np.abs(expected))

    def allowed_integer(self, expected: Array, dtype: DType) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class _Steps:
    """At most `count` units in the last place of each expected element."""

    count: float

    def allowed(self, expected: Array, dtype: DType) -> Array:
        return self.count * spacing(expected, dtype)

    def allowed_integer(self, expected: Array, dtype: DType) -> int:
        return 0


def spacing(expected: Array, dtype: DType) -> Array:
    """The unit in the last place of `dtype` at each element: 2^(exponent - mantissa bits), IEEE 754."""
    info = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    _, exponent = np.frexp(np.abs(expected))  # |x| = m 2^e with m in [0.5, 1)
    exponent = np.where(expected == 0, int(info.minexp), np.maximum(exponent - 1, int(info.minexp)))
    return np.ldexp(1.0, exponent - int(info.nmant))


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What counts as agreement. All that are given must hold; where none is, the rule is the project's.

    `atol` and `rtol` go element by element, |found - expected| <= atol + rtol |expected|; `ulp` counts units in the
    last place of each element; `rms` is the root mean square of the differences over the largest expected magnitude.
    """

    atol: float | None = None
    rtol: float | None = None
    rms: float | None = None
    ulp: float | None = None
    quantised: bool = False
    precision: str = "fp32"

    def __post_init__(self) -> None:
        for name in ("atol", "rtol", "rms", "ulp"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise UsageError(f"{name} is {value}, expected a number from 0 on")

    @property
    def given(self) -> bool:
        """Whether any tolerance is asked for."""
        return any(value is not None for value in (self.atol, self.rtol, self.rms, self.ulp))

    def compare(self, expected: Mapping[str, Any], found: Mapping[str, Any]) -> tuple[Mismatch, ...]:
        """Every way in which `found` does not agree with `expected`."""
        for rule in self._rules():
            mismatches = compare(expected, found, rule)
            if mismatches:
                return mismatches
        if self.rms is None:
            return ()
        return tuple(
            Mismatch(difference.name, f"the relative RMS error is {difference.rms:.3g} (allowed: {self.rms:.3g})")
            for difference in measure(expected, found)
            if not difference.rms <= self.rms
        )

    def _rules(self) -> list[Rule]:
        if not self.given:
            return [Agree(self.quantised, self.precision)]
        rules: list[Rule] = []
        if self.atol is not None or self.rtol is not None:
            rules.append(_Within(self.atol or 0.0, self.rtol or 0.0))
        if self.ulp is not None:
            rules.append(_Steps(self.ulp))
        return rules or [_Within(np.inf, 0.0)]  # names, types, shapes and non-finite positions count all the same

    def __str__(self) -> str:
        if not self.given:
            share = "5e-2 of the largest magnitude, integers within 1" if self.quantised else "the rule of the docs"
            return f"agree ({share}{'' if self.precision == 'fp32' else f', {self.precision} code'})"
        pairs = ((name, getattr(self, name)) for name in ("atol", "rtol", "rms", "ulp"))
        return ", ".join(f"{name} {value:g}" for name, value in pairs if value is not None)
