"""Matrix instructions: which lane holds which element.

D = A B + C over a wave. `A[i, k]`, `B[k, j]` and `D[i, j]` lie in registers of lanes as the tables say. Sources: the
matrix chapters of the CDNA3 and CDNA4 documents, and of the RDNA3 and RDNA4 ones; for gfx1250 the layouts that AMD's
emulator rocjitsu documents.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from argosy.emulation.archs import Generation

__all__ = ["SCALE_BLOCK", "Factor", "MatrixShape", "find_matrix"]

_MFMA: Final = re.compile(
    r"^v_mfma_(?P<out>f32|i32|f64)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_?(?P<blocks>\d+b_)?(?P<type>[a-z0-9_]+)$"
)
_SHORT_MFMA: Final = re.compile(r"^v_mfma_(?P<scaled>scale_)?f32_(?P<m>16|32)x\d+x(?P<k>64|128)_f8f6f4$")
_WMMA: Final = re.compile(r"^v_wmma_(?P<out>f32|i32|f16|bf16)_(?P<m>16)x(?P<n>16)x(?P<k>\d+)_(?P<type>[a-z0-9_]+)$")
_BITS: Final = {"f16": 16, "bf16": 16, "bf16_1k": 16, "f32": 32, "f64": 64, "i8": 8, "iu8": 8, "iu4": 4, "xf32": 32}
_SHORT: Final = (("e4m3", 8), ("e5m2", 8), ("e2m3", 6), ("e3m2", 6), ("e2m1", 4))
"""The types of a factor by the number that says which."""
SCALE_BLOCK: Final = 32
"""Elements along k that share a scale."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A or B: the type of its elements, their size in bits, and (row, k) of element e of a lane in `places[lane, e]`.

    B counts as its transpose here: its rows are the columns of the result.
    """

    kind: str
    bits: int
    places: Any


@dataclass(frozen=True, slots=True)
class MatrixShape:
    """One matrix instruction. `places_d[lane, r]` is (i, j) of register r of C and D.

    `halves`: a result is half a register. `scaled`: each row of a factor has scales for blocks of k, powers of two.
    """

    name: str
    m: int
    n: int
    k: int
    out: str
    a: Factor
    b: Factor
    places_d: Any
    halves: bool = False
    scaled: bool = False


@lru_cache(maxsize=256)
def find_matrix(name: str, arch: Generation, formats: tuple[int, int] = (0, 0)) -> MatrixShape | None:
    """The matrix instruction of that plain name on an arch; None for what is none, or not known.

    `formats` number the types of the factors, where an instruction's name leaves them open.
    """
    found = _SHORT_MFMA.match(name)
    if found:
        return _short_mfma(name, found, formats)
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


def _places(lanes: int, rows: int, ks: NDArray[np.int64]) -> NDArray[np.int64]:
    """(row, k) of each lane's elements: its row is its number among as many as there are rows."""
    row = np.arange(lanes) % rows
    return np.stack(np.broadcast_arrays(row[:, None], ks), -1)


def _mfma_results(m: int, n: int, *, double: bool = False) -> NDArray[np.int64]:
    lanes, registers = np.arange(64)[:, None], np.arange(m * n // 64)[None, :]
    group = lanes // m
    if double:
        rows = group + 4 * registers
    elif m == 16:
        rows = group * 4 + registers
    else:
        rows = 8 * (registers // 4) + group * 4 + registers % 4
    return np.stack(np.broadcast_arrays(rows, lanes % m), -1)


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
    places = _places(64, m, np.arange(64)[:, None] // m * each + np.arange(each)[None, :])
    results = _mfma_results(m, n, double=found["out"] == "f64")
    return MatrixShape(name, m, n, k, found["out"], Factor(a, bits, places), Factor(b, bits, places), results)


def _short_mfma(name: str, found: re.Match[str], formats: tuple[int, int]) -> MatrixShape | None:
    m, k = int(found["m"]), int(found["k"])
    if m * k != 16 * 128 or max(formats) >= len(_SHORT):
        return None
    groups = 64 // m
    group, element = np.arange(64)[:, None] // m, np.arange(32)[None, :]

    def factor(number: int) -> Factor:
        kind, bits = _SHORT[number]
        # Bytes come in two runs of 16, which for all groups lie one after the other; what is shorter, in one run of 32.
        ks = (element // 16 * groups + group) * 16 + element % 16 if bits == 8 else group * 32 + element
        return Factor(kind, bits, _places(64, m, ks))

    a, b = factor(formats[0]), factor(formats[1])
    return MatrixShape(name, m, m, k, "f32", a, b, _mfma_results(m, m), scaled=bool(found["scaled"]))


def _wmma(name: str, found: re.Match[str], arch: Generation) -> MatrixShape | None:
    types = _types(found["type"], arch)
    halves = found["out"] in ("f16", "bf16")
    if types is None or (halves and arch.wmma != "whole"):
        return None
    a, b, bits = types
    k = int(found["k"])
    group, registers = np.arange(32)[:, None] // 16, np.arange(8)[None, :]
    rows = 8 * group + registers
    match arch.wmma:
        case "whole":
            # Both halves of the wave hold the whole of each row.
            ks = np.broadcast_to(np.arange(k)[None, :], (32, k))
            rows = 2 * registers + group
        case "half":
            ks = group * (k // 2) + np.arange(k // 2)[None, :]
        case "runs":
            run = min(16, k // 4) if k > 4 else k // 2
            element = np.arange(k // 2)[None, :]
            ks = (element // run * 2 + group) * run + element % run
        case _:
            return None
    places = _places(32, 16, ks)
    results = np.stack(np.broadcast_arrays(rows, np.arange(32)[:, None] % 16), -1)
    return MatrixShape(
        name, 16, 16, k, found["out"], Factor(a, bits, places), Factor(b, bits, places), results, halves=halves
    )
