"""NVIDIA's products: what one device of each has.

Sources, unless a row names its own: the data sheets of A100, H100, H200, B200 (HGX), A10, L4, L40S and T4; the
architecture white papers of Turing, Ampere GA102, Ada and RTX Blackwell for the GeForce and RTX PRO cards. Peaks are
dense and with sums in fp32, which is what our kernels compute; the data sheets of Ada, Hopper and Blackwell often print
twice as much, for sparse operands, and GeForce cards are twice as fast with sums in fp16. Memory is in 10⁹ bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from argosy.targets.gpu.arches.row import Product

__all__ = ["NVIDIA_PRODUCTS", "REFERENCE"]


def _product(
    name: str,
    arch: str,
    words: str,
    compute_units: int | None = None,
    gigabytes: int | None = None,
    gigabytes_per_second: float | None = None,
    *,
    chiplets: int = 1,
    peaks: Mapping[str, float] = MappingProxyType({}),
    **tera: float,
) -> Product:
    """A row: streaming multiprocessors, memory in GB, bandwidth in GB/s, peaks in 10¹² operations a second by type."""
    return Product(
        name,
        arch,
        words,
        compute_units,
        chiplets,
        None if gigabytes is None else gigabytes * 10**9,
        None if gigabytes_per_second is None else gigabytes_per_second * 1e9,
        tuple((dtype, peak * 1e12) for dtype, peak in {**peaks, **tera}.items()),
    )


_A100: Final = {"fp64": 19.5, "fp32": 19.5, "tf32": 156, "fp16": 312, "bf16": 312, "int8": 624, "int4": 1248}
_HOPPER: Final = {"fp64": 66.9, "fp32": 66.9, "tf32": 494.7, "fp16": 989.4, "bf16": 989.4, "fp8": 1978.9,
                  "int8": 1978.9}  # fmt: skip

NVIDIA_PRODUCTS: Final = (
    _product("t4", "sm_75", "T4", 40, 16, 320, fp32=8.1, fp16=65, int8=130, int4=260),
    _product("a100", "sm_80", "A100 SXM, 80 GB", 108, 80, 2039, peaks=_A100),
    _product("a100-40gb", "sm_80", "A100, 40 GB", 108, 40, 1555, peaks=_A100),
    _product("a10", "sm_86", "A10", 72, 24, 600, fp32=31.2, tf32=62.5, fp16=125, bf16=125, int8=250, int4=500),
    _product("rtx3090", "sm_86", "GeForce RTX 3090", 82, 24, 936, fp32=35.6, tf32=35.6, fp16=71, bf16=71, int8=284),
    # The module's memory is also its CPU's. Its data sheet gives sparse peaks of the GPU and its accelerators in sum.
    _product("orin", "sm_87", "Jetson AGX Orin, 64 GB", 16, 64, 204.8),
    _product("l4", "sm_89", "L4", 58, 24, 300, fp32=30.3, tf32=60, fp16=121, bf16=121, fp8=242.5, int8=242.5),
    _product("l40s", "sm_89", "L40S", 142, 48, 864, fp32=91.6, tf32=183, fp16=362, bf16=362, fp8=733, int8=733),
    _product("rtx4090", "sm_89", "GeForce RTX 4090", 128, 24, 1008, fp32=82.6, tf32=82.6, fp16=165.2, bf16=165.2,
             fp8=330.3, int8=660.6),
    _product("h100", "sm_90", "H100 SXM", 132, 80, 3350, peaks=_HOPPER),
    _product("h200", "sm_90", "H200 SXM", 132, 141, 4800, peaks=_HOPPER),
    _product("b200", "sm_100", "B200 in HGX", 148, 180, 7700, chiplets=2, fp64=37, fp32=75, tf32=1125, fp16=2250,
             bf16=2250, fp8=4500, fp4=9000, int8=4500),
    # Its multiprocessors are not in the data sheet; the article "Inside NVIDIA Blackwell Ultra" has 160 on two whole
    # dies, of which a product may have fewer. Peaks: HGX B300.
    _product("b300", "sm_103", "B300 in HGX", None, 288, 8000, chiplets=2, fp64=1.25, fp32=75, tf32=1125, fp16=2250,
             bf16=2250, fp8=4500, fp4=13125),
    # 2,560 cores, 128 on a multiprocessor (data sheet of Jetson T5000); peaks there are sparse ones.
    _product("thor", "sm_110", "Jetson T5000", 20, 128, 273),
    _product("rtx5090", "sm_120", "GeForce RTX 5090", 170, 32, 1792, fp32=104.8, tf32=104.8, fp16=209.5, bf16=209.5,
             fp8=419, fp4=1676, int8=838),
    _product("rtxpro6000", "sm_120", "RTX PRO 6000 Blackwell", 188, 96, 1792),
    # 6,144 cores, 128 on a multiprocessor; the memory is also the CPU's (DGX Spark user guide).
    _product("gb10", "sm_121", "GB10 in DGX Spark", 48, 128, 273),
)  # fmt: skip

_CHOSEN: Final = ("t4", "a100", "a10", "orin", "l4", "h100", "b200", "b300", "thor", "rtx5090", "gb10")
_NAMED: Final = {product.name: product for product in NVIDIA_PRODUCTS}

REFERENCE: Final = {_NAMED[name].arch: _NAMED[name] for name in _CHOSEN}
"""By arch, the product for which it is compiled where none is named."""
