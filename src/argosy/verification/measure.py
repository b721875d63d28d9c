"""How far values are apart, in numbers: for reports, whatever the tolerance says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from argosy.ir.dtype import Array
from argosy.verification.report import Difference

__all__ = ["measure"]


def measure(expected: Mapping[str, Any], found: Mapping[str, Any]) -> tuple[Difference, ...]:
    """The differences of all numeric tensors that both sides have in the same shape, those in sequences too."""
    return tuple(
        difference
        for name, value in expected.items()
        if name in found
        for difference in _differences(name, value, found[name])
    )


def _differences(name: str, expected: Any, found: Any) -> Iterator[Difference]:
    if isinstance(expected, list) and isinstance(found, (list, tuple)):
        for index, (left, right) in enumerate(zip(expected, found, strict=False)):
            yield from _differences(f"{name}[{index}]", left, right)
    elif isinstance(expected, np.ndarray) and isinstance(found, np.ndarray):
        comparable = expected.shape == found.shape and "O" not in (expected.dtype.kind, found.dtype.kind)
        if comparable and expected.dtype.kind not in "US" and found.dtype.kind not in "US":
            yield _difference(name, expected, found)


def _difference(name: str, expected: Array, found: Array) -> Difference:
    complex_ = expected.dtype.kind == "c" or found.dtype.kind == "c"
    wide = np.complex128 if complex_ else np.float64
    left, right = expected.astype(wide), found.astype(wide)
    with np.errstate(all="ignore"):
        same = (left == right) | (np.isnan(left) & np.isnan(right))
        apart = np.where(same, 0.0, np.abs(right - left))
        magnitudes = np.abs(left[np.isfinite(left)])
    largest = float(magnitudes.max(initial=0.0))
    finite = apart[np.isfinite(apart)]
    different = np.argwhere(~same)
    first = tuple(int(i) for i in different[0]) if len(different) else None
    worst = float("inf") if np.isnan(apart).any() else float(apart.max(initial=0.0))
    rms = float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0
    if worst == float("inf"):
        rms = worst
    scale = largest or 1.0
    return Difference(
        name,
        f"{expected.dtype}{list(expected.shape)}",
        worst,
        worst / scale,
        rms / scale,
        int((~same).sum()),
        int(expected.size),
        first,
        "" if first is None else str(found[first]),
        "" if first is None else str(expected[first]),
    )
