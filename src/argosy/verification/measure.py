"""How far values are apart, in numbers: for reports, whatever the tolerance says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from argosy.ir.dtype import Array
from argosy.verification.report import Difference, NonFinite

__all__ = ["measure"]

_DECADES: Final = range(-16, 1)
"""Decades of the errors that a histogram tells apart; what is smaller counts to the first, what is larger beyond."""


def measure(
    expected: Mapping[str, Any], found: Mapping[str, Any], exact: Mapping[str, Any] | None = None
) -> tuple[Difference, ...]:
    """The differences of all tensors that both sides have in the same shape, those in sequences too.

    `exact` are the expected values in float64 where these are known, as for `comparison.compare`.
    """
    return tuple(
        difference
        for name, value in expected.items()
        if name in found
        for difference in _differences(name, value, found[name], value if exact is None else exact[name])
    )


def _differences(name: str, expected: Any, found: Any, exact: Any) -> Iterator[Difference]:
    if isinstance(expected, list) and isinstance(found, (list, tuple)):
        for index, (left, right, truth) in enumerate(zip(expected, found, exact, strict=False)):
            yield from _differences(f"{name}[{index}]", left, right, truth)
    elif isinstance(expected, np.ndarray) and isinstance(found, np.ndarray):
        if expected.shape != found.shape:
            return
        texts = [array.dtype.kind in "OUS" for array in (expected, found)]
        if all(texts):
            yield _difference_of_texts(name, expected, found)
        elif not any(texts):
            yield _difference(name, expected, found, exact)


def _difference_of_texts(name: str, expected: Array, found: Array) -> Difference:
    different = np.argwhere(expected.astype(object) != found.astype(object))
    first = tuple(int(i) for i in different[0]) if len(different) else None
    error = 0.0 if first is None else np.inf
    return Difference(
        name,
        f"string{list(expected.shape)}",
        error,
        error,
        error,
        len(different),
        int(expected.size),
        first,
        "" if first is None else repr(found[first]),
        "" if first is None else repr(expected[first]),
    )


def _difference(name: str, expected: Array, found: Array, exact: Array) -> Difference:
    complex_ = expected.dtype.kind == "c" or found.dtype.kind == "c"
    wide = np.complex128 if complex_ else np.float64
    left, right, truth = expected.astype(wide), found.astype(wide), exact.astype(wide)
    with np.errstate(all="ignore"):
        same = (left == right) | (np.isnan(left) & np.isnan(right))
        finite = np.isfinite(left) & np.isfinite(right)
        apart = np.where(finite, np.abs(right - truth), np.where(same, 0.0, np.inf))
    largest = float(np.abs(truth[np.isfinite(truth)]).max(initial=0.0))
    scale = largest or 1.0
    worst = float(apart.max(initial=0.0))
    counted = apart[np.isfinite(apart)]
    rms = float(np.sqrt(np.mean(np.square(counted)))) if counted.size and np.isfinite(worst) else worst
    different = np.argwhere(~same)
    first = tuple(int(i) for i in different[0]) if len(different) else None
    place = np.unravel_index(int(np.argmax(apart)), apart.shape) if worst > 0 else None
    return Difference(
        name,
        f"{expected.dtype}{list(expected.shape)}",
        worst,
        worst / scale,
        rms / scale,
        len(different),
        int(expected.size),
        first,
        "" if first is None else str(found[first]),
        "" if first is None else str(expected[first]),
        worst=None if place is None else tuple(int(i) for i in place),
        worst_found="" if place is None else str(found[place]),
        worst_expected="" if place is None else str(exact[place]),
        histogram=_histogram(apart / scale),
        non_finite=_non_finite(left, right, same),
    )


def _histogram(errors: Array) -> dict[str, int]:
    """How many errors are 0, and how many lie in each decade, named by its end; without those that have none."""
    with np.errstate(divide="ignore"):
        decades = np.ceil(np.log10(errors[(errors > 0) & np.isfinite(errors)]))
    decades = np.clip(decades, _DECADES[0], _DECADES[-1] + 1).astype(np.int64)
    counts = {"0": int((errors == 0).sum())}
    counts |= {f"1e{decade}": int((decades == decade).sum()) for decade in _DECADES}
    counts["more"] = int((decades > _DECADES[-1]).sum() + (~np.isfinite(errors)).sum())
    return {name: count for name, count in counts.items() if count}


def _non_finite(expected: Array, found: Array, same: Array) -> NonFinite | None:
    """Where numbers are not finite; None where all are."""
    finite = np.isfinite(expected) & np.isfinite(found)
    if finite.all():
        return None
    astray = np.argwhere(~same & ~finite)
    return NonFinite(
        int(np.isnan(expected).sum()),
        int(np.isinf(expected).sum()),
        int(np.isnan(found).sum()),
        int(np.isinf(found).sum()),
        tuple(int(i) for i in astray[0]) if len(astray) else None,
    )
