"""Whether two sets of outputs agree: names, order, structure, types, shapes, non-finite positions, then the numbers.

Two rules for the numbers: `Agree` is the project's own, where no tolerance is given; `AllClose` is the
element-by-element test of ONNX's backend suite. What comes before the numbers is the same for both, and
nothing is forgiven there: an output that is missing, renamed, of another type or shape is a mismatch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import ml_dtypes
import numpy as np

from argosy.errors import ModelError
from argosy.ir.dtype import STRING, Array, DType, dtype_of
from argosy.ir.program import Program

__all__ = ["Agree", "AllClose", "Mismatch", "Rule", "compare", "is_quantised"]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One disagreement: the output (with the place in it, for sequences and maps) and what is wrong with it."""

    output: str
    what: str

    def __str__(self) -> str:
        return f"{self.output}: {self.what}"


class Rule(Protocol):
    """How far numbers may be apart."""

    def allowed(self, expected: Array, dtype: DType) -> Array:
        """The largest difference that each element may have; an array that broadcasts to `expected`.

        `expected` holds numbers of element type `dtype` in a type that computes (float32, float64, complex)
        and may hold non-finite ones, where the answer does not matter.
        """
        ...

    def allowed_integer(self, expected: Array, dtype: DType) -> int:
        """The same for an output of integers."""
        ...


# Share of the largest expected magnitude by which an element may be off.
_SHARE: Final = {"float16": 1e-2, "bfloat16": 5e-2}
_SHARE_WIDE: Final = 1e-3
# What the precision of the code allows where the outputs themselves are wider.
_PRECISION: Final = {"fp16": _SHARE["float16"], "tf32": _SHARE["float16"], "bf16": _SHARE["bfloat16"]}


@dataclass(frozen=True, slots=True)
class Agree:
    """Within a share of the output's largest expected magnitude: 1e-3 in fp32 and wider, 1e-2 in fp16, 5e-2 in bf16.

    `quantised` is for models with quantised ops: 5e-2 for every float, and integers may differ by one unit.
    Types shorter than 16 bits may be off by one step at the largest magnitude. `precision` is that of the code, which
    may compute in a shorter type than it gives: fp32, fp16, bf16, or tf32, which has the significand of fp16.
    """

    quantised: bool = False
    precision: str = "fp32"

    def allowed(self, expected: Array, dtype: DType) -> Array:
        """A share of the largest finite magnitude."""
        share = max(_SHARE.get(dtype.name, _SHARE_WIDE), _PRECISION.get(self.precision, 0.0))
        if self.quantised:
            share = max(share, 5e-2)
        if dtype.is_float and dtype.bits < 16:
            share = max(share, float(ml_dtypes.finfo(dtype.numpy).eps))  # type: ignore[no-untyped-call]
        finite = np.abs(expected[np.isfinite(expected)])
        return np.asarray(share * float(finite.max(initial=0.0)))

    def allowed_integer(self, expected: Array, dtype: DType) -> int:
        """One unit in quantised models."""
        return int(self.quantised)


@dataclass(frozen=True, slots=True)
class AllClose:
    """ONNX's rule: |found - expected| <= atol + rtol |expected|, element by element; integers are equal.

    Source: `Runner.assert_similar_outputs` of onnx.backend.test.runner, which is `numpy.testing.assert_allclose`
    with at least two steps of bfloat16 for that type. It lets large integers differ by `rtol` too; here they may not.
    """

    rtol: float = 1e-3
    atol: float = 1e-7

    def allowed(self, expected: Array, dtype: DType) -> Array:
        """`atol` and a share of each element."""
        rtol = max(self.rtol, 2.0**-6) if dtype.name == "bfloat16" else self.rtol
        return np.asarray(self.atol + rtol * np.abs(expected))

    def allowed_integer(self, expected: Array, dtype: DType) -> int:
        """Nothing."""
        return 0


def is_quantised(program: Program) -> bool:
    """Whether a program has quantised ops, for `Agree`."""
    return any("quantize" in instruction.op.name for instruction in program.main.walk())


def compare(
    expected: Mapping[str, Any], found: Any, rule: Rule, exact: Mapping[str, Any] | None = None
) -> tuple[Mismatch, ...]:
    """Every way in which `found` differs from `expected`; empty where they agree.

    Values are numpy arrays, lists (sequences), dicts of scalars or arrays (maps) or None (an absent optional). `exact`
    are the expected values in float64 where these are known better than their type can tell: then it is from them that
    finite floats may not be far.
    """
    if not isinstance(found, Mapping):
        return (Mismatch("outputs", f"expected a mapping from names to values, found {type(found).__name__}"),)
    mismatches = [Mismatch(name, "is missing") for name in expected if name not in found]
    mismatches += [Mismatch(str(name), "is not an output of the model") for name in found if name not in expected]
    if not mismatches and list(found) != list(expected):
        mismatches.append(Mismatch("outputs", f"their order is {list(found)}, expected {list(expected)}"))
    for name, value in expected.items():
        if name in found:
            mismatches += _compare_value(name, value, found[name], rule, value if exact is None else exact[name])
    return tuple(mismatches)


def _compare_value(place: str, expected: Any, found: Any, rule: Rule, exact: Any) -> Iterator[Mismatch]:
    if expected is None or found is None:
        if expected is not None or found is not None:
            yield Mismatch(place, f"expected {_kind(expected)}, found {_kind(found)}")
    elif isinstance(expected, np.ndarray):
        what = _compare_array(expected, found, rule, exact)
        if what:
            yield Mismatch(place, what)
    elif isinstance(expected, Mapping):
        if not isinstance(found, Mapping) or list(found) != list(expected):
            yield Mismatch(place, f"expected {_kind(expected)}, found {_kind(found)}")
            return
        for key, value in expected.items():
            yield from _compare_value(f"{place}[{key!r}]", value, found[key], rule, exact[key])
    elif isinstance(expected, Sequence) and not isinstance(expected, str):
        if not isinstance(found, list | tuple) or len(found) != len(expected):
            yield Mismatch(place, f"expected {_kind(expected)}, found {_kind(found)}")
            return
        for index, (left, right) in enumerate(zip(expected, found, strict=True)):
            yield from _compare_value(f"{place}[{index}]", left, right, rule, exact[index])
    elif isinstance(expected, np.generic) and isinstance(found, np.generic):
        what = _compare_array(np.asarray(expected), np.asarray(found), rule, np.asarray(exact))
        if what:
            yield Mismatch(place, what)
    elif type(expected) is not type(found) or expected != found:
        yield Mismatch(place, f"expected {expected!r}, found {found!r}")


def _kind(value: Any) -> str:
    """A value's structure in words."""
    if value is None:
        return "an absent optional"
    if isinstance(value, np.ndarray):
        return f"a tensor {value.dtype}{list(value.shape)}"
    if isinstance(value, list | tuple):
        return f"a sequence of {len(value)}"
    if isinstance(value, Mapping):
        return f"a map with the keys {list(value)}"
    return type(value).__name__


def _compare_array(expected: Array, found: Any, rule: Rule, exact: Array) -> str:
    """What is wrong with the array `found`, or an empty text."""
    if not isinstance(found, np.ndarray):
        return f"expected {_kind(expected)}, found {_kind(found)}"
    dtype = dtype_of(expected.dtype)
    try:
        other = dtype_of(found.dtype)
    except ModelError:
        return f"expected {dtype}, found the numpy type {found.dtype}"
    if other is not dtype:
        return f"expected {dtype}, found {other}"
    if found.shape != expected.shape:
        return f"expected the shape {list(expected.shape)}, found {list(found.shape)}"
    if dtype is STRING or dtype.kind == "bool":
        return _first_difference(expected, found, expected != found)
    if dtype.is_integer:
        return _first_difference(expected, found, _distance(expected, found) > rule.allowed_integer(expected, dtype))
    return _compare_floats(expected, found, dtype, rule, exact)


def _distance(expected: Array, found: Array) -> Array:
    """|expected - found| of integers, without overflow."""
    if expected.dtype.kind == "V":  # ml_dtypes' 2- and 4-bit integers do not subtract
        expected, found = expected.astype(np.int64), found.astype(np.int64)
    unsigned = np.dtype(f"u{expected.dtype.itemsize}")
    return (np.maximum(expected, found).view(unsigned) - np.minimum(expected, found).view(unsigned)).view(unsigned)


def _compare_floats(expected: Array, found: Array, dtype: DType, rule: Rule, exact: Array) -> str:
    # In float64, so that the difference of the ends of float32 is a number.
    wide = np.complex128 if dtype.kind == "complex" else np.float64
    truth = exact.astype(wide)
    if dtype.bits < 32:
        expected, found = expected.astype(np.float32), found.astype(np.float32)
    with np.errstate(all="ignore"):
        unlike = ~((expected == found) | (np.isnan(expected) & np.isnan(found)))
        finite = np.isfinite(expected) & np.isfinite(found)
        astray = ~finite & unlike
        if astray.any():
            return _first_difference(expected, found, astray, "non-finite positions differ")
        difference = np.abs(found.astype(wide) - truth)
        allowed = np.broadcast_to(rule.allowed(truth, dtype), expected.shape)
        off = finite & ~(difference <= allowed)
    if not off.any():
        return ""
    worst = np.unravel_index(np.argmax(np.where(off, difference, -1.0)), expected.shape)
    return (
        f"{int(off.sum())} of {off.size} elements differ, the most at {[int(i) for i in worst]}: "
        f"{found[worst]}, expected {exact[worst]}, off by {difference[worst]:.3g} (allowed: {allowed[worst]:.3g})"
    )


def _first_difference(expected: Array, found: Array, wrong: Array, what: str = "elements differ") -> str:
    wrong = np.asarray(wrong, np.bool_)
    if not wrong.any():
        return ""
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    shown = f"{found[first]!s}, expected {expected[first]!s}"
    return f"{int(wrong.sum())} of {wrong.size}: {what}, first at {list(first)}: {shown}"
