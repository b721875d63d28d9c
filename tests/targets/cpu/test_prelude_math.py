"""The functions of analysis in C: as accurate as docs/accuracy.md says, on each CPU level, and right at every edge."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from argosy.ir.dtype import FLOAT32, FLOAT64, Array, DType
from argosy.ir.scalar import PRIMITIVES
from argosy.ops.numpy_scalar import NUMPY
from argosy.targets.cpu.codegen import scalar
from tests.targets.cpu.loops import LEVELS, Loop, Loops, equal, needs_compiler, random_bits

DOCS = Path(__file__).resolve().parents[3] / "docs" / "accuracy.md"
ROW = re.compile(r"^\| (\w+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", re.MULTILINE)
BOUNDS = {name: (float(wide), float(exact), float(fast)) for name, wide, exact, fast in ROW.findall(DOCS.read_text())}
UNARY = [name for name in BOUNDS if name != "pow"]
COUNT = 30000

# Where a function varies: below and above, uniform samples are drawn.
RANGES = {
    "exp": (-104, 89), "expm1": (-20, 89), "log": (0.2, 4), "log1p": (-0.9, 3), "asin": (-1, 1), "acos": (-1, 1),
    "sinh": (-90, 90), "cosh": (-90, 90), "tanh": (-10, 10), "acosh": (1, 10), "atanh": (-1, 1), "erf": (-6, 6),
}  # fmt: skip
WIDE = {"exp": (-745, 709), "expm1": (-40, 709), "sinh": (-710, 710), "cosh": (-710, 710), "tanh": (-22, 22)}
EDGES = (
    0.0, 1.0, 0.5, 2.0, 3.0, 1e-45, 1e-40, 5e-324, 1e-310, np.inf, np.nan, 3.4e38, 1.7e308, 88.7, 88.8, 103.9, 104.1,
    709.7, 709.8, 745.1, 745.2, 0.55, 3.93, 2.0**17, 2.0**20, 1e22, 2.0**60, 2.0**28, 1.5707964, 1.5707963267948966,
    6381956970095103 * 2.0**797,  # nearer to a multiple of pi/2 than any other number
)  # fmt: skip

pytestmark = needs_compiler
every_level = pytest.mark.parametrize("cpu", LEVELS)
extended = pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="needs a long double wider than float64")


def apply(name: str, kind: DType) -> str:
    """The primitive over x0 and, for pow, x1."""
    arguments = ["x0", "x1"] if name == "pow" else ["x0"]
    return scalar.apply(name, arguments, [kind] * len(arguments), kind)


def loop(name: str, kind: DType, *, vector: bool = False) -> Loop:
    inputs = (kind, kind) if name == "pow" else (kind,)
    return Loop(f"{name}_{'vector' if vector else kind}", inputs, kind, apply(name, kind), vector)


WIDE_LOOPS = [loop(name, FLOAT64) for name in BOUNDS]
SINGLE_LOOPS = [loop(name, FLOAT32, vector=vector) for name in BOUNDS for vector in (False, True)]


def arguments(name: str, kind: DType) -> Array:
    """Edges of both signs, random bits, uniform numbers and numbers of all magnitudes."""
    random = np.random.default_rng(11)
    low, high = (WIDE if kind is FLOAT64 else {}).get(name, RANGES.get(name, (-10, 10)))
    spread = np.exp(random.uniform(-30, np.log(high), COUNT)) * random.choice([-1, 1], COUNT)
    edges = np.array([*EDGES, *(-np.array(EDGES))])
    with np.errstate(all="ignore"):
        parts = [
            edges, random.uniform(low, high, COUNT), spread, 1 + spread / 16, np.ldexp(1.5, np.arange(-1074, 1024))
        ]  # fmt: skip
        return np.concatenate([random_bits(kind, COUNT, 12), np.concatenate(parts).astype(kind.numpy)])


def erf_series(x: Array) -> Array:
    """erf in extended precision: 2 / sqrt(pi) exp(-x^2) sum of 2^n x^(2n+1) / (2n+1)!!, whose terms have one sign."""
    size = np.minimum(np.abs(x), 7)
    term = total = size.copy()
    for n in range(1, 400):
        term = term * (2 * size * size) / (2 * n + 1)
        total = total + term
    return np.copysign(total * np.exp(-size * size) * 2 / np.sqrt(np.longdouble("3.14159265358979323846")), x)


def reference(name: str) -> Callable[..., Array]:
    return erf_series if name == "erf" else NUMPY[name]


@np.errstate(all="ignore")
def worst(found: Array, wanted: Array) -> tuple[float, int]:
    """The largest error in ulp and where; infinite where one is NaN or infinite, or a zero has the wrong sign."""
    kind = found.dtype
    rounded = wanted.astype(kind)
    unit = np.maximum(np.spacing(np.abs(rounded)), np.finfo(kind).smallest_subnormal)
    finite = np.isfinite(found) & np.isfinite(rounded)
    error = np.where(finite, np.abs(found.astype(wanted.dtype) - wanted) / unit, 0).astype(np.float64)
    zeros = (found == 0) & (wanted == 0)
    error[(~finite | zeros) & ~equal(found, rounded)] = np.inf
    where = int(np.argmax(error))
    return float(error[where]), where


def check(name: str, found: Array, wanted: Array, bound: float, *inputs: Array) -> None:
    error, where = worst(found, wanted)
    at = [value[where] for value in inputs]
    assert error <= bound, f"{name}{at} is {found[where]!r}, not {wanted[where]!r}: {error:.3f} ulp"


def powers(kind: DType) -> tuple[Array, Array]:
    """Pairs whose power is in range, random bits, and all pairs of edges."""
    random = np.random.default_rng(13)
    reach = 700 if kind is FLOAT64 else 86
    bases = np.exp(random.uniform(-reach, reach, COUNT))
    near = 1 + random.uniform(-0.4, 0.5, COUNT)
    exponents = [random.uniform(-reach, reach * 0.95, COUNT) / np.log(base) for base in (bases, near)]
    edges = np.array([0, 0.5, 1, 2, 3, 1e-40, 1e30, 2.0**53 - 1, 2.0**64, np.inf, np.nan])
    left, right = np.meshgrid(np.concatenate([edges, -edges]), np.concatenate([edges, -edges]))
    negative = -random.uniform(0, 10, COUNT)
    x = [bases, near, negative, left.ravel()]
    y = [*exponents, random.integers(-30, 30, COUNT).astype(float), right.ravel()]
    with np.errstate(all="ignore"):
        return (
            np.concatenate([random_bits(kind, COUNT, 14), np.concatenate(x).astype(kind.numpy)]),
            np.concatenate([random_bits(kind, COUNT, 15), np.concatenate(y).astype(kind.numpy)]),
        )


@extended
@every_level
@pytest.mark.parametrize("name", UNARY)
def test_float64(name: str, cpu: str) -> None:
    x = arguments(name, FLOAT64)
    with np.errstate(all="ignore"):
        wanted = reference(name)(x.astype(np.longdouble))
    check(name, Loops(WIDE_LOOPS, cpu)(f"{name}_float64", x), wanted, BOUNDS[name][0], x)


@extended
@every_level
def test_float64_pow(cpu: str) -> None:
    x, y = powers(FLOAT64)
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    check("pow", Loops(WIDE_LOOPS, cpu)("pow_float64", x, y), wanted, BOUNDS["pow"][0], x, y)


@every_level
@pytest.mark.parametrize("shape", ["float32", "vector"])
@pytest.mark.parametrize("exact", [True, False], ids=["exact", "standard"])
@pytest.mark.parametrize("name", UNARY)
def test_float32(name: str, exact: bool, shape: str, cpu: str) -> None:
    x = arguments(name, FLOAT32)
    with np.errstate(all="ignore"):
        wanted = NUMPY[name](x.astype(np.float64))
    found = Loops(SINGLE_LOOPS, cpu, exact=exact)(f"{name}_{shape}", x)
    check(name, found, wanted, BOUNDS[name][1 if exact else 2], x)


@every_level
@pytest.mark.parametrize("shape", ["float32", "vector"])
@pytest.mark.parametrize("exact", [True, False], ids=["exact", "standard"])
def test_float32_pow(exact: bool, shape: str, cpu: str) -> None:
    x, y = powers(FLOAT32)
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(np.float64), y.astype(np.float64))
    found = Loops(SINGLE_LOOPS, cpu, exact=exact)(f"pow_{shape}", x, y)
    check("pow", found, wanted, BOUNDS["pow"][1 if exact else 2], x, y)


@every_level
@pytest.mark.parametrize("vector", [False, True])
@pytest.mark.parametrize("exponent", [2, 3])
def test_small_powers_are_products(exponent: int, vector: bool, cpu: str) -> None:
    constant = scalar.constant(exponent, FLOAT32, 16 if vector else 1)
    text = scalar.apply("pow", ["x0", constant], [FLOAT32, FLOAT32], FLOAT32)
    assert "pow" not in text
    x = arguments("pow", FLOAT32)
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(np.float64), exponent)
    found = Loops([Loop("power", (FLOAT32,), FLOAT32, text, vector)], cpu)("power", x)
    check("pow", found, wanted, 0.51, x)


def test_every_function_has_its_bound() -> None:
    elementary = {name for name, row in PRIMITIVES.items() if row.domain == "f" and row.signature == "same"}
    assert set(BOUNDS) == elementary - {"floor", "ceil", "round", "sqrt"} | {"pow"}
