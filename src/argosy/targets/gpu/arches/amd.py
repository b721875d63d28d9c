"""AMD's GPUs: a row for each gfx arch.

Sources, unless a row names its own:

- compute units, wave size, shared memory (LDS) and register files: "AMD GPU specifications" in the ROCm documentation
  (rocm.docs.amd.com, reference/gpu-specs). RDNA's figures there are those of a workgroup processor (WGP), which is two
  compute units and what a block runs on: Triton compiles for WGP mode.
- waves on a SIMD, SIMDs of a unit, registers that an instruction can name, LDS that one block may have: LLVM,
  lib/Target/AMDGPU (Utils/AMDGPUBaseInfo.cpp: getMaxWavesPerEU, getEUsPerCU, getTotalNumVGPRs,
  getAddressableNumVGPRs, getMaxFlatWorkGroupSize; AMDGPU.td: AddressableLocalMemorySize of each ISA version).
- matrix instructions and their shapes: the ISA manuals of CDNA 1 to 4, RDNA 3, 3.5 and 4 (the chapters on MFMA and
  WMMA), LLVM's IntrinsicsAMDGPU.td. Rows list what Triton makes of a product (a test compiles them); int4 and fp6
  instructions are left out, as it makes none of them.
- features: the list of each ISA version in LLVM's AMDGPU.td, and what LLVM's assembler takes for it and refuses for
  those before it (llvm/test/MC/AMDGPU): conversions to bf16, loads into LDS, tensor_load_to_lds, barriers of clusters,
  matrix instructions with scales.
- fp8 formats, tf32 and bf16: "Data types and precision support" in the ROCm documentation.
- generic archs, what runs their code and what they lack: "AMDGPU Generic Processors" in LLVM's AMDGPUUsage.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from argosy.emulation.archs import emulated_reason
from argosy.targets.gpu.arches.amd_products import REFERENCE
from argosy.targets.gpu.arches.row import KIB, Fp8, GpuArch, MatrixOp, Product

__all__ = ["AMD"]

_THREADS: Final = 2048  # 4 SIMDs × 8 waves of 64, or 4 SIMDs × 16 waves of 32


def _mfma(*rows: tuple[str, str, int, int]) -> tuple[MatrixOp, ...]:
    """MFMA instructions: operand type, mnemonic, and k of the 32 × 32 and of the 16 × 16 form (0: there is none)."""
    return tuple(
        MatrixOp(dtype, name, tuple((side, side, k) for side, k in ((32, wide), (16, narrow)) if k))
        for dtype, name, wide, narrow in rows
    )


def _wmma(*rows: tuple[str, str, int]) -> tuple[MatrixOp, ...]:
    """WMMA instructions of 16 × 16 results: operand type, mnemonic and k."""
    return tuple(MatrixOp(dtype, name, ((16, 16, k),)) for dtype, name, k in rows)


def _cdna(
    name: str, family: str, words: str, matrix: tuple[MatrixOp, ...], *,
    features: str = "", groups: str = "", fp8: Fp8 = "", generic: str = "",
    registers: int = 128 * KIB, registers_per_thread: int = 512, threads: int = _THREADS, shared: int = 64 * KIB,
) -> GpuArch:  # fmt: skip
    """A row with waves of 64 and MFMA (or, before it, no matrix unit): a compute unit runs a block."""
    return GpuArch(
        name,
        "amd",
        family,
        words,
        wave_size=64,
        max_threads_per_unit=threads,
        shared_memory_per_block=shared,
        shared_memory_per_unit=shared,
        registers_per_unit=registers,
        registers_per_thread=registers_per_thread,
        product=REFERENCE.get(name, Product("", name, words)),
        features=frozenset(features.split()),
        matrix=matrix,
        fp8=fp8,
        groups=tuple(groups.split()),
        generic=generic,
    )


def _rdna(
    name: str, family: str, words: str, matrix: tuple[MatrixOp, ...], *,
    generic: str, registers: int, fp8: Fp8 = "", groups: str = "rdna",
) -> GpuArch:  # fmt: skip
    """A row with waves of 32 and WMMA: two compute units share 128 KiB of LDS, a block may have half of it."""
    return GpuArch(
        name,
        "amd",
        family,
        words,
        wave_size=32,
        max_threads_per_unit=_THREADS,
        shared_memory_per_block=64 * KIB,
        shared_memory_per_unit=128 * KIB,
        registers_per_unit=registers,
        registers_per_thread=256,
        product=REFERENCE.get(name, Product("", name, words)),
        matrix=matrix,
        fp8=fp8,
        groups=tuple(groups.split()),
        generic=generic,
        compute_units_per_unit=2,
    )


_CDNA1: Final = _mfma(
    ("fp32", "v_mfma_f32_", 2, 4),
    ("fp16", "v_mfma_f32_", 8, 16),
    ("bf16", "v_mfma_f32_", 4, 8),
    ("int8", "v_mfma_i32_", 8, 16),
)
_CDNA2: Final = _mfma(
    ("fp64", "v_mfma_f64_", 0, 4),
    ("fp32", "v_mfma_f32_", 2, 4),
    ("fp16", "v_mfma_f32_", 8, 16),
    ("bf16", "v_mfma_f32_", 8, 16),  # the _1k forms; those of CDNA 1 are there too
    ("int8", "v_mfma_i32_", 8, 16),
)
_CDNA3: Final = _mfma(
    ("fp64", "v_mfma_f64_", 0, 4),
    ("fp32", "v_mfma_f32_", 2, 4),
    ("tf32", "v_mfma_f32_", 4, 8),  # XF32: 10 bits of mantissa
    ("fp16", "v_mfma_f32_", 8, 16),
    ("bf16", "v_mfma_f32_", 8, 16),
    ("fp8", "v_mfma_f32_", 16, 32),
    ("int8", "v_mfma_i32_", 16, 32),
)
# XF32 is gone again (CDNA 4 ISA, changes from CDNA 3).
_CDNA4: Final = _mfma(
    ("fp64", "v_mfma_f64_", 0, 4),
    ("fp32", "v_mfma_f32_", 2, 4),
    ("fp16", "v_mfma_f32_", 16, 32),
    ("bf16", "v_mfma_f32_", 16, 32),
    ("fp8", "v_mfma_", 64, 128),  # f8f6f4, plain and scaled
    ("fp4", "v_mfma_scale_", 64, 128),
    ("int8", "v_mfma_i32_", 32, 64),
)
_RDNA3: Final = _wmma(("fp16", "v_wmma_f32_", 16), ("bf16", "v_wmma_f32_", 16), ("int8", "v_wmma_i32_", 16))
_RDNA4: Final = (*_RDNA3, *_wmma(("fp8", "v_wmma_f32_", 16)))


_CDNA5_MATRIX: Final = _wmma(
    ("fp32", "v_wmma_f32_", 4),
    ("fp16", "v_wmma_f32_", 32),
    ("bf16", "v_wmma_f32_", 32),
    ("fp8", "v_wmma_f32_", 64),
    ("fp4", "v_wmma_scale_", 128),
    ("int8", "v_wmma_i32_", 64),
)


def _cdna5(name: str, words: str) -> GpuArch:
    """A row with waves of 32 and WMMA in a datacentre part: a unit is what its maker counts, with 4 SIMDs."""
    return GpuArch(
        name,
        "amd",
        "cdna5",
        words,
        wave_size=32,
        max_threads_per_unit=_THREADS,
        shared_memory_per_block=320 * KIB,
        shared_memory_per_unit=320 * KIB,
        registers_per_unit=128 * KIB,  # 1,024 for each of a SIMD's 32 lanes
        registers_per_thread=1024,
        product=REFERENCE.get(name, Product("", name, words)),
        features=frozenset({"bf16", "async_copy", "tensor_copy", "cluster", "scaled_matrix"}),
        matrix=_CDNA5_MATRIX,
        fp8="ocp",
        groups=("cdna", "datacenter"),
        # Where halves of registers have names, LLVM (in Triton 3.9) drops loads of bytes whose address a whole wave
        # shares and that lie behind a branch that it shares.
        llvm_features="-real-true16",
    )


_ROWS: Final = (
    # 4 SIMDs × 10 waves of 64; 256 registers for each of a SIMD's 64 lanes.
    _cdna("gfx906", "vega20", "Vega 20: Instinct MI50 and MI60, Radeon VII", (),
          groups="vega", registers=64 * KIB, registers_per_thread=256, threads=2560),
    # As many accumulation registers again, which only matrix instructions and moves can name.
    _cdna("gfx908", "cdna1", "CDNA: Instinct MI100", _CDNA1,
          groups="cdna datacenter", registers=64 * KIB, registers_per_thread=256, threads=2560),
    _cdna("gfx90a", "cdna2", "CDNA 2: Instinct MI210, MI250, MI250X", _CDNA2,
          groups="cdna datacenter"),
    _cdna("gfx942", "cdna3", "CDNA 3: Instinct MI300A, MI300X, MI325X", _CDNA3, fp8="fnuz", generic="gfx9-4-generic",
          groups="cdna datacenter"),
    # Conversions to bf16 came with CDNA 4; direct loads of 16 bytes into LDS too.
    _cdna("gfx950", "cdna4", "CDNA 4: Instinct MI350X, MI355X", _CDNA4, fp8="ocp", generic="gfx9-4-generic",
          features="bf16 async_copy scaled_matrix",
          groups="cdna datacenter", shared=160 * KIB),
    # 4 SIMDs × 1,536 registers for each of 32 lanes; 1,024 on the smaller dies.
    _rdna("gfx1100", "rdna3", "RDNA 3, Navi 31: Radeon RX 7900, PRO W7800, W7900", _RDNA3,
          generic="gfx11-generic", registers=192 * KIB),
    _rdna("gfx1101", "rdna3", "RDNA 3, Navi 32: Radeon RX 7700 XT, 7800 XT, PRO W7700, V710", _RDNA3,
          generic="gfx11-generic", registers=192 * KIB),
    _rdna("gfx1102", "rdna3", "RDNA 3, Navi 33: Radeon RX 7600", _RDNA3,
          generic="gfx11-generic", registers=128 * KIB),
    _rdna("gfx1103", "rdna3", "RDNA 3, Phoenix: Radeon 740M to 780M in Ryzen 7040 and 8040", _RDNA3,
          generic="gfx11-generic", registers=128 * KIB, groups="rdna apu"),
    _rdna("gfx1150", "rdna3.5", "RDNA 3.5, Strix Point: Radeon 880M, 890M in Ryzen AI 300", _RDNA3,
          generic="gfx11-generic", registers=128 * KIB, groups="rdna apu"),
    _rdna("gfx1151", "rdna3.5", "RDNA 3.5, Strix Halo: Radeon 8050S, 8060S in Ryzen AI Max", _RDNA3,
          generic="gfx11-generic", registers=192 * KIB, groups="rdna apu"),
    _rdna("gfx1152", "rdna3.5", "RDNA 3.5, Krackan Point: Radeon 840M, 860M in Ryzen AI 300", _RDNA3,
          generic="gfx11-generic", registers=128 * KIB, groups="rdna apu"),
    # Nothing public says how many registers it has; the smaller of its generation's two sizes is safe.
    _rdna("gfx1153", "rdna3.5", "RDNA 3.5: the smallest of its APUs", _RDNA3,
          generic="gfx11-generic", registers=128 * KIB, groups="rdna apu"),
    _rdna("gfx1200", "rdna4", "RDNA 4, Navi 44: Radeon RX 9060, 9060 XT", _RDNA4, fp8="ocp",
          generic="gfx12-generic", registers=192 * KIB),
    _rdna("gfx1201", "rdna4", "RDNA 4, Navi 48: Radeon RX 9070, 9070 XT, AI PRO R9700", _RDNA4, fp8="ocp",
          generic="gfx12-generic", registers=192 * KIB),
)  # fmt: skip


def _generic(name: str, words: str, stand_in: str, lacking: tuple[str, ...] = ()) -> GpuArch:
    """A portable row: what `stand_in` has, for which Triton makes the code, less what not all of its archs have."""
    row = next(row for row in _ROWS if row.name == stand_in)
    return replace(
        row,
        name=name,
        words=words,
        product=Product("", name, words),
        registers_per_unit=min(other.registers_per_unit for other in _ROWS if other.generic == name),
        matrix=tuple(op for op in row.matrix if op.dtype not in lacking),
        fp8="" if "fp8" in lacking else row.fp8,
        groups=("portable",),
        generic="",
        stand_in=stand_in,
        portable=True,
    )


_GENERICS: Final = (
    _generic("gfx9-4-generic", "any CDNA 3 or 4: gfx942, gfx950", "gfx942", ("fp8", "tf32")),
    _generic("gfx11-generic", "any RDNA 3 or 3.5: gfx1100 to gfx1153", "gfx1100"),
    _generic("gfx12-generic", "any RDNA 4: gfx1200, gfx1201", "gfx1200"),
)

# gfx1251 has a matrix instruction for doubles too, which Triton does not make, and takes two to four times as many
# cycles for the others (LLVM SISchedule.td).
_CDNA5: Final = (
    _cdna5("gfx1250", "CDNA 5: Instinct MI455X"),
    _cdna5("gfx1251", "CDNA 5 for double precision: Instinct MI430X"),
)

_EMULATED: Final = "emulated: 100 cases of ONNX's suite, SqueezeNet, small models of the families of the catalogue"
_EMULATED_MORE: Final = "emulated: 300 cases of ONNX's suite, ResNet-50, MobileNetV2, BERT, three real models"
_MORE: Final = ("gfx942", "gfx1100")

AMD: Final = tuple(
    row if emulated_reason(row.name) else replace(row, tier=_EMULATED_MORE if row.name in _MORE else _EMULATED)
    for row in (*_ROWS, *_CDNA5, *_GENERICS)
)
"""Every row of AMD's, the generic ones last."""
