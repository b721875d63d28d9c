"""NVIDIA's GPUs: a row for each compute capability, and the portable PTX.

Sources: the CUDA programming guide, appendix "Compute Capabilities" (13.x, §5.1): resident threads and threads of a
block (Features and Technical Specifications, table 30), registers and shared memory (table 31), what matrix units take
(table 33), bf16, clusters and the tensor memory accelerator (table 29), architecture-specific code (§5.1.2). Other
features: the PTX ISA, which says from which arch on there are cp.async, griddepcontrol (starts before the kernel in
front has ended), mma with block scales, and tcgen05 with its tensor memory. Matrix rows list what Triton makes of a
product (a test compiles them); int4 and fp6 are left out, as it makes none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from argosy.targets.gpu.arches.nvidia_products import REFERENCE
from argosy.targets.gpu.arches.row import KIB, GpuArch, MatrixOp, Product

__all__ = ["NVIDIA"]

_PORTABLE: Final = "compute_80"


def _mma(mnemonic: str, shapes: dict[str, tuple[int, int, int]]) -> tuple[MatrixOp, ...]:
    """Matrix instructions of one mnemonic: their shape by operand type."""
    return tuple(MatrixOp(dtype, mnemonic, (shape,)) for dtype, shape in shapes.items())


def _row(
    name: str, family: str, words: str, *,
    threads: int, shared: int, matrix: tuple[MatrixOp, ...], features: str = "", groups: str = "", suffix: str = "",
    generic: str = _PORTABLE, portable: bool = False, ran: str = "",
) -> GpuArch:  # fmt: skip
    """A row: `shared` is what a block may have, in KiB; a multiprocessor has one more, which it keeps to itself."""
    row = GpuArch(
        name,
        "nvidia",
        family,
        words,
        wave_size=32,
        max_threads_per_unit=threads,
        shared_memory_per_block=shared * KIB,
        shared_memory_per_unit=(shared if shared == 64 else shared + 1) * KIB,
        registers_per_unit=64 * KIB,
        registers_per_thread=255,
        product=REFERENCE.get(name, Product("", name, words)),
        features=frozenset(features.split()),
        matrix=matrix,
        fp8="ocp" if any(op.dtype == "fp8" for op in matrix) else "",
        groups=tuple(groups.split()),
        generic=generic,
        suffix=suffix,
        portable=portable,
        ptx_version=70 if portable else 0,  # the first that knows 8.0, with CUDA 11.0 (PTX ISA, release history)
    )
    return replace(row, tier=f"run on hardware: {ran}") if ran else row


_K16: Final = (16, 8, 16)
_SYNC: Final = _mma(
    "mma.sync.", {"tf32": (16, 8, 8), "fp16": _K16, "bf16": _K16, "int8": (16, 8, 32)}
)  # PTX ISA, mma: the shapes that Triton takes
_DOUBLE: Final = _mma("mma.sync.", {"fp64": (8, 8, 4)})
_SYNC_FP8: Final = _mma("mma.sync.", {"fp8": (16, 8, 32)})
_SYNC_FP4: Final = _mma("mma.sync.", {"fp4": (16, 8, 64)})
# wgmma: 64 rows of a warp group's product, up to 256 columns.
_WGMMA: Final = _mma(
    "wgmma.mma_async.",
    {"tf32": (64, 256, 8), "fp16": (64, 256, 16), "bf16": (64, 256, 16), "fp8": (64, 256, 32), "int8": (64, 256, 32)},
)
# tcgen05: 128 rows and up to 256 columns of one multiprocessor, with sums in its tensor memory.
_TCGEN05: Final = _mma(
    "tcgen05.mma.",
    {
        "tf32": (128, 256, 8),
        "fp16": (128, 256, 16),
        "bf16": (128, 256, 16),
        "fp8": (128, 256, 32),
        "fp4": (128, 256, 64),
    },
)
_TCGEN05_INT8: Final = _mma("tcgen05.mma.", {"int8": (128, 256, 32)})  # kind::i8 is in no other arch
_SYNC_INT8: Final = _mma("mma.sync.", {"int8": (16, 8, 32)})

_AMPERE: Final = "bf16 async_copy"
_HOPPER: Final = f"{_AMPERE} tensor_copy cluster programmatic_launch"
_BLACKWELL: Final = f"{_HOPPER} scaled_matrix"

NVIDIA: Final = (
    # Its matrix units take fp16, int8 and int4, but Triton 3.9 makes multiply-adds of fp16 and refuses int8.
    _row("sm_75", "turing", "Turing: T4, GeForce RTX 20", threads=1024, shared=64, matrix=(), generic=""),
    _row("sm_80", "ampere", "Ampere: A100, A30", threads=2048, shared=163, matrix=_SYNC + _DOUBLE, features=_AMPERE,
         groups="datacenter"),
    _row("sm_86", "ampere", "Ampere: A10, A40, GeForce RTX 30", threads=1536, shared=99, matrix=_SYNC,
         features=_AMPERE),
    _row("sm_87", "ampere", "Ampere: Jetson Orin", threads=1536, shared=163, matrix=_SYNC, features=_AMPERE,
         groups="jetson"),
    _row("sm_89", "ada", "Ada: L4, L40S, GeForce RTX 40", threads=1536, shared=99, matrix=_SYNC + _SYNC_FP8,
         features=_AMPERE),
    _row("sm_90", "hopper", "Hopper: H100, H200, GH200", threads=2048, shared=227, matrix=_WGMMA + _DOUBLE,
         features=_HOPPER, groups="datacenter", suffix="a",
         ran="ONNX's suite, 37 real models, two benchmarks on an H200, November 2026"),
    _row("sm_100", "blackwell", "Blackwell: B200, GB200", threads=2048, shared=227,
         matrix=_TCGEN05 + _TCGEN05_INT8 + _DOUBLE, features=f"{_BLACKWELL} tensor_memory", groups="datacenter",
         suffix="a"),
    # This one and sm_110 have no matrix unit for fp64 (table 33), though the instruction is there.
    _row("sm_103", "blackwell", "Blackwell Ultra: B300, GB300", threads=2048, shared=227,
         matrix=_TCGEN05 + _SYNC_INT8 + _DOUBLE, features=f"{_BLACKWELL} tensor_memory", groups="datacenter",
         suffix="a"),
    _row("sm_110", "blackwell", "Blackwell: Jetson Thor", threads=1536, shared=227,
         matrix=_TCGEN05 + _SYNC_INT8 + _DOUBLE, features=f"{_BLACKWELL} tensor_memory", groups="jetson", suffix="a"),
    _row("sm_120", "blackwell", "Blackwell: GeForce RTX 50, RTX PRO", threads=1536, shared=99,
         matrix=_SYNC + _SYNC_FP8 + _SYNC_FP4, features=_BLACKWELL, suffix="a"),
    _row("sm_121", "blackwell", "Blackwell: GB10 in DGX Spark", threads=1536, shared=99,
         matrix=_SYNC + _SYNC_FP8 + _SYNC_FP4, features=_BLACKWELL, suffix="a"),
    # PTX that any later GPU's driver can finish: no more of anything than the least that one of them has. Every arch
    # from 8.0 on has the product of doubles (PTX ISA, mma), though few have a unit for it.
    _row(_PORTABLE, "portable", "portable PTX: any NVIDIA GPU from compute capability 8.0 on", threads=1536, shared=99,
         matrix=_SYNC + _DOUBLE, features=_AMPERE, generic="", portable=True),
)  # fmt: skip
