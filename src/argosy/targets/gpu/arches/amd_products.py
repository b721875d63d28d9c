"""AMD's products: what one device of each has. Where a card shows itself as two devices, the numbers are one's.

Sources, unless a row names its own: compute units and memory from "AMD GPU specifications" in the ROCm documentation
(rocm.docs.amd.com, reference/gpu-specs); dies that compute (XCDs) from the same table. Bandwidths and dense peaks:

- Instinct MI100, MI200, MI300 and MI350: the tables of products in the white papers of CDNA, CDNA 2, CDNA 3 and
  CDNA 4 (amd.com); MI325X: its data sheet, which has more bandwidth than MI300X and the same peaks.
- Instinct MI50 and MI60, Radeon and Radeon PRO: the product pages (amd.com).

An APU's memory is the machine's: its size and, where the machine chooses the modules, its bandwidth are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from argosy.targets.gpu.arches.row import Product

__all__ = ["AMD_PRODUCTS", "REFERENCE"]


def _product(
    name: str,
    arch: str,
    words: str,
    compute_units: int | None = None,
    gib: int | None = None,
    gigabytes_per_second: float | None = None,
    *,
    chiplets: int = 1,
    peaks: Mapping[str, float] = MappingProxyType({}),
    **tera: float,
) -> Product:
    """A row: memory in GiB, bandwidth in GB/s, peaks in 10¹² operations a second by operand type."""
    return Product(
        name,
        arch,
        words,
        compute_units,
        chiplets,
        None if gib is None else gib << 30,
        None if gigabytes_per_second is None else gigabytes_per_second * 1e9,
        tuple((dtype, peak * 1e12) for dtype, peak in {**peaks, **tera}.items()),
    )


_MI300: Final = {"fp64": 163.4, "fp32": 163.4, "tf32": 653.7, "fp16": 1307.4, "bf16": 1307.4, "fp8": 2614.9,
                 "int8": 2614.9}  # fmt: skip

AMD_PRODUCTS: Final = (
    _product("mi50", "gfx906", "Instinct MI50", 60, 16, 1024, fp64=6.6, fp32=13.3, fp16=26.5, int8=53),
    _product("mi60", "gfx906", "Instinct MI60", 64, 32, 1024, fp64=7.4, fp32=14.7, fp16=29.5, int8=58.9),
    _product("mi100", "gfx908", "Instinct MI100", 120, 32, 1228.8, fp64=11.5, fp32=46.1, fp16=184.6, bf16=92.3,
             int8=184.6),
    _product("mi210", "gfx90a", "Instinct MI210", 104, 64, 1638.4, fp64=45.3, fp32=45.3, fp16=181.0, bf16=181.0,
             int8=181.0),
    # The two dies of a package are two devices: half of the package's 128 GiB, 3,277 GB/s and peaks.
    _product("mi250", "gfx90a", "Instinct MI250, one of its two devices", 104, 64, 1638.4, fp64=45.3, fp32=45.3,
             fp16=181.0, bf16=181.0, int8=181.0),
    _product("mi250x", "gfx90a", "Instinct MI250X, one of its two devices", 110, 64, 1638.4, fp64=47.9, fp32=47.9,
             fp16=191.5, bf16=191.5, int8=191.5),
    _product("mi300a", "gfx942", "Instinct MI300A", 228, 128, 5300, chiplets=6, fp64=122.6, fp32=122.6, tf32=490.3,
             fp16=980.6, bf16=980.6, fp8=1961.2, int8=1961.2),
    _product("mi300x", "gfx942", "Instinct MI300X", 304, 192, 5300, chiplets=8, peaks=_MI300),
    _product("mi325x", "gfx942", "Instinct MI325X", 304, 256, 6000, chiplets=8, peaks=_MI300),
    _product("mi350x", "gfx950", "Instinct MI350X", 256, 288, 8000, chiplets=8, fp64=72.1, fp32=144.2, fp16=2300,
             bf16=2300, fp8=4600, fp6=9200, fp4=9200, int8=4600),
    _product("mi355x", "gfx950", "Instinct MI355X", 256, 288, 8000, chiplets=8, fp64=78.6, fp32=157.3, fp16=2500,
             bf16=2500, fp8=5000, fp6=10000, fp4=10000, int8=5000),
    _product("rx7900xtx", "gfx1100", "Radeon RX 7900 XTX", 96, 24, 960, fp32=61.4, fp16=122.8),
    _product("rx7900xt", "gfx1100", "Radeon RX 7900 XT", 84, 20, 800, fp32=51.6, fp16=103.2),
    _product("rx7900gre", "gfx1100", "Radeon RX 7900 GRE", 80, 16, 576, fp32=46.0, fp16=92.0),
    _product("w7900", "gfx1100", "Radeon PRO W7900", 96, 48, 864, fp32=61.3, fp16=122.6),
    _product("w7800", "gfx1100", "Radeon PRO W7800", 70, 32, 576, fp32=45.2, fp16=90.5),
    _product("rx7800xt", "gfx1101", "Radeon RX 7800 XT", 60, 16, 624, fp32=37.3, fp16=74.6),
    _product("rx7700xt", "gfx1101", "Radeon RX 7700 XT", 54, 12, 432, fp32=35.2, fp16=70.3),
    _product("w7700", "gfx1101", "Radeon PRO W7700", 48, 16, 576, fp32=28.3, fp16=56.5),
    _product("rx7600", "gfx1102", "Radeon RX 7600", 32, 8, 288, fp32=21.5, fp16=43.0),
    _product("radeon-780m", "gfx1103", "Radeon 780M, in Ryzen 7040 and 8040", 12),
    _product("strix-point", "gfx1150", "Radeon 890M, in Ryzen AI 9 HX 370 and 375", 16),
    # 256 bits of LPDDR5x-8000, soldered (product page of the Ryzen AI Max+ 395).
    _product("strix-halo", "gfx1151", "Radeon 8060S, in Ryzen AI Max+ 395", 40, None, 256),
    _product("krackan-point", "gfx1152", "Radeon 860M, in Ryzen AI 7 350", 8),
    _product("rx9060xt", "gfx1200", "Radeon RX 9060 XT", 32, 16, 320, fp32=25.6, fp16=103, fp8=205, int8=205),
    _product("rx9070", "gfx1201", "Radeon RX 9070", 56, 16, 640, fp32=36.1, fp16=145, fp8=289, int8=289),
    _product("rx9070xt", "gfx1201", "Radeon RX 9070 XT", 64, 16, 640, fp32=48.7, fp16=195, fp8=389, int8=389),
    _product("r9700", "gfx1201", "Radeon AI PRO R9700", 64, 32, 640, fp32=47.8, fp16=191, fp8=383, int8=383),
    # 432 GB and up to 23.3 TB/s: "Hugging Face on AMD Instinct MI455X" (July 2026). Nothing public gives its compute
    # units or dense peaks by type.
    Product("mi455x", "gfx1250", "Instinct MI455X", memory=432 * 10**9, bandwidth=23.3e12),
    Product("mi430x", "gfx1251", "Instinct MI430X"),
)  # fmt: skip

_CHOSEN: Final = ("mi60", "mi100", "mi210", "mi300x", "mi355x", "rx7900xtx", "rx7800xt", "rx7600", "radeon-780m",
                  "strix-point", "strix-halo", "krackan-point", "rx9060xt", "rx9070xt", "mi455x", "mi430x")  # fmt: skip
_NAMED: Final = {product.name: product for product in AMD_PRODUCTS}

REFERENCE: Final = {_NAMED[name].arch: _NAMED[name] for name in _CHOSEN}
"""By arch, the product for which it is compiled where none is named: the most common of those with all its units."""
