"""Short floats and sub-byte types in C: every code, every tie between codes, packed streams, and their vector code."""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np
import pytest

from argosy.ir.dtype import DTYPES, FLOAT32, FLOAT64, Array, DType
from argosy.ir.literal import pack_bits
from argosy.ops.numpy_scalar import convert
from argosy.targets.cpu.codegen import scalar
from tests.targets.cpu.loops import LEVELS, Loop, Loops, library_of, needs_compiler

SHORT = [kind for kind in DTYPES.values() if kind.is_float and kind.compute is not kind]
PACKED = [kind for kind in DTYPES.values() if kind.is_packed]
LOOPS = [
    *(Loop(f"widen_{kind}", (kind,), FLOAT32, "x0") for kind in SHORT),
    *(Loop(f"narrow_{kind}", (FLOAT32,), kind, "x0") for kind in SHORT),
    *(Loop(f"round_{kind}", (FLOAT64,), kind, scalar.apply("convert", ["x0"], [FLOAT64], kind)) for kind in SHORT),
    *(Loop(f"keep_{kind}", (kind,), kind, "x0") for kind in PACKED),
]

pytestmark = [needs_compiler, pytest.mark.parametrize("cpu", LEVELS)]
short = pytest.mark.parametrize("kind", SHORT, ids=str)


def codes(kind: DType) -> Array:
    """All codes of a type."""
    unsigned = np.dtype(f"u{kind.numpy.itemsize}")
    return np.arange(1 << kind.bits, dtype=unsigned).view(kind.numpy)


def same_codes(found: Array, wanted: Array) -> None:
    """All codes agree, but for the payload of a NaN."""
    unsigned = np.dtype(f"u{found.dtype.itemsize}")
    nan = np.isnan(found.astype(np.float32)) & np.isnan(wanted.astype(np.float32))
    wrong = np.flatnonzero((found.view(unsigned) != wanted.view(unsigned)) & ~nan)
    assert wrong.size == 0, f"{found[wrong[:5]]} for {wanted[wrong[:5]]} at {wrong[:5]}"


@short
def test_every_code_widens(kind: DType, cpu: str) -> None:
    every = codes(kind)
    found, wanted = Loops(LOOPS, cpu)(f"widen_{kind}", every), every.astype(np.float32)
    nan = np.isnan(wanted)
    assert (np.isnan(found) == nan).all()
    assert (found.view(np.uint32) == wanted.view(np.uint32))[~nan].all()


@short
def test_every_code_survives(kind: DType, cpu: str) -> None:
    every = codes(kind)
    with np.errstate(invalid="ignore"):
        numbers = every.astype(np.float32)
    same_codes(Loops(LOOPS, cpu)(f"narrow_{kind}", numbers), convert(numbers, kind))


def around_ties(kind: DType) -> Array:
    """Float64 numbers at, just below and just above the middle of every two neighbours, and beyond the range."""
    with np.errstate(all="ignore"):
        values = codes(kind).astype(np.float64)
        finite = np.unique(values[np.isfinite(values)])
        beyond = finite[-1] + (finite[-1] - finite[-2]) * np.array([0.25, 0.5, 0.75, 1.0, 1.5, 100.0])
        middles = np.concatenate([(finite[1:] + finite[:-1]) / 2, beyond, -beyond, [finite[0] / 2, finite[0] / 4]])
        middles = np.concatenate([middles, [0.0, -0.0, np.inf, -np.inf, np.nan]])
        return np.concatenate([middles, np.nextafter(middles, np.inf), np.nextafter(middles, -np.inf)])


@short
def test_ties_go_to_even_once(kind: DType, cpu: str) -> None:
    wide = around_ties(kind)
    same_codes(Loops(LOOPS, cpu)(f"round_{kind}", wide), convert(wide, kind))
    with np.errstate(all="ignore"):
        middle = wide.astype(np.float32)
        near = np.concatenate([middle, np.nextafter(middle, np.float32(9)), np.nextafter(middle, np.float32(-9))])
    same_codes(Loops(LOOPS, cpu)(f"narrow_{kind}", near), convert(near, kind))


def test_float16_follows_numpy_on_a_walk_through_float32(cpu: str) -> None:
    walk = np.arange(0, 1 << 32, 4099, dtype=np.uint64).astype(np.uint32).view(np.float32)
    library = Loops(LOOPS, cpu)
    with np.errstate(all="ignore"):
        same_codes(library("narrow_float16", walk), walk.astype(np.float16))
        same_codes(library("narrow_bfloat16", walk), walk.astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize("kind", PACKED, ids=str)
def test_sub_byte_values_keep_to_their_bits(kind: DType, cpu: str) -> None:
    """Whatever else a byte holds is ignored, and not written."""
    every = np.arange(256, dtype=np.uint8)
    found = Loops(LOOPS, cpu)(f"keep_{kind}", every.view(kind.numpy)).view(np.uint8)
    assert (found == every & ((1 << kind.bits) - 1)).all()


def test_packed_streams_are_read_without_a_byte_too_many(cpu: str) -> None:
    head = '#define EXPORT __attribute__((visibility("default")))\n'
    kinds = [kind for kind in PACKED if kind.is_integer or kind.bits in (4, 6)]
    functions = [
        f"EXPORT void unpack_{kind}(const uint8 *from, {scalar.compute_type(kind)} *to, int64 n)"
        f" {{ for (int64 i = 0; i < n; ++i) to[i] = {scalar.load_packed(kind, 'from', 'i')}; }}"
        for kind in kinds
    ]
    library = library_of("\n".join([head, scalar.prelude(), *functions]), cpu)
    random = np.random.default_rng(5)
    for kind in kinds:
        for count in (1, 2, 3, 4, 5, 64, 1001):
            values = random.integers(0, 1 << kind.bits, count, dtype=np.uint8).view(kind.numpy)
            packed = np.concatenate([pack_bits(values, kind.bits), np.zeros(1, np.uint8)])
            found = np.empty(count, kind.compute.numpy)
            for filler in (0, 255):  # what lies past the end has no say
                packed[-1] = filler
                getattr(library, f"unpack_{kind}")(*pointers(packed, found), ctypes.c_int64(count))
                assert (found == values.astype(found.dtype)).all(), kind


def pointers(*arrays: Array) -> list[ctypes.c_void_p]:
    return [ctypes.c_void_p(array.ctypes.data) for array in arrays]
