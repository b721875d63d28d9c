"""Every scalar primitive against an independent source: Python's integers and math module, exact fractions."""

from __future__ import annotations

import cmath
import itertools
import math
import operator
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.ir.dtype import DTYPES, Array, DType
from argosy.ir.formula import Formula
from argosy.ir.scalar import PRIMITIVES
from argosy.ops.numpy_scalar import NUMPY, convert
from argosy.ops.pointwise import evaluate_formula

INTEGERS = [DTYPES[f"{kind}{bits}"] for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
SUB_BYTE = [DTYPES[name] for name in ("int4", "uint4", "int2", "uint2")]
FLOATS = [DTYPES[f"float{bits}"] for bits in (16, 32, 64)]
NAN, INF = math.nan, math.inf


def array_of(column: Sequence[Any], dtype: DType) -> Array:
    """Numbers that `dtype` holds, as its elements; ml_dtypes takes them from an array only."""
    return np.array(column).astype(dtype.numpy) if dtype.numpy.kind == "V" else np.array(column, dtype.numpy)


def apply_all(primitive: str, dtype: DType, *columns: Sequence[Any]) -> list[Any]:
    """One primitive on columns of elements of one type, as Python's scalars."""
    arrays = [array_of(column, dtype) for column in columns]
    return evaluate_formula(Formula.of(primitive), arrays).tolist()


def apply(primitive: str, dtype: DType, *values: Any) -> Any:
    """One primitive on single elements of one type, as Python's scalar."""
    return apply_all(primitive, dtype, *([value] for value in values))[0]


def same(left: float, right: float) -> bool:
    """Equality in which NaN is itself and the zeros differ."""
    return (math.isnan(left) and math.isnan(right)) or (
        left == right and math.copysign(1, left) == math.copysign(1, right)
    )


def test_every_primitive_has_a_meaning_and_a_rule() -> None:
    assert set(NUMPY) == set(PRIMITIVES)
    assert all(row.rule for row in PRIMITIVES.values())


# ---- integers


def wrap(value: int, dtype: DType) -> int:
    low = -(1 << (dtype.bits - 1)) if dtype.kind == "int" else 0
    return (value - low) % (1 << dtype.bits) + low


def limits(dtype: DType) -> tuple[int, int]:
    low = -(1 << (dtype.bits - 1)) if dtype.kind == "int" else 0
    return low, low + (1 << dtype.bits) - 1


def truncated(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def power(a: int, b: int) -> int:
    if b >= 0:
        return pow(a, b, 1 << 64) if b > 64 else a**b
    return 0 if a == 0 else int(Fraction(a) ** max(b, -2 - b % 2))  # 1/x is 0 but for ±1, where parity is all


ON_INTEGERS: dict[str, Callable[..., int]] = {
    "neg": operator.neg,
    "abs": abs,
    "sign": lambda a: (a > 0) - (a < 0),
    "bitnot": operator.invert,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": truncated,
    "mod": lambda a, b: 0 if b == 0 else a % b,
    "fmod": lambda a, b: 0 if b == 0 else a - truncated(a, b) * b,
    "min": min,
    "max": max,
    "pow": power,
    "bitand": operator.and_,
    "bitor": operator.or_,
    "bitxor": operator.xor,
    "eq": operator.eq,
    "lt": operator.lt,
    "le": operator.le,
}


def test_the_table_covers_every_primitive_on_integers() -> None:
    elsewhere = {"shl", "shr", "convert", "select"}
    assert {name for name, row in PRIMITIVES.items() if "i" in row.domain} == set(ON_INTEGERS) | elsewhere


def integers(dtype: DType) -> list[int]:
    """All elements of a short type; of a wide one its ends, the surroundings of zero, and some of every size."""
    low, high = limits(dtype)
    if dtype.bits <= 4:
        return list(range(low, high + 1))
    generator = random.Random(dtype.bits)
    sizes = [generator.getrandbits(bits) for bits in range(dtype.bits)]
    found = {*range(-3, 12), low, low + 1, high, high - 1, *sizes, *(-size for size in sizes)}
    return sorted(number for number in found if low <= number <= high)


@pytest.mark.parametrize("dtype", [*INTEGERS, *SUB_BYTE], ids=str)
@pytest.mark.parametrize("name", ON_INTEGERS)
def test_integers(name: str, dtype: DType) -> None:
    cases = list(itertools.product(integers(dtype), repeat=PRIMITIVES[name].arity))
    for values, found in zip(cases, apply_all(name, dtype, *zip(*cases, strict=True)), strict=True):
        expected = ON_INTEGERS[name](*values)
        assert found == (expected if isinstance(expected, bool) else wrap(expected, dtype)), values


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@given(data=st.data())
def test_shifts(dtype: DType, data: st.DataObject) -> None:
    low, high = limits(dtype)
    value, by = data.draw(st.integers(low, high)), data.draw(st.integers(0, min(high, 2 * dtype.bits)))
    assert apply("shl", dtype, value, by) == (0 if by >= dtype.bits else wrap(value << by, dtype))
    assert apply("shr", dtype, value, by) == value >> by  # Python's shift is arithmetic and never ends


def test_powers_of_integers_by_other_types() -> None:
    def powers(base: Array, exponent: Array) -> list[Any]:
        return evaluate_formula(Formula.of("pow"), [base, exponent]).tolist()

    assert powers(np.array([3, 2, -1], np.int8), np.array([300, 256, 201], np.int64)) == [
        wrap(3**300, DTYPES["int8"]),
        0,
        -1,
    ]
    big = 3**39
    assert powers(np.array([big, 5]), np.array([1, -1])) == [big, 0]  # exact beside a negative exponent
    assert powers(np.array([4, 2, 9], np.int32), np.array([0.5, -1, 2.5], np.float32)) == [2, 0, 243]
    assert powers(np.array([-2.0], np.float32), np.array([3], np.int64)) == [-8.0]
    assert powers(np.array([-1.0], np.float32), np.array([2**24 + 1], np.int64)) == [-1.0]
    half = Formula.trace(lambda x: x.pow(0.5), 1)
    assert evaluate_formula(half, [np.array([4, 9], np.int32)]).tolist() == [2, 3]


# ---- bools, selection, strings

BOOLS = st.booleans()


@given(BOOLS, BOOLS)
def test_logic(a: bool, b: bool) -> None:
    kind = DTYPES["bool"]
    assert apply("and", kind, a, b) is (a and b)
    assert apply("or", kind, a, b) is (a or b)
    assert apply("xor", kind, a, b) is (a != b)
    assert apply("eq", kind, a, b) is (a == b)
    assert apply("not", kind, a) is (not a)


def test_select_takes_elements_as_they_are() -> None:
    condition = np.array([True, False, True])
    for left, right, expected in (
        (np.array([NAN, 1, -0.0]), np.array([2.0, NAN, 3]), [NAN, NAN, -0.0]),
        (np.array([1, 2, 3]), np.array([4, 5, 6]), [1, 5, 3]),
    ):
        found = evaluate_formula(Formula.of("select"), [condition, left, right])
        assert found.dtype == left.dtype
        assert all(map(same, found.tolist(), expected))


def test_strings_are_compared() -> None:
    left, right = np.array(["a", "é", ""], object), np.array(["a", "e", ""], object)
    assert evaluate_formula(Formula.of("eq"), [left, right]).tolist() == [True, False, True]


# ---- floats

ELEMENTARY: dict[str, Callable[[float], float]] = {
    name: getattr(math, name)
    for name in (
        *("sqrt", "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "asin", "acos", "atan"),
        *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf"),
    )
}
EXACT: dict[str, Callable[[float], float]] = {
    "neg": operator.neg,
    "abs": abs,
    "sign": lambda x: x if math.isnan(x) else float((x > 0) - (x < 0)),
    "floor": lambda x: x if not math.isfinite(x) else math.copysign(math.floor(x), x),
    "ceil": lambda x: x if not math.isfinite(x) else math.copysign(math.ceil(x), x),
    "round": lambda x: x if not math.isfinite(x) else math.copysign(round(x), x),
    "isnan": math.isnan,
    "isinf": math.isinf,
}
LIMITS: dict[tuple[str, float], float] = {  # where Python raises instead of what IEEE 754 says
    ("log", 0.0): -INF,
    ("log1p", -1.0): -INF,
    ("atanh", 1.0): INF,
    ("atanh", -1.0): -INF,
    ("exp", INF): INF,
}


def by_math(name: str, x: float) -> float:
    if (name, x) in LIMITS:
        return LIMITS[name, x]
    try:
        return ELEMENTARY[name](x)
    except OverflowError:
        return -INF if name == "sinh" and x < 0 else INF
    except ValueError:
        return NAN


def test_the_tables_cover_every_primitive_on_floats() -> None:
    unary = {name for name, row in PRIMITIVES.items() if "f" in row.domain and row.arity == 1} - {"convert"}
    assert unary == set(ELEMENTARY) | set(EXACT)


def floats(dtype: DType) -> list[float]:
    """Edges, random numbers of usual size, and random bits, which are of every size and NaN."""
    generator = np.random.default_rng(dtype.bits)
    edges = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, INF, -INF, NAN]
    usual = [*generator.uniform(-1, 1, 300), *generator.uniform(-20, 20, 300)]
    bits = np.frombuffer(generator.bytes(300 * dtype.numpy.itemsize), dtype.numpy)
    return [*np.array(edges + usual).astype(dtype.numpy).tolist(), *bits.tolist()]


def pairs_of(dtype: DType) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Every pair of the edges and some others, as two columns."""
    some = floats(dtype)[:12] + floats(dtype)[12::13]
    left, right = zip(*itertools.product(some, repeat=2), strict=True)
    return left, right


def ulps(found: float, expected: float, dtype: DType) -> float:
    """Distance in units of the last place of `dtype`; infinite where one is not finite and they differ."""
    with np.errstate(all="ignore"):
        rounded = float(np.asarray(expected).astype(dtype.numpy))
    if (math.isnan(found) and math.isnan(rounded)) or found == rounded:
        return 0
    if not (math.isfinite(found) and math.isfinite(rounded)):
        return INF
    return abs(found - expected) / float(np.spacing(np.abs(dtype.numpy.type(rounded))))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ELEMENTARY)
def test_elementary_functions(name: str, dtype: DType) -> None:
    # Half an ulp, of which the compute type may lose a little for float16; libraries of numpy are good to 4.
    allowed = 0.5 if name == "sqrt" else 0.6 if dtype.bits == 16 else 4
    elements = floats(dtype)
    for x, found in zip(elements, apply_all(name, dtype, elements), strict=True):
        expected = by_math(name, x)
        assert ulps(found, expected, dtype) <= allowed, x
        if expected == 0 and x == 0:
            assert same(found, expected)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", EXACT)
def test_exact_functions(name: str, dtype: DType) -> None:
    elements = floats(dtype)
    for x, found in zip(elements, apply_all(name, dtype, elements), strict=True):
        expected = EXACT[name](x)
        assert type(found) is type(expected)
        assert same(found, expected) or (name == "sign" and x == 0 == found), x


def test_erf_is_good_to_some_ulps_of_float64() -> None:
    points = np.concatenate([np.linspace(-7, 7, 20_001), np.geomspace(1e-300, 1, 2_000), [0.46875, 4.0, INF, -INF]])
    found = NUMPY["erf"](points)
    expected = np.array([math.erf(x) for x in points])
    assert np.max(np.abs(found - expected) / np.spacing(np.abs(expected) + 1e-320)) <= 4
    assert np.isnan(NUMPY["erf"](np.array([NAN]))[0])
    assert same(NUMPY["erf"](np.array([-0.0]))[0].item(), -0.0)


def quotient(a: float, b: float) -> float:
    if b != 0:
        return a / b
    return NAN if a == 0 or math.isnan(a) else math.copysign(INF, a) * math.copysign(1, b)


def floored(a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
        return NAN
    return a % b


def remainder(a: float, b: float) -> float:
    try:
        return math.fmod(a, b)
    except ValueError:
        return NAN


ON_FLOATS: dict[str, Callable[[float, float], float]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": quotient,
    "mod": floored,
    "fmod": remainder,
    "min": lambda a, b: NAN if math.isnan(a) or math.isnan(b) else min(a, b),
    "max": lambda a, b: NAN if math.isnan(a) or math.isnan(b) else max(a, b),
    "eq": operator.eq,
    "lt": operator.lt,
    "le": operator.le,
}


@pytest.mark.parametrize("name", ON_FLOATS)
def test_binary_functions_on_float64(name: str) -> None:
    left, right = pairs_of(DTYPES["float64"])
    for a, b, found in zip(left, right, apply_all(name, DTYPES["float64"], left, right), strict=True):
        expected = ON_FLOATS[name](a, b)
        assert type(found) is type(expected)
        assert same(found, expected) or found == expected == 0, (a, b)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
@pytest.mark.parametrize("dtype", [DTYPES["float16"], DTYPES["bfloat16"], DTYPES["float32"]], ids=str)
def test_arithmetic_rounds_once(name: str, dtype: DType) -> None:
    codes = np.frombuffer(np.random.default_rng(1).bytes(4000 * dtype.numpy.itemsize), dtype.numpy)
    left, right = codes.reshape(2, 2000).tolist()
    # float64, then float32, holds more than twice the bits of the type: to round from there is to round once.
    with np.errstate(all="ignore"):
        exact = np.array([ON_FLOATS[name](a, b) for a, b in zip(left, right, strict=True)])
        expected = exact.astype(np.float32).astype(dtype.numpy).tolist()
    assert all(map(same, apply_all(name, dtype, left, right), expected))


def by_pow(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        return math.copysign(INF, a) if a < 0 and b % 2 == 1 else INF
    except ValueError:
        if a == 0:  # to a negative power
            return math.copysign(INF, a) if b % 2 == 1 else INF
        return NAN


def test_pow_is_that_of_c() -> None:
    left, right = pairs_of(DTYPES["float64"])
    for a, b, found in zip(left, right, apply_all("pow", DTYPES["float64"], left, right), strict=True):
        assert ulps(found, by_pow(a, b), DTYPES["float64"]) <= 2, (a, b)


# ---- complex

COMPLEX = st.complex_numbers(max_magnitude=1e6, allow_nan=False, allow_infinity=False)


@given(COMPLEX, COMPLEX)
def test_complex_arithmetic(a: complex, b: complex) -> None:
    kind = DTYPES["complex128"]
    assert cmath.isclose(apply("add", kind, a, b), a + b)
    assert cmath.isclose(apply("sub", kind, a, b), a - b)
    assert cmath.isclose(apply("mul", kind, a, b), a * b, rel_tol=1e-9, abs_tol=1e-9)
    assert apply("neg", kind, a) == -a
    assert apply("eq", kind, a, b) is (a == b)
    if abs(b) > 1e-3:
        assert cmath.isclose(apply("div", kind, a, b), a / b, rel_tol=1e-9, abs_tol=1e-9)


# ---- conversion


SOURCES = [*FLOATS, DTYPES["bfloat16"], DTYPES["float8_e5m2"], DTYPES["float8_e4m3fn"]]


@pytest.mark.parametrize("target", [*INTEGERS, *SUB_BYTE], ids=str)
@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_floats_become_integers(source: DType, target: DType) -> None:
    large = [sign * 2.0**exponent * 1.37 for exponent in range(5, 70) for sign in (1, -1)]
    with np.errstate(all="ignore"):
        array = np.array([*floats(DTYPES["float64"]), *large, 2.0**63, -(2.0**63), 2.0**64]).astype(source.numpy)
    expected = [wrap(math.trunc(x), target) if math.isfinite(x) else 0 for x in array.astype(np.float64).tolist()]
    assert convert(array, target).tolist() == expected


@pytest.mark.parametrize("target", [*INTEGERS, *SUB_BYTE], ids=str)
@pytest.mark.parametrize("source", [*INTEGERS, *SUB_BYTE], ids=str)
def test_integers_become_integers(source: DType, target: DType) -> None:
    values = integers(source)
    assert convert(array_of(values, source), target).tolist() == [wrap(value, target) for value in values]


SHORT = [
    DTYPES[name]
    for name in ("float16", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
]


def nearest_even(value: Fraction, dtype: DType) -> float:
    """The element nearest to `value`, of two equally near the one with the even code, for values inside the range."""
    width = {16: np.uint16, 8: np.uint8}[dtype.bits]
    codes = np.arange(1 << (dtype.bits - 1), dtype=width)
    with np.errstate(all="ignore"):
        elements = codes.view(dtype.numpy).astype(np.float64)
    finite = np.flatnonzero(np.isfinite(elements))
    position = int(np.searchsorted(elements[finite], abs(float(value))))
    near = [int(finite[at]) for at in range(max(position - 2, 0), min(position + 3, len(finite)))]
    best = min(near, key=lambda code: (abs(Fraction(float(elements[code])) - abs(value)), code % 2))
    return math.copysign(float(elements[best]), value)


@pytest.mark.parametrize("target", SHORT, ids=str)
@given(data=st.data())
def test_conversion_into_short_floats_rounds_once(target: DType, data: st.DataObject) -> None:
    """Near ties, where a first rounding to float32 would forget on which side the value lies."""
    code = data.draw(st.integers(1, (1 << (target.bits - 1)) - 1))
    width = {16: np.uint16, 8: np.uint8}[target.bits]
    pair = np.array([code - 1, code], width).view(target.numpy).astype(np.float64)
    if not np.isfinite(pair).all():
        return
    tie = float(pair.mean())
    value = data.draw(
        st.sampled_from([tie, math.nextafter(tie, INF), math.nextafter(tie, 0), tie * (1 + 2**-40), -tie])
    )
    expected = nearest_even(Fraction(value), target)
    assert float(convert(np.array([value]), target)[0]) == expected


@pytest.mark.parametrize("source", [DTYPES["float32"], DTYPES["float64"]], ids=str)
def test_conversion_into_powers_of_two_takes_the_nearest(source: DType) -> None:
    """Of two equally near the larger one, also between the two smallest, which float32 holds as a subnormal and not."""
    powers = [2.0**exponent for exponent in range(-127, 128)]
    ties = [1.5 * power for power in powers[:-1]]
    middle = np.array(ties, source.numpy)
    kind = DTYPES["float8_e8m0fnu"]
    assert convert(middle, kind).astype(np.float64).tolist() == powers[1:]
    assert convert(np.nextafter(middle, source.numpy.type(0)), kind).astype(np.float64).tolist() == powers[:-1]
    assert convert(np.nextafter(middle, source.numpy.type(INF)), kind).astype(np.float64).tolist() == powers[1:]
    assert convert(np.array(powers, source.numpy), kind).astype(np.float64).tolist() == powers
    none = np.array([0.0, -0.0, -1.0, INF, -INF, NAN, 1.5 * 2.0**127], source.numpy)
    assert np.isnan(convert(none, kind).astype(np.float64)).all()
    assert float(convert(np.array([1e-44], source.numpy), kind)[0]) == 2.0**-127


@pytest.mark.parametrize("source", [DTYPES["int64"], DTYPES["uint64"], DTYPES["int32"]], ids=str)
@given(data=st.data())
def test_wide_integers_into_bfloat16_round_once(source: DType, data: st.DataObject) -> None:
    low, high = limits(source)
    exponent = data.draw(st.integers(9, source.bits - 2))
    significand = data.draw(st.integers(128, 255))
    tie = (2 * significand + 1) << (exponent - 8)  # between two elements of 8 bits of significand
    value = data.draw(st.sampled_from([tie, tie + 1, tie - 1, -tie, -tie - 1]))
    if low <= value <= high:
        found = float(convert(np.array([value], source.numpy), DTYPES["bfloat16"])[0])
        assert found == nearest_even(Fraction(value), DTYPES["bfloat16"])


@pytest.mark.parametrize("source", [*FLOATS, *SHORT, DTYPES["float4_e2m1fn"]], ids=str)
def test_floats_become_bools(source: DType) -> None:
    array = np.array([0.0, -0.0, 0.5, -2.0, 4.0]).astype(source.numpy)
    assert convert(array, DTYPES["bool"]).tolist() == [False, False, True, True, True]


def test_bools_become_numbers() -> None:
    array = np.array([True, False])
    for kind in (*INTEGERS, *FLOATS, *SHORT, DTYPES["int4"], DTYPES["complex64"]):
        converted = convert(array, kind)
        assert converted.dtype == kind.numpy
        assert converted.astype(np.complex128).tolist() == [1, 0]


def test_complex_numbers_lose_their_imaginary_part() -> None:
    array = np.array([1.5 + 2j, -3.5j])
    assert convert(array, DTYPES["float32"]).tolist() == [1.5, 0.0]
    assert convert(array, DTYPES["int32"]).tolist() == [1, 0]
    assert convert(array, DTYPES["complex64"]).tolist() == array.tolist()


def test_conversion_to_the_same_type_copies_nothing() -> None:
    array = np.array([1.0, 2.0])
    assert convert(array, DTYPES["float64"]) is array


def test_nan_and_infinities_in_short_floats() -> None:
    values = np.array([NAN, INF, -INF, 1e30])
    half = convert(values, DTYPES["float16"])
    assert half.tolist()[1:] == [INF, -INF, INF]
    assert math.isnan(half.tolist()[0])
    assert convert(values, DTYPES["bfloat16"]).astype(np.float64).tolist()[1:3] == [INF, -INF]
    small = convert(values, DTYPES["float8_e4m3fn"])
    assert small.dtype == ml_dtypes.float8_e4m3fn
    assert np.isnan(small.astype(np.float32)).all()
