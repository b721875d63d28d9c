"""The scalar table: complete, and every primitive and conversion means what it means in numpy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from argosy.errors import InternalError
from argosy.ir.dtype import BOOL, DTYPES, FLOAT32, INT32, INT64, STRING, Array, DType, dtype
from argosy.ir.scalar import PRIMITIVES
from argosy.ops.numpy_scalar import NUMPY, convert
from argosy.targets.cpu.codegen import scalar
from tests.targets.cpu.loops import LEVELS, Loop, Loops, equal, needs_compiler, random_bits

NUMBERS = [kind for kind in DTYPES.values() if kind is not STRING]
COMPUTE = [kind for kind in NUMBERS if kind.compute is kind]
LETTERS = {"float": "f", "int": "i", "uint": "i", "bool": "b", "complex": "c"}
ROUNDED = ("floor", "ceil", "round", "sqrt")
EXACT = [name for name, row in PRIMITIVES.items() if "i" in row.domain or "b" in row.domain or name in ROUNDED]
COUNT = 20000

every_level = pytest.mark.parametrize("cpu", LEVELS)


def edges(kind: DType) -> Array:
    """Values at which rules apply, of a compute type."""
    if kind.kind == "bool":
        return np.array([False, True])
    if kind.is_integer:
        info = np.iinfo(kind.numpy)
        small = [0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 31, 32, 33, 63, 64, 65, info.max, info.max - 1, info.min, info.min + 1]
        return np.array(small + ([-1, -2, -7, -8, -64] if kind.kind == "int" else []), kind.numpy)
    part = [0.0, -0.0, 0.5, 1.0, 1.5, 2.5, 3.0, -1.0, -0.5, -2.5, 100.0, 2.0**31, 2.0**63, 1e30, -1e30]
    part += [np.inf, -np.inf, np.nan, 1e-40, -1e-40]
    if kind.kind == "complex":
        return np.array([complex(re, im) for re, im in itertools.product(part[::2], repeat=2)]).astype(kind.numpy)
    return np.array(part, kind.numpy)


def samples(kinds: tuple[DType, ...]) -> list[Array]:
    """Every combination of edges, then random bits."""
    grids = np.meshgrid(*(edges(kind) for kind in kinds), indexing="ij")
    return [
        np.concatenate([grid.ravel(), random_bits(kind, COUNT, seed)])
        for seed, (grid, kind) in enumerate(zip(grids, kinds, strict=True))
    ]


def uses(name: str) -> list[tuple[tuple[DType, ...], DType]]:
    """Argument types and result type of every exact use of a primitive in compute types."""
    row = PRIMITIVES[name]
    found: list[tuple[tuple[DType, ...], DType]] = []
    for kind in COMPUTE:
        if LETTERS[kind.kind] not in row.domain:
            continue
        if row.signature == "select":
            found.append(((BOOL, kind, kind), kind))
        elif row.signature == "power":
            exponents = [INT32, INT64, dtype("uint8"), dtype("uint64"), kind] if kind.is_integer else []
            found.extend(((kind, exponent), kind) for exponent in dict.fromkeys(exponents))
        elif row.signature != "convert":
            found.append(((kind,) * row.arity, BOOL if row.signature in ("compare", "test") else kind))
    return found


def loop(name: str, inputs: tuple[DType, ...], result: DType) -> Loop:
    arguments = [f"x{index}" for index in range(len(inputs))]
    label = "_".join([name, *(kind.name for kind in inputs), result.name])
    return Loop(label, inputs, result, scalar.apply(name, arguments, inputs, result))


PRIMITIVE_LOOPS = {
    (name, inputs): loop(name, inputs, result) for name in EXACT for inputs, result in uses(name) if name != "convert"
}


def conversions(cpu: str) -> dict[tuple[DType, DType], Loop]:
    """All from compute types, and a choice from short ones, which are widened first; few where the code is the same."""
    few = {dtype("int8"), dtype("uint64"), dtype("bfloat16"), dtype("complex64")}
    pairs = [
        (source, target)
        for source, target in itertools.product(NUMBERS, NUMBERS)
        if source is not target
        and (source.compute is source or target is source.compute or target in few)
        and (cpu == "native" or FLOAT32 in (source, target))
    ]
    return {pair: loop("convert", pair[:1], pair[1]) for pair in pairs}


def test_the_table_is_complete() -> None:
    assert set(scalar.EXPRESSIONS) == set(PRIMITIVES)


@needs_compiler
@every_level
@pytest.mark.parametrize("name", [name for name in EXACT if name != "convert"])
def test_primitives_follow_numpy(name: str, cpu: str) -> None:
    library = Loops(list(PRIMITIVE_LOOPS.values()), cpu)
    for inputs, _ in uses(name):
        values = samples(inputs)
        found = library(PRIMITIVE_LOOPS[name, inputs].name, *values)
        with np.errstate(all="ignore"):
            wanted = np.asarray(NUMPY[name](*values)).astype(found.dtype)
            if name in ("min", "max"):  # of two zeros either may come out
                found, wanted = found + found.dtype.type(0), wanted + found.dtype.type(0)
            good = equal(found, wanted)
            if name in ("mul", "div") and found.dtype.kind == "c":  # numpy fuses some products into sums, by machine
                scale = np.abs(values[0]) * (np.abs(values[1]) if name == "mul" else 1 / np.abs(values[1]))
                near = [close(part(found), part(wanted), scale) for part in (np.real, np.imag)]
                good |= near[0] & near[1]
        where = np.flatnonzero(~good)[:5]
        assert good.all(), f"{name} of {inputs}: {[value[where] for value in values]} gives {found[where]}"


@needs_compiler
@every_level
@pytest.mark.parametrize("source", NUMBERS, ids=str)
def test_conversions_follow_numpy(source: DType, cpu: str) -> None:
    loops = conversions(cpu)
    library = Loops(list(loops.values()), cpu)
    if source.bits <= 16:
        every = np.arange(1 << (1 if source is BOOL else source.bits), dtype=f"u{source.numpy.itemsize}")
        values = every.view(source.numpy)
    else:
        values = np.concatenate([edges(source), random_bits(source, COUNT, 7), moderate(source)])
    for target in [target for start, target in loops if start is source]:
        found = library(loops[source, target].name, values)
        with np.errstate(all="ignore"):
            wanted = convert(values, target)
        plain = target.compute.numpy
        good = equal(found.astype(plain), wanted.astype(plain))
        where = np.flatnonzero(~good)[:5]
        assert good.all(), f"{source} to {target}: {values[where]} gives {found[where]}, not {wanted[where]}"


def close(found: Array, wanted: Array, scale: Array) -> Array:
    """Where parts of complex numbers of size `scale` differ by roundings only, or a product may leave the range."""
    info = np.finfo(found.dtype)
    return equal(found, wanted) | (np.abs(found - wanted) <= 4 * info.eps * scale) | ~(scale < info.max / 4)


def moderate(kind: DType) -> Array:
    """Numbers of everyday size, halfway cases of short types among them."""
    random = np.random.default_rng(3)
    steps = random.integers(-(1 << 14), 1 << 14, COUNT) * np.exp2(random.integers(-20, 8, COUNT))
    return (steps.astype(np.int64) if kind.is_integer else steps).astype(kind.numpy)


VALUES = (0, 1, -1, 0.1, -0.0, 1e-45, 3.4e38, float("inf"), float("-inf"), float("nan"), 1 << 63, -(1 << 63), True, 255)


@needs_compiler
@pytest.mark.parametrize("kind", COMPUTE, ids=str)
def test_constants_keep_every_bit(kind: DType) -> None:
    fits = [value for value in VALUES if fits_in(value, kind)]
    loops = [Loop(f"constant_{index}", (kind,), kind, scalar.constant(value, kind)) for index, value in enumerate(fits)]
    library = Loops(loops, "native")
    for index, value in enumerate(fits):
        with np.errstate(all="ignore"):
            wanted = np.asarray(value).astype(kind.numpy).reshape(1)
        found = library(f"constant_{index}", np.zeros(1, kind.numpy))
        assert equal(found, wanted).all(), f"{value} as {kind} is {scalar.constant(value, kind)}"


def fits_in(value: float, kind: DType) -> bool:
    if kind.kind == "bool":
        return value in (0, 1)
    if not kind.is_integer:
        return True
    info = np.iinfo(kind.numpy)
    return isinstance(value, int) and info.min <= value <= info.max


@needs_compiler
def test_constants_fill_vectors() -> None:
    library = Loops(
        [Loop("add", (FLOAT32,), FLOAT32, f"(x0 + {scalar.constant(0.1, FLOAT32, 16)})", vector=True)], "native"
    )
    x = np.arange(32, dtype=np.float32)
    assert (library("add", x) == x + np.float32(0.1)).all()


def masked(name: str) -> tuple[str, int]:
    """A use of a primitive as vectors of float32, comparisons steering a selection; how many inputs it has."""
    row = PRIMITIVES[name]
    arguments = [f"x{index}" for index in range(row.arity)]
    if name == "select":
        return scalar.apply(name, ["(x0 < x1)", "x0", "x1"], [BOOL, FLOAT32, FLOAT32], FLOAT32), 2
    if "b" in row.domain and "f" not in row.domain:
        masks = [f"({argument} < 1)" for argument in arguments]
        text = scalar.apply(name, masks, [BOOL] * row.arity, BOOL)
        return scalar.apply("convert", [text], [BOOL], FLOAT32), row.arity
    text = scalar.apply(
        name, arguments, [FLOAT32] * row.arity, BOOL if row.signature in ("compare", "test") else FLOAT32
    )
    if row.signature in ("compare", "test"):
        text = scalar.apply("convert", [text], [BOOL], FLOAT32)
    return text, row.arity


FLOATS = [name for name, row in PRIMITIVES.items() if set(row.domain) & {"f", "b"} and name != "convert"]


@needs_compiler
@every_level
@pytest.mark.parametrize("exact", [False, True])
def test_one_text_serves_scalars_and_vectors(exact: bool, cpu: str) -> None:
    loops = [
        Loop(f"{name}_{vector}", (FLOAT32,) * masked(name)[1], FLOAT32, masked(name)[0], vector)
        for name in FLOATS
        for vector in (False, True)
    ]
    library = Loops(loops, cpu, exact=exact)
    for name in FLOATS:
        values = samples((FLOAT32,) * masked(name)[1])
        assert equal(library(f"{name}_True", *values), library(f"{name}_False", *values)).all(), name


def test_strings_are_refused() -> None:
    with pytest.raises(InternalError, match="strings"):
        scalar.storage_type(STRING)
    with pytest.raises(InternalError, match="strings"):
        scalar.apply("eq", ["a", "b"], [STRING, STRING], BOOL)
