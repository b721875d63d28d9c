"""Matrix instructions: which lane holds which element.

D = A B + C over a wave. `A[i, k]`, `B[k, j]` and `D[i, j]` lie in registers of lanes as the tables say. Sources: the
matrix chapters of the CDNA3 and CDNA4 documents, and of the RDNA3 and RDNA4 ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from argosy.emulation.archs import Generation

__all__ = ["MatrixShape", "find_matrix"]

_MFMA: Final = re.compile(
    r"^v_mfma_(?P<out>f32|i32|f64)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_?(?P<blocks>\d+b_)?(?P<type>[a-z0-9_]+)$"
)
_WMMA: Final = re.compile(r"^v_wmma_(?P<out>f32|i32|f16|bf16)_(?P<m>16)x(?P<n>16)x(?P<k>\d+)_(?P<type>[a-z0-9_]+)$")
_BITS: Final = {"f16": 16, "bf16": 16, "bf16_1k": 16, "f32": 32, "f64": 64, "i8": 8, "iu8": 8, "iu4": 4, "xf32": 32}


@dataclass(frozen=True, slots=True)
class MatrixShape:
    """One matrix instruction. `a` and `b` name the types of the factors, `bits` is their size.

    `places_a[lane, e]` is (i, k) of element e of A that a lane holds, `places_b` is (j, k), and `places_d[lane, r]` is
    (i, j) of register r of C and D.
    """

    name: str
    m: int
    n: int
    k: int
    out: str
    a: str
    b: str
    bits: int
    places_a: Any
    places_b: Any
    places_d: Any
    halves: bool = False


@lru_cache(maxsize=256)
def find_matrix(name: str, arch: Generation) -> MatrixShape | None:
    """The matrix instruction of that plain name on an arch; None for what is none, or not known."""
    found = _MFMA.match(name)
    if found and not found["blocks"]:
        return _mfma(name, found, arch)
    found = _WMMA.match(name)
    if found:
        return _wmma(name, found, arch)
    return None


def _types(written: str, arch: Generation) -> tuple[str, str, int] | None:
    parts = written.split("_")
    if written in _BITS:
        kind = "f32" if written == "f32" else written.removesuffix("_1k")
        return kind, kind, _BITS[written]
    if len(parts) == 2 and all(part in ("fp8", "bf8") for part in parts):
        end = "fnuz" if arch.fnuz else ""
        names = {"fp8": f"e4m3{end}", "bf8": f"e5m2{end}"}
        return names[parts[0]], names[parts[1]], 8
    return None


def _mfma(name: str, found: re.Match[str], arch: Generation) -> MatrixShape | None:
    types = _types(found["type"], arch)
    m, n, k = int(found["m"]), int(found["n"]), int(found["k"])
    if types is None or m != n or m not in (16, 32):
        return None
    a, b, bits = types
    groups = 64 // m
    if k % groups:
        return None
    each = k // groups
    lanes = np.arange(64)
    row, group = lanes % m, lanes // m
    elements = np.arange(each)
    ks = group[:, None] * each + elements[None, :]
    factors = np.stack([np.broadcast_to(row[:, None], ks.shape), ks], -1)
    registers = np.arange(m * n // 64)
    if found["out"] == "f64":
        rows = group[:, None] + 4 * registers[None, :]
    elif m == 16:
        rows = group[:, None] * 4 + registers[None, :]
    else:
        rows = 8 * (registers[None, :] // 4) + group[:, None] * 4 + registers[None, :] % 4
    results = np.stack([rows, np.broadcast_to(row[:, None], rows.shape)], -1)
    return MatrixShape(name, m, n, k, found["out"], a, b, bits, factors, factors, results)


def _wmma(name: str, found: re.Match[str], arch: Generation) -> MatrixShape | None:
    types = _types(found["type"], arch)
    if types is None:
        return None
    a, b, bits = types
    k = int(found["k"])
    lanes = np.arange(32)
    row, group = lanes % 16, lanes // 16
    registers = np.arange(8)
    if arch.wmma == "whole":
        # Both halves of the wave hold the whole of each row.
        ks = np.broadcast_to(np.arange(k)[None, :], (32, k))
        rows = 2 * registers[None, :] + group[:, None]
    elif arch.wmma == "half":
        ks = group[:, None] * (k // 2) + np.arange(k // 2)[None, :]
        rows = 8 * group[:, None] + registers[None, :]
    else:
        return None
    factors = np.stack([np.broadcast_to(row[:, None], ks.shape), ks], -1)
    results = np.stack([rows, np.broadcast_to(row[:, None], rows.shape)], -1)
    return MatrixShape(
        name, 16, 16, k, found["out"], a, b, bits, factors, factors, results, halves=found["out"] in ("f16", "bf16")
    )
