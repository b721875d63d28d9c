"""Python's integers as what operations of the table are judged by: values to try, and the definitions they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from argosy.emulation.semantics import load_semantics
from argosy.emulation.semantics.arithmetic import TYPES
from argosy.emulation.semantics.table import OPERATIONS, width

__all__ = ["W16", "W32", "W64", "Meant", "field", "first_one", "judge", "leading", "sign_bits", "signed"]

load_semantics()

Meant = Callable[..., Any]
"""From Python's integers, as many as there are sources, to the results; just their lower bits count."""
W16, W32, W64 = (1 << 16) - 1, (1 << 32) - 1, (1 << 64) - 1
_EDGES = (0, 1, 2, 3, 7, 15, 16, 31, 32, 33, 63, 64, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000,
          0xFFFFFFFF, 0x12345678, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)  # fmt: skip
_COUNT = 400


def signed(value: int, bits: int) -> int:
    """The low bits of a value, with their sign; 0 of none."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if bits and value >> (bits - 1) else value


def field(value: int, place: int, size: int) -> int:
    """So many bits from a place on."""
    return (value >> place) & ((1 << size) - 1)


def first_one(value: int, bits: int) -> int:
    """The place of the lowest bit set; -1 where none is."""
    return next((place for place in range(bits) if value >> place & 1), -1)


def leading(value: int, bits: int) -> int:
    """The zeros above the highest bit set; -1 where none is."""
    return bits - value.bit_length() if value else -1


def sign_bits(value: int, bits: int) -> int:
    """How many bits from the top on are like the sign; -1 where all are."""
    return leading(signed(value, bits) ^ -(value >> (bits - 1) & 1), bits)


def _given(kind: str, random: np.random.Generator) -> list[int]:
    """Edges and arbitrary numbers of a type."""
    if kind in ("mask", "scc"):
        return [int(each) for each in random.integers(0, 2, _COUNT)]
    bits = 16 if kind.startswith("k") else int(kind[4:]) if kind.startswith("exec") else width(kind)
    edges = np.array(_EDGES, np.uint64)[random.integers(0, len(_EDGES), _COUNT)]
    wide = random.integers(0, W64, _COUNT, np.uint64, endpoint=True)
    raw = np.where(random.random(_COUNT) < 0.6, edges, wide).tolist()
    return [signed(each, bits) if kind[0] == "i" or kind == "k16" else each & ((1 << bits) - 1) for each in raw]


def _form(kind: str) -> Any:
    """How the engines hold a type: short constants in 32 bits, the mask of lanes as a number."""
    return TYPES[{"k16": "i32", "ku16": "u32", "exec32": "u32", "exec64": "u64"}.get(kind, kind)]


def judge(name: str, meant: Meant) -> None:
    """Compare an operation of the table with what Python's integers say of it."""
    operation, random = OPERATIONS[name], np.random.default_rng(sum(map(ord, name)))
    sources = [_given(kind, random) for kind in operation.sources]
    arrays = [np.array(each, _form(kind)) for each, kind in zip(sources, operation.sources, strict=True)]
    with np.errstate(all="ignore"):
        found = operation.meaning(*arrays)
    results = found if isinstance(found, tuple) else (found,)
    assert len(results) == len(operation.results)
    shown = [np.broadcast_to(each, _COUNT).tolist() for each in results]
    for place, values in enumerate(zip(*sources, strict=True)):
        expected = meant(*values)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for kind, result, value in zip(operation.results, shown, expected, strict=True):
            size = 1 if kind in ("mask", "scc") else int(kind[4:]) if kind.startswith("exec") else width(kind)
            assert int(result[place]) & ((1 << size) - 1) == int(value) & ((1 << size) - 1), (values, kind)
