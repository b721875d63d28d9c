"""How far outputs may be from the expected ones: the project's own rule, or the tolerances that are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from argosy.comparison import Agree, Mismatch, Rule, compare
from argosy.errors import UsageError
from argosy.ir.dtype import INT64, Array, DType
from argosy.ir.types import MapType, TensorType, Type
from argosy.verification.measure import measure

__all__ = ["Tolerance", "spacing"]


@dataclass(frozen=True, slots=True)
class _Within:
    """|found - expected| <= atol + rtol |expected|, exactly as asked; integers by as many units as `atol` has."""

    atol: float
    rtol: float

    def allowed(self, expected: Array, dtype: DType) -> Array:
        return np.asarray(self.atol + self.rtol * np.abs(expected))

    def allowed_integer(self, expected: Array, dtype: DType) -> int:
        return _units(self.atol)


@dataclass(frozen=True, slots=True)
class _Steps:
    """At most `count` units in the last place of each expected element."""

    count: float

    def allowed(self, expected: Array, dtype: DType) -> Array:
        return self.count * spacing(expected, dtype)

    def allowed_integer(self, expected: Array, dtype: DType) -> int:
        return _units(self.count)


@dataclass(frozen=True, slots=True)
class _AnyFloat:
    """No bound on floats: another rule has it. Everything else is equal."""

    def allowed(self, expected: Array, dtype: DType) -> Array:
        return np.asarray(np.inf)

    def allowed_integer(self, expected: Array, dtype: DType) -> int:
        return 0


def _units(allowed: float) -> int:
    """Whole units of an integer; no integer is further apart than 2^64."""
    return int(min(allowed, 2.0**63))


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
    last place of each element; `rms` is the root mean square of the differences over the largest expected magnitude
    (over 1 where all is 0). Integers may differ by the whole units of `atol` and of `ulp`, and never by a share.
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

    def compare(
        self, expected: Mapping[str, Any], found: Mapping[str, Any], exact: Mapping[str, Any] | None = None
    ) -> tuple[Mismatch, ...]:
        """Every way in which `found` does not agree with `expected`, or with its `exact` values in float64."""
        for rule in self._rules():
            mismatches = compare(expected, found, rule, exact)
            if mismatches:
                return mismatches
        if self.rms is None:
            return ()
        return tuple(
            Mismatch(difference.name, f"the relative RMS error is {difference.rms:.3g} (allowed: {self.rms:.3g})")
            for difference in measure(expected, found, exact)
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
        return rules or [_AnyFloat()]  # names, types, shapes and non-finite positions count all the same

    def rule(self, types: Iterable[Type]) -> str:
        """What must hold for outputs of these types, in words: everything, so that nobody has to look it up."""
        elements = sorted({dtype for kind in types for dtype in _elements(kind)}, key=lambda dtype: dtype.name)
        floats = [dtype for dtype in elements if dtype.is_float or dtype.kind == "complex"]
        parts = (self._of_floats() if self.given else self._agreed(floats)) if floats else []
        if any(dtype.is_integer for dtype in elements):
            parts.append(self._of_integers())
        if any(dtype.kind in ("bool", "string") for dtype in elements):
            parts.append("bools and texts equal")
        end = "types, shapes and the places of NaN and infinities the same" if floats else "types and shapes the same"
        return "; ".join([*parts, end])

    def _agreed(self, floats: Iterable[DType]) -> list[str]:
        rule = Agree(self.quantised, self.precision)
        ones = np.ones(1)
        shares = ", ".join(f"{float(rule.allowed(ones, dtype)):g} ({dtype})" for dtype in floats)
        why = [f"code in {self.precision}"] * (self.precision != "fp32") + ["a quantised model"] * self.quantised
        because = f" (for {' and '.join(why)})" if why else ""
        return [f"largest difference <= {shares} of the largest expected magnitude of the output{because}"]

    def _of_floats(self) -> list[str]:
        parts = []
        if self.atol is not None or self.rtol is not None:
            parts.append(f"each |found - expected| <= {self.atol or 0:g} + {self.rtol or 0:g} |expected|")
        if self.ulp is not None:
            parts.append(f"each within {self.ulp:g} units in the last place of what is expected")
        if self.rms is not None:
            parts.append(f"RMS of the differences <= {self.rms:g} of the largest expected magnitude of the output")
        return parts

    def _of_integers(self) -> str:
        allowed = min(rule.allowed_integer(np.zeros(1), INT64) for rule in self._rules())
        rms = f", their RMS error <= {self.rms:g} too" if self.rms is not None else ""
        return ("integers equal" if not allowed else f"integers within {allowed}") + (rms if allowed else "")

    def __str__(self) -> str:
        pairs = ((name, getattr(self, name)) for name in ("atol", "rtol", "rms", "ulp"))
        told = [f"{name} {value:g}" for name, value in pairs if value is not None]
        told += ["quantised"] * (self.quantised and not self.given)
        return ", ".join(told or ["agree"]) + ("" if self.precision == "fp32" else f" ({self.precision})")


def _elements(kind: Type) -> Iterator[DType]:
    if isinstance(kind, TensorType):
        yield kind.dtype
    elif isinstance(kind, MapType):
        yield kind.key
        yield from _elements(kind.value)
    else:
        yield from _elements(kind.element)
