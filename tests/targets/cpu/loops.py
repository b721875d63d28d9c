"""Loops over single C expressions, compiled and called: how the tests reach the prelude."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from argosy.ir.dtype import Array, DType
from argosy.targets.cpu.codegen import scalar
from argosy.toolchains.cache import DiskCache
from argosy.toolchains.zig import CodeTarget, Source, compile_objects, link

needs_compiler = pytest.mark.skipif(find_spec("ziglang") is None, reason="compiling needs the ziglang package")

LEVELS = ("native", "x86_64_v2") if platform.machine() in ("x86_64", "AMD64") else ("native",)
"""CPUs to compile for: this one, and the lowest that may be asked for, which has no fused multiply-add."""

VECTOR = 16


@dataclass(frozen=True, slots=True)
class Loop:
    """`y[i] = expression`, the expression being C over `x0`, `x1`, …: elements of `inputs`, as loaded."""

    name: str
    inputs: tuple[DType, ...]
    result: DType
    expression: str
    vector: bool = False

    @property
    def source(self) -> str:
        """The C function: pointers of the inputs, of the result, and the number of elements."""
        inputs = [(f"p{index}", f"x{index}", kind) for index, kind in enumerate(self.inputs)]
        pointers = [f"const {scalar.storage_type(kind)} *restrict {pointer}" for pointer, _, kind in inputs]
        pointers.append(f"{scalar.storage_type(self.result)} *restrict y")
        if self.vector:
            loads = [f"float32x16 {x} = load_float32x16({pointer} + i);" for pointer, x, _ in inputs]
            store = f"store_float32x16(y + i, {self.expression});"
        else:
            loads = [
                f"{scalar.compute_type(kind)} {x} = {scalar.load(kind, pointer, 'i')};" for pointer, x, kind in inputs
            ]
            store = f"{scalar.store(self.result, 'y', 'i', self.expression)};"
        head = f"EXPORT void {self.name}({', '.join(pointers)}, int64 n)"
        step = VECTOR if self.vector else 1
        return f"{head} {{ for (int64 i = 0; i < n; i += {step}) {{ {' '.join(loads)} {store} }} }}"


class Loops:
    """A shared object of loops."""

    def __init__(self, loops: Sequence[Loop], cpu: str, *, exact: bool = False) -> None:
        self._loops = {loop.name: loop for loop in loops}
        begin = '#define EXPORT __attribute__((visibility("default")))\n' + ("#define ARGOSY_EXACT\n" if exact else "")
        text = "\n".join([begin, scalar.prelude(), *(loop.source for loop in loops)])
        self._library = library_of(text, cpu)

    def __call__(self, name: str, *inputs: Array) -> Array:
        """The results of loop `name`, over arrays of one length."""
        loop = self._loops[name]
        count = inputs[0].size
        padded = -(-count // VECTOR) * VECTOR
        arrays = [np.concatenate([array, np.resize(array, padded - count)]) for array in inputs]
        for array, kind in zip(arrays, loop.inputs, strict=True):
            assert array.dtype == kind.numpy, f"{array.dtype} for {kind}"
        result = np.empty(padded, loop.result.numpy)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays, result)]
        getattr(self._library, name)(*pointers, ctypes.c_int64(padded))
        return result[:count]


@lru_cache(maxsize=16)
def library_of(text: str, cpu: str) -> ctypes.CDLL:
    """C that includes all it needs, compiled, linked and loaded."""
    target = CodeTarget(f"{platform.machine()}-linux-none", cpu)
    with TemporaryDirectory(prefix="argosy-test-") as folder:
        objects = compile_objects([Source("loops", text)], target, cache=DiskCache(Path(folder)))
        path = Path(folder) / "loops.so"
        path.write_bytes(link(objects, target))
        return ctypes.CDLL(str(path))


def random_bits(kind: DType, count: int, seed: int) -> Array:
    """Elements of random bits: all magnitudes alike, subnormals, infinities and NaN among them."""
    raw = np.random.default_rng(seed).integers(0, 256, count * kind.numpy.itemsize, dtype=np.uint8)
    if kind.kind == "bool":
        raw &= 1
    if 0 < kind.bits < 8:
        raw &= (1 << kind.bits) - 1
    return raw.view(kind.numpy)


@np.errstate(invalid="ignore")
def equal(found: Array, wanted: Array) -> Array:
    """Where two arrays agree: NaN with NaN, and zeros by their signs too."""
    same = found == wanted
    if found.dtype.kind in "iub":
        return same
    if found.dtype.kind == "c":
        return equal(found.real, wanted.real) & equal(found.imag, wanted.imag)
    return (same & (np.signbit(found) == np.signbit(wanted))) | (np.isnan(found) & np.isnan(wanted))
