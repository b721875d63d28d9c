"""Kernels written in Triton, compiled for an arch and emulated: what only code of a certain form shows."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from argosy.emulation.kernel import make_kernel
from argosy.emulation.memory import Memory
from argosy.targets.gpu.arch import ARCHS
from argosy.targets.gpu.variant import gpu_code
from argosy.toolchains.triton import CompiledKernel, TritonSource, compile_kernels

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="the package triton (extra gpu) is not installed"
)

ROWS = """
@triton.jit
def rows(x, z):
    i = tl.program_id(0) * 16 + tl.arange(0, 16)[:, None]
    j = tl.arange(0, 16)[None, :]
    k, across = tl.arange(0, 32)[None, :], tl.arange(0, 32)[:, None]
    byte = tl.load(x + i, mask=i < 49, other=0)
    left = tl.where(k < 1, tl.broadcast_to(byte, [16, 32]), tl.full([], 0, tl.int8))
    right = tl.where(across < 1, tl.full([32, 16], 1, tl.int8), tl.full([], 0, tl.int8))
    tl.store(z + i * 16 + j, tl.dot(left, right, out_dtype=tl.int32))
"""


@pytest.mark.parametrize("arch", ["gfx942", "gfx950", "gfx1201", "gfx1250"])
def test_bytes_that_a_wave_shares_are_loaded(arch: str) -> None:
    """A row's byte has one address for all lanes, and the mask that it lies behind is one for all of them too."""
    source = TritonSource("rows", ROWS, (("x", "*i8"), ("z", "*i32")), divisible=(0, 1), options=(("num_warps", 4),))
    target = gpu_code(ARCHS[arch])
    (made,) = compile_kernels([source], target)
    assert isinstance(made, CompiledKernel)
    kernel, memory = make_kernel(made.assembly), Memory()
    given, found = np.arange(1, 65, dtype=np.int8), np.zeros((64, 16), np.int32)
    addresses = [memory.allocate(64), memory.allocate(found.nbytes), memory.allocate(64)]
    arguments = np.array([addresses[0], addresses[1], 0, 0, 0, 0, 0, 0], np.uint64)
    for address, content in ((addresses[0], given), (addresses[2], arguments)):
        block = memory.block(address, content.nbytes)
        assert block is not None
        block[:] = content.view(np.uint8)
    kernel.run(memory, addresses[2], (4, 1, 1), made.threads, made.shared)
    block = memory.block(addresses[1], found.nbytes)
    assert block is not None
    expected = np.where(np.arange(64) < 49, given, 0)[:, None].repeat(16, axis=1)
    np.testing.assert_array_equal(block.view(np.int32).reshape(64, 16), expected)
