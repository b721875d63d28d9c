"""What code objects say of themselves, against the toolchain's own words about the same kernels."""

from __future__ import annotations

import importlib.util
import re
import struct
from pathlib import Path

import pytest

from argosy.targets.gpu.arch import ARCHS
from argosy.targets.gpu.variant import gpu_code
from argosy.toolchains.cache import DiskCache
from argosy.toolchains.gpu_code_object import facts_of, matrix_instructions
from argosy.toolchains.triton import CompiledKernel, TritonSource, compile_kernels

needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="the package triton (extra gpu) is not installed"
)

# Sums of a tile that is far too large for the registers of one wave.
SPILLING = """
@triton.jit
def spilling(x, y, n, flag: tl.int1):
    i = tl.arange(0, 128)
    total = tl.zeros((128, 128), tl.float32)
    for k in range(0, n):
        total += tl.load(x + k * 128 + i)[:, None] * tl.load(x + k * 256 + i)[None, :]
    tl.store(y + i[:, None] * 128 + i[None, :], total)
"""
TYPES = (("x", "*fp32"), ("y", "*fp32"), ("n", "i32"), ("flag", "i1"))


def compiled(name: str, folder: Path) -> CompiledKernel:
    source = TritonSource("spilling", SPILLING, TYPES, options=(("num_warps", 1),))
    (made,) = compile_kernels([source], gpu_code(ARCHS[name]), cache=DiskCache(folder))
    assert isinstance(made, CompiledKernel), made
    return made


@needs_triton
def test_an_amd_code_object_says_what_its_assembly_says(tmp_path: Path) -> None:
    kernel = compiled("gfx1100", tmp_path)
    facts = facts_of(kernel.form, kernel.code)

    def told(name: str) -> int:
        found = re.search(rf"^\s*\.{name}:\s*(\d+)$", kernel.assembly, re.MULTILINE)
        assert found is not None, name
        return int(found.group(1))

    assert (facts.form, facts.entry, facts.arch, facts.flags) == ("hsaco", "spilling", "gfx1100", 0x41)
    assert facts.registers == told("vgpr_count")
    assert facts.scalar_registers == told("sgpr_count")
    assert facts.spills == told("vgpr_spill_count") + told("sgpr_spill_count") > 0
    assert facts.stack == told("private_segment_fixed_size") > 0
    assert facts.spilled >= facts.spills
    assert facts.parameter_bytes == told("kernarg_segment_size")
    assert facts.wave_size == told("wavefront_size") == 32
    # Two pointers of ours, the numbers, then Triton's pointers to scratch memory and to a profiler's.
    assert [(each.offset, each.size) for each in facts.parameters] == [
        (0, 8),
        (8, 8),
        (16, 4),
        (20, 1),
        (24, 8),
        (32, 8),
    ]
    assert [each.pointer for each in facts.parameters] == [True, True, False, False, True, True]


@needs_triton
def test_an_nvidia_code_object_agrees_with_the_ptx_that_it_was_made_from(tmp_path: Path) -> None:
    kernel = compiled("sm_90", tmp_path)
    facts, source = facts_of(kernel.form, kernel.code), facts_of("ptx", kernel.assembly.encode())
    assert (facts.form, facts.entry) == ("cubin", "spilling") == (facts.form, source.entry)
    assert facts.arch.rstrip("a") == source.arch.rstrip("a") == "sm_90"
    assert facts.registers is not None
    assert 32 <= facts.registers <= 255  # all that an instruction can name
    assert facts.stack is not None
    assert facts.stack > 0
    assert facts.spilled == facts.stack // 4
    assert [(each.offset, each.size) for each in facts.parameters] == [
        (each.offset, each.size) for each in source.parameters
    ]
    assert facts.parameter_bytes == source.parameter_bytes
    assert [each.pointer for each in source.parameters] == [True, True, False, False, True, True]


def test_matrix_instructions_are_counted_by_name() -> None:
    text = """
    v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]
    v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]
    v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]
    v_swmmac_f32_16x16x32_f16 v[0:7], v[8:11], v[16:23], v24
    v_fma_f32 v0, v1, v2, v3 // my_v_mfma_not
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 { %f1 };
    wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 { %f1 };
    """
    assert matrix_instructions(text) == {
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": 1,
        "v_mfma_f32_32x32x8_f16": 2,
        "v_swmmac_f32_16x16x32_f16": 1,
        "v_wmma_f32_16x16x16_f16": 1,
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16": 1,
    }


@pytest.mark.parametrize("form", ["hsaco", "cubin", "ptx"])
@pytest.mark.parametrize("code", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + bytes(58), b"\xff" * 100])
def test_what_is_no_code_object_is_a_value_error(form: str, code: bytes) -> None:
    with pytest.raises(ValueError, match=f"no {form}"):
        facts_of(form, code)


@pytest.mark.parametrize("form", ["hsaco", "cubin"])
def test_damaged_code_objects_are_value_errors(form: str) -> None:
    head = b"\x7fELF\x02\x01\x01" + bytes(33) + struct.pack("<QI", 64, 0) + struct.pack("<HHHHHH", 64, 0, 0, 64, 3, 1)
    code = head + bytes(400)
    for place in range(40, len(code), 3):
        damaged = code[:place] + b"\xf7" + code[place + 1 :]
        with pytest.raises(ValueError, match=f"no {form}"):
            facts_of(form, damaged)
