"""What the compiler knows of a GPU: the fields of an arch, of its matrix instructions, and of a product that has it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

__all__ = ["FEATURES", "KIB", "Fp8", "GpuArch", "MatrixOp", "Product", "TritonTarget", "Vendor"]

Vendor: TypeAlias = Literal["amd", "nvidia"]
Fp8: TypeAlias = Literal["", "fnuz", "ocp"]
"""The fp8 formats that matrix instructions take: none, the finite ones without negative zero, or OCP's."""

KIB: Final = 1024

FEATURES: Final = {
    "bf16": "floats are rounded to bf16 by one instruction",
    "async_copy": "global memory is copied to shared memory past the registers",
    "tensor_copy": "tiles of tensors are copied by descriptors (TMA, TDM)",
    "cluster": "blocks form clusters that share work",
    "programmatic_launch": "a kernel may begin before the one before it has ended",
    "scaled_matrix": "matrix instructions take scales for blocks of operands (MX formats)",
    "tensor_memory": "matrix instructions sum in a memory of their own",
}
"""What `GpuArch.has` may be asked, beside `matrix_` and an operand type."""

_BACKENDS: Final = {"amd": "hip", "nvidia": "cuda"}


@dataclass(frozen=True, slots=True)
class TritonTarget:
    """The three words of Triton's `GPUTarget`."""

    backend: str
    arch: str | int
    warp_size: int


@dataclass(frozen=True, slots=True)
class MatrixOp:
    """The matrix instructions for operands of one type.

    `mnemonic` begins the instruction's name in the assembly that Triton writes; `shapes` are (m, n, k) of one
    instruction, the largest first, where they are fixed.
    """

    dtype: str
    mnemonic: str
    shapes: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Product:
    """What one device of a product has: the numbers that an arch alone doesn't say.

    `compute_units` are counted as its vendor does; `memory` is in bytes, `bandwidth` in bytes a second; `peaks` are
    dense matrix operations a second by operand type, as its data sheet has them (vector ones where it has no others).
    None where nothing public says it. `chiplets` are the dies that share the work of one device.
    """

    name: str
    arch: str
    words: str
    compute_units: int | None = None
    chiplets: int = 1
    memory: int | None = None
    bandwidth: float | None = None
    peaks: tuple[tuple[str, float], ...] = ()

    def peak(self, dtype: str) -> float | None:
        """Dense operations a second with operands of a type, where a public source says so."""
        return dict(self.peaks).get(dtype)


@dataclass(frozen=True, slots=True)
class GpuArch:
    """An arch: what every device that runs its code has, and the numbers of the product that it is compiled for.

    A *unit* is what one block of threads runs on: a compute unit, a pair of them where the hardware joins two
    (`compute_units_per_unit`), or a streaming multiprocessor. Sizes are in bytes, registers are of 32 bits and those
    of all threads of a unit; `registers_per_thread` is the most that one instruction can name.

    `family` is the generation, `groups` the other names that mean this arch among others; `generic` the portable arch
    whose code also runs here. `suffix` marks code that runs on this arch alone. `stand_in` is the arch for which
    Triton makes the code of a generic one, before the code generator names the generic one. `ptx_version` is the PTX
    ISA of portable PTX, times ten; `llvm_features` is what LLVM is told to use of an AMD arch, or not to. `tier` says
    how far code for it has been tried: on what, when, with what.
    """

    name: str
    vendor: Vendor
    family: str
    words: str
    wave_size: int
    max_threads_per_unit: int
    shared_memory_per_block: int
    shared_memory_per_unit: int
    registers_per_unit: int
    registers_per_thread: int
    product: Product
    features: frozenset[str] = field(default_factory=frozenset)
    matrix: tuple[MatrixOp, ...] = ()
    fp8: Fp8 = ""
    groups: tuple[str, ...] = ()
    generic: str = ""
    suffix: str = ""
    stand_in: str = ""
    tier: str = "compiled and checked in structure only"
    portable: bool = False
    ptx_version: int = 0
    llvm_features: str = ""
    max_threads_per_block: int = 1024
    compute_units_per_unit: int = 1

    def has(self, feature: str) -> bool:
        """Whether every device of this arch has one of FEATURES, or `matrix_bf16`: matrix instructions for a type."""
        kind, _, dtype = feature.partition("_")
        return feature in self.features or (kind == "matrix" and self.matrix_op(dtype) is not None)

    def matrix_op(self, dtype: str) -> MatrixOp | None:
        """The matrix instructions for operands of a type: fp64, fp32, tf32, fp16, bf16, fp8, fp6, fp4, int8, int4."""
        return next((op for op in self.matrix if op.dtype == dtype), None)

    @property
    def code_name(self) -> str:
        """The arch as a code object names it: with the suffix of code that runs nowhere else."""
        return self.name + self.suffix

    @property
    def triton(self) -> TritonTarget:
        """What Triton compiles for: a name for AMD, a number for NVIDIA (it adds the suffix of its own accord)."""
        name = self.stand_in or self.name
        arch = name if self.vendor == "amd" else int(name.rpartition("_")[2])
        return TritonTarget(_BACKENDS[self.vendor], arch, self.wave_size)

    @property
    def units(self) -> int | None:
        """What blocks run on, counted over a device, where the number of its compute units is known."""
        count = self.product.compute_units
        return None if count is None else count // self.compute_units_per_unit
