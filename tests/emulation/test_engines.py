"""The two engines mean the same by every operation: the code written for the one in C against numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.emulation.c_engine.build import engine_library, engine_reason
from argosy.emulation.c_engine.trace import result_types, storage, typed
from argosy.emulation.semantics import load_semantics
from argosy.emulation.semantics.arithmetic import TYPES
from argosy.emulation.semantics.table import OPERATIONS, width

load_semantics()

_SPECIAL = {
    "f16": [
        0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x3C00, 0xBC00, 0x3BFF, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0x4248,
    ],
    "f32": [
        0, 1 << 31, 1, 0x807FFFFF, 0x00800000, 0x3F800000, 0xBF800000, 0x3F7FFFFF, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000,
        0xFF800000, 0x7FC00000, 0x40490FDB, 0x4F000000, 0xCF000000, 0x4F800000, 0x3F000000, 0x40200000, 0xC0200000,
        0x47FFE000, 0x477FE000, 0x33000000, 0x0B000000, 0x72000000,
    ],
    "f64": [
        0, 1 << 63, 1, 0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x3FF0000000000000, 0xBFF0000000000000,
        0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0x400921FB54442D18,
        0x41E0000000000000, 0xC1E0000000000000, 0x41F0000000000000, 0x3FE0000000000000,
    ],
    "i": [
        0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000,
        0xFFFFFFFF,
    ],
}  # fmt: skip


def values(kind: str, count: int, random: np.random.Generator) -> NDArray[Any]:
    """Patterns that make trouble, in every combination with others by chance, and arbitrary ones."""
    plain = typed(kind)
    held = storage(kind)
    if plain == "mask":
        return random.integers(0, 2, count).astype(held)
    bits = width(plain)
    special = _SPECIAL.get(plain, _SPECIAL["i"] + ([1 << 63, (1 << 64) - 1, 1 << 32] if bits == 64 else []))
    made = (
        random.integers(0, 1 << bits, count, dtype=np.uint64, endpoint=False)
        if bits < 64
        else random.integers(0, (1 << 64) - 1, count, dtype=np.uint64, endpoint=True)
    )
    chosen = np.asarray(special, np.uint64)[random.integers(0, len(special), count)] & np.uint64((1 << bits) - 1)
    return np.where(random.random(count) < 0.6, chosen, made).astype(held)


def as_numpy(raw: NDArray[Any], kind: str) -> NDArray[Any]:
    plain = typed(kind)
    return raw.astype(np.bool_) if plain == "mask" else raw.view(TYPES[plain])


@pytest.mark.skipif(bool(engine_reason()), reason=f"no C engine here: {engine_reason()}")
@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_engines_agree(name: str) -> None:
    operation = OPERATIONS[name]
    random = np.random.default_rng(sum(map(ord, name)))
    sources = [values(kind, 512, random) for kind in operation.sources]
    found = engine_library().apply(name, sources)
    with np.errstate(all="ignore"):
        meant = operation.meaning(*(as_numpy(raw, kind) for raw, kind in zip(sources, operation.sources, strict=True)))
    meant = meant if isinstance(meant, tuple) else (meant,)
    for raw, expected, kind in zip(found, meant, result_types(operation), strict=False):
        if kind == "mask":
            np.testing.assert_array_equal(raw.astype(np.bool_), np.broadcast_to(expected, raw.shape))
            continue
        want = np.ascontiguousarray(np.broadcast_to(expected, raw.shape)).astype(TYPES[kind])
        got = raw.view(TYPES[kind])
        if kind[0] != "f":
            np.testing.assert_array_equal(got, want)
            continue
        both = np.isnan(got) & np.isnan(want)
        np.testing.assert_array_equal(got[~both].view(raw.dtype), want[~both].view(raw.dtype))
