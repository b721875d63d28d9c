"""Faults of the GPU target, found on an emulated device: passes, masks, grids, barriers and the cache of kernels."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import msgspec
import pytest

from argosy.ir.dim import dim_max
from argosy.passes import merge_products
from argosy.runtime.gpu import emulated
from argosy.targets.gpu import variant
from argosy.targets.gpu.solutions.loops import Elementwise, SoftmaxRows
from argosy.toolchains import triton
from tests.debugging.faults.fault import Fault, changed_kernels, replaced, wrong_kernel
from tests.debugging.faults.network import Network, gated

__all__ = ["FAULTS"]

ARCH: Final = "gfx942"


def branches(net: Network, x: str) -> str:
    one = net.op("MatMul", x, net.weight(24, 20), name="one")
    two = net.op("MatMul", x, net.weight(24, 20), name="two")
    return net.op("Sub", net.op("Exp", one), two)


def exchanged(old: Any) -> Any:
    """Each product gets the columns of another."""

    def merge(self: Any, group: Any) -> None:
        old(self, group)
        ends = [branch.end.result() for branch in group]
        self._values.update(zip(ends, [self._values[end] for end in reversed(ends)], strict=True))

    return merge


def shares(net: Network, x: str) -> str:
    odd = net.op("Softmax", net.op("Slice", x, net.ints(0), net.ints(21), net.ints(1)), axis=-1, name="guilty")
    return net.op("Concat", odd, net.op("Sin", x), axis=1)


def even_shares(net: Network, x: str) -> str:
    return net.op("Mul", net.op("Softmax", x, axis=-1, name="guilty"), net.op("Sin", x))


def many(net: Network, x: str) -> str:
    spread = net.op("Mul", net.op("Unsqueeze", x, net.ints(2)), net.weight(1, 40), name="guilty")
    return net.op("Add", net.op("Tanh", spread), net.op("Unsqueeze", net.op("Cos", x), net.ints(2)))


def last_missing(kernel: Any) -> Any:
    """Of several programs the last one is missing."""
    grid = tuple(dim_max(size - 1, 1) for size in kernel.launch.grid)
    return replace(kernel, launch=replace(kernel.launch, grid=grid))


def summed(net: Network, x: str) -> str:
    return net.op("MatMul", x, net.weight(24, 30), name="guilty")


def without_barriers(old: Any) -> Any:
    """Kernels of products don't wait for one another's waves."""
    return lambda text: old(re.sub(r"(?m)^\s*s_barrier\b.*$", "", text) if "matrix_product" in text else text)


def stale(old: Any) -> Any:
    """Under the keys of softmaxes the cache has kernels that were compiled from other text."""
    held: dict[str, bytes] = {}

    def kernels(sources: Sequence[Any], target: Any, *, cached: bool = True, **more: Any) -> Any:
        for source in sources:
            text = source.text.replace("tl.sum(", "2.0 * tl.sum(")
            if text != source.text and cached:
                key = triton._key(source, target, triton.triton_version())
                if key not in held:
                    (made,) = old([replace(source, text=text)], target, cached=False, **more)
                    held[key] = msgspec.msgpack.encode(made)
                triton.kernel_cache().put(key, held[key], {})
        return old(sources, target, cached=cached, **more)

    return kernels


@contextmanager
def stale_kernels() -> Iterator[None]:
    """A cache with stale entries, which nobody else sees."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARGOSY_CACHE", folder)
        with replaced(variant, "compile_kernels", stale):
            yield


def on_gpu(name: str, kind: str, blame: str, nodes: tuple[str, ...], core: Any, plant: Any, **more: Any) -> Fault:
    """A fault of the code for the emulated device."""
    return Fault(
        name, kind, blame, nodes, lambda: gated(core), plant, (ARCH,), f"emulated:{ARCH}", dims={"N": "3..9"}, **more
    )


FAULTS: Final = (
    on_gpu("merge_products", "wrong order of pieces", "pass:merge_products", ("one", "two"), branches,
           lambda: replaced(merge_products._Rewriter, "_merge", exchanged)),
    on_gpu("masked_tail", "masked tail", "solution:softmax", ("guilty",), shares,
           wrong_kernel(SoftmaxRows, 'float("-inf")', "0.0")),
    on_gpu("grid", "missing remainder", "solution:elementwise", ("guilty",), many,
           changed_kernels(Elementwise, last_missing)),
    on_gpu("barrier", "race", "solution:matrix product", ("guilty",), summed,
           lambda: replaced(emulated, "make_kernel", without_barriers), raises=True),
    on_gpu("stale_kernels", "stale cache entry", "stage:cache", ("guilty",), even_shares, stale_kernels),
)  # fmt: skip
