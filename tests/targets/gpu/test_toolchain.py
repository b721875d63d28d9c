"""The toolchain makes code for every row, with no device, and that code is what the row says of it.

What a code object is for is read from the object: ELF flags (LLVM AMDGPUUsage, "AMDGPU ELF Header": the `MACH` of each
processor, and version 1 of the generic ones), the `.target` of PTX, the wave size in the kernel descriptor.
"""

from __future__ import annotations

import importlib.util
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.targets.gpu.arch import ARCHS, REFUSED, GpuArch
from argosy.targets.gpu.variant import gpu_code
from argosy.toolchains.cache import DiskCache
from argosy.toolchains.triton import CompiledKernel, GpuCode, Refused, TritonSource, compile_kernels

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="the package triton (extra gpu) is not installed"
)

MACH = {
    "gfx906": 0x2F, "gfx908": 0x30, "gfx90a": 0x3F, "gfx942": 0x4C, "gfx950": 0x4F, "gfx1100": 0x41, "gfx1101": 0x46,
    "gfx1102": 0x47, "gfx1103": 0x44, "gfx1150": 0x43, "gfx1151": 0x4A, "gfx1152": 0x55, "gfx1153": 0x58,
    "gfx1200": 0x48, "gfx1201": 0x4E, "gfx1250": 0x49, "gfx1251": 0x5A, "gfx9-4-generic": 0x5F, "gfx11-generic": 0x54,
    "gfx12-generic": 0x59,
}  # fmt: skip

ADD = """
@triton.jit
def add(x, y, z, n):
    i = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    inside = i < n
    tl.store(z + i, tl.load(x + i, inside) + tl.load(y + i, inside), inside)
"""
NARROW = """
@triton.jit
def narrow(x, z):
    i = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    tl.store(z + i, tl.load(x + i).to(tl.bfloat16))
"""
LAST = """
@triton.jit
def last(x, z):
    if tl.atomic_add(x, 1) == 7:
        tl.store(z + tl.arange(0, 128), 1.0)
"""
SHIFTED = """
@triton.jit
def shifted(x, s, y, z):
    i, j = tl.arange(0, 16)[:, None], tl.arange(0, 64)[None, :]
    total = tl.zeros((16, 64), tl.int32)
    for step in range(0, 3):
        across, down = step * 128 + tl.arange(0, 128)[None, :], step * 128 + tl.arange(0, 128)[:, None]
        left = tl.load(x + i * 384 + across) - tl.load(s + across)
        total = tl.dot(left.to(tl.int8), tl.load(y + j * 384 + down), total, out_dtype=tl.int32)
    tl.store(z + i * 64 + j, total)
"""
PRODUCT = """
@triton.jit
def product(x, y, z, depth):
    i = tl.arange(0, 64)
    total = tl.zeros((64, 64), tl.{sum})
    for k in range(0, depth, 64):
        left = tl.load(x + i[:, None] * depth + k + i[None, :])
        right = tl.load(y + (k + i[:, None]) * 64 + i[None, :])
        total = tl.dot(left, right, total, input_precision="{precision}", out_dtype=tl.{sum})
    tl.store(z + i[:, None] * 64 + i[None, :], total)
"""
SCALED = """
@triton.jit
def product(x, y, z, a, b):
    i, j, s = tl.arange(0, 128), tl.arange(0, 64), tl.arange(0, 4)
    left, right = tl.load(x + i[:, None] * 64 + j[None, :]), tl.load(y + j[:, None] * 128 + i[None, :])
    scales, others = tl.load(a + i[:, None] * 4 + s[None, :]), tl.load(b + i[:, None] * 4 + s[None, :])
    tl.store(z + i[:, None] * 128 + i[None, :], tl.dot_scaled(left, scales, "e2m1", right, others, "e2m1"))
"""
# Operand type of a row: Triton's name of it, that of the sum, and the precision to ask for.
OPERANDS = {
    "fp64": ("fp64", "float64", "ieee"),
    "fp32": ("fp32", "float32", "ieee"),
    "tf32": ("fp32", "float32", "tf32"),
    "fp16": ("fp16", "float32", "ieee"),
    "bf16": ("bf16", "float32", "ieee"),
    "fp8": ("fp8e4nv", "float32", "ieee"),
    "int8": ("i8", "int32", "ieee"),
}
FNUZ = "fp8e4b8"
SUMS = {"float64": "fp64", "float32": "fp32", "int32": "i32"}
MATRIX = re.compile(r"\b(?:v_(?:mfma|wmma)_|(?:wgmma|tcgen05)\.mma|mma\.sync)\S*")


def addition() -> TritonSource:
    return TritonSource("add", ADD, (("x", "*fp16"), ("y", "*fp16"), ("z", "*fp16"), ("n", "i32")))


def product(arch: GpuArch, dtype: str) -> TritonSource:
    if dtype == "fp4":
        bytes_and_sum = (("x", "*u8"), ("y", "*u8"), ("z", "*fp32"), ("a", "*u8"), ("b", "*u8"))
        return TritonSource("product", SCALED, bytes_and_sum)
    operand, total, precision = OPERANDS[dtype]
    operand = FNUZ if dtype == "fp8" and arch.fp8 == "fnuz" else operand
    types = (("x", f"*{operand}"), ("y", f"*{operand}"), ("z", f"*{SUMS[total]}"), ("depth", "i32"))
    return TritonSource("product", PRODUCT.format(sum=total, precision=precision), types)


def check_code(arch: GpuArch, folder: Path) -> None:
    """It compiles, names the arch and its waves, and rounds to bf16 as the row says; all threads see one's atomic."""
    narrow = TritonSource("narrow", NARROW, (("x", "*fp32"), ("z", "*bf16")))
    last = TritonSource("last", LAST, (("x", "*i32"), ("z", "*fp32")))
    made, rounded, shared = compile_kernels([addition(), narrow, last], gpu_code(arch), cache=DiskCache(folder))
    assert isinstance(made, CompiledKernel), made
    assert isinstance(rounded, CompiledKernel), rounded
    assert isinstance(shared, CompiledKernel), shared
    assert arch.has("bf16") == bool(re.search(r"\b(v_cvt_pk_bf16_f32|cvt\.rn\.bf16)", rounded.assembly))
    assert made.threads == 4 * arch.wave_size
    if arch.vendor == "nvidia":
        assert made.form == ("ptx" if arch.portable else "cubin")
        (target,) = re.findall(r"^\.target (\S+?),?$", made.assembly, re.MULTILINE)
        assert target == arch.code_name.replace("compute_", "sm_")
        for each in (made, rounded, shared) if arch.portable else ():
            assert ".version 7.0" in each.assembly  # what the oldest drivers for it know
        return
    (flags,) = struct.unpack_from("<I", made.code, 48)
    assert flags & 0xFF == MACH[arch.name]
    assert flags >> 24 == (1 if arch.portable else 0)
    assert ("wavefront_size32 1" in made.assembly) == (arch.wave_size == 32)


def instructions(assembly: str) -> Iterator[str]:
    return (found.group() for found in MATRIX.finditer(assembly))


def check_products(arch: GpuArch, folder: Path) -> None:
    """Each operand type of the row, and no other, gets matrix instructions, of the shapes in the row."""
    # A type that an arch does not have may be widened to one that it has: only the plain ones say what there is.
    plain = [dtype for dtype in ("fp64", "fp32", "fp16", "bf16", "int8") if not arch.has(f"matrix_{dtype}")]
    dtypes = [*(op.dtype for op in arch.matrix), *plain]
    made = compile_kernels([product(arch, dtype) for dtype in dtypes], gpu_code(arch), cache=DiskCache(folder))
    for dtype, answer in zip(dtypes, made, strict=True):
        op = arch.matrix_op(dtype)
        found = set() if isinstance(answer, Refused) else set(instructions(answer.assembly))
        if op is None:
            assert not found, dtype
            continue
        assert found, (dtype, answer)
        assert all(name.startswith(op.mnemonic) for name in found), (dtype, found)
        if arch.vendor == "amd":
            sizes = {
                tuple(map(int, re.findall(r"\d+", part))) for name in found for part in re.findall(r"\d+x\d+x\d+", name)
            }
            assert sizes <= set(op.shapes), (dtype, found)


SAMPLE = ["gfx90a", "gfx942", "gfx1100", "gfx1250", "gfx11-generic", "sm_75", "sm_90", "sm_121", "compute_80"]


@pytest.mark.parametrize("name", SAMPLE)
def test_code_for_a_row_is_for_that_arch(name: str, tmp_path: Path) -> None:
    check_code(ARCHS[name], tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in ARCHS if name not in SAMPLE])
def test_code_for_every_row_is_for_that_arch(name: str, tmp_path: Path) -> None:
    check_code(ARCHS[name], tmp_path)


@pytest.mark.parametrize("name", ["gfx942", "sm_90"])
def test_products_take_the_matrix_instructions_of_the_row(name: str, tmp_path: Path) -> None:
    check_products(ARCHS[name], tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ARCHS)
def test_products_take_the_matrix_instructions_of_every_row(name: str, tmp_path: Path) -> None:
    check_products(ARCHS[name], tmp_path)


@pytest.mark.parametrize("name", ["gfx900", "gfx1030"])
def test_what_is_refused_can_not_be_built(name: str, tmp_path: Path) -> None:
    wave = 64 if name.startswith("gfx9") else 32
    (made,) = compile_kernels([addition()], GpuCode("hip", name, wave), cache=DiskCache(tmp_path))
    assert isinstance(made, Refused)
    assert "Triton answers" in REFUSED[name].reason


@pytest.mark.parametrize("name", ["gfx942", "gfx950", "gfx1201", "gfx1250"])
def test_a_kernel_that_asks_the_driver_for_arguments_is_refused(name: str, tmp_path: Path) -> None:
    """Numbers of programs are such arguments on AMD; ours say them by sizes."""
    text = "@triton.jit\ndef count(p0):\n    tl.store(p0, tl.num_programs(0))\n"
    source = TritonSource("count", text, (("p0", "*i32"),), (0,), (("num_warps", 1),))
    row = ARCHS[name].triton
    (made,) = compile_kernels([source], GpuCode("hip", row.arch, row.warp_size), cache=DiskCache(tmp_path))
    assert isinstance(made, Refused)
    assert "hidden_block_count_x" in made.reason


@pytest.mark.parametrize("name", ["gfx950", "gfx1250"])
def test_what_can_not_be_copied_past_the_registers_goes_through_them(name: str, tmp_path: Path) -> None:
    types = (("x", "*i32"), ("s", "*i32"), ("y", "*i8"), ("z", "*i32"))
    options = (("num_warps", 4), ("num_stages", 3))
    shifted = TritonSource("shifted", SHIFTED, types, (0, 1, 2, 3), options)
    narrow = TritonSource("narrow", NARROW, (("x", "*fp32"), ("z", "*bf16")))
    # In one process, one behind the other.
    made = compile_kernels([shifted, narrow], gpu_code(ARCHS[name]), jobs=1, cache=DiskCache(tmp_path))
    assert all(isinstance(kernel, CompiledKernel) for kernel in made), made
