"""The rows of GPUs are consistent with each other, and a name means one thing."""

from __future__ import annotations

import pytest

from argosy.targets.gpu.arch import ARCHS, FAMILIES, PRODUCTS, REFUSED, GpuArch, archs_of, find_gpu
from argosy.targets.gpu.arches.row import FEATURES

every_arch = pytest.mark.parametrize("arch", ARCHS.values(), ids=lambda arch: arch.name)
DTYPES = {"fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8", "int4"}
BUILT = (
    "gfx906 gfx908 gfx90a gfx942 gfx950 gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 gfx1200"
    " gfx1201 gfx1250 gfx1251 sm_75 sm_80 sm_86 sm_87 sm_89 sm_90 sm_100 sm_103 sm_110 sm_120 sm_121 compute_80"
)


def runs_code_of(generic: GpuArch) -> list[GpuArch]:
    """The rows of the devices that run a portable row's code."""
    return [row for row in ARCHS.values() if row.generic == generic.name]


def test_every_arch_that_is_promised_has_a_row() -> None:
    assert set(BUILT.split()) <= set(ARCHS)
    assert {name for name, row in ARCHS.items() if row.portable} == {
        "compute_80", "gfx9-4-generic", "gfx11-generic", "gfx12-generic",
    }  # fmt: skip


def test_a_name_means_one_thing() -> None:
    tables = (ARCHS, PRODUCTS, FAMILIES, REFUSED)
    names = [name for table in tables for name in table]
    assert len(set(names)) == len(names)
    assert all(refusal.reason and refusal.instead for refusal in REFUSED.values())


@every_arch
def test_a_row_is_whole(arch: GpuArch) -> None:
    assert find_gpu(arch.name) is arch
    assert arch.wave_size in (32, 64)
    assert arch.max_threads_per_unit % arch.wave_size == arch.max_threads_per_block % arch.wave_size == 0
    assert arch.max_threads_per_block <= arch.max_threads_per_unit
    assert arch.shared_memory_per_block <= arch.shared_memory_per_unit
    assert arch.registers_per_unit % arch.wave_size == 0
    assert {op.dtype for op in arch.matrix} <= DTYPES
    assert all(min(shape) > 0 for op in arch.matrix for shape in op.shapes)
    assert bool(arch.fp8) == arch.has("matrix_fp8")
    assert arch.product.arch == arch.name
    assert not arch.has("matrix_")
    assert not arch.has("wings")
    assert arch.features <= FEATURES.keys()
    hash(arch)


@every_arch
def test_a_row_says_what_triton_compiles_for(arch: GpuArch) -> None:
    assert arch.triton.warp_size == arch.wave_size
    assert arch.triton.backend == {"amd": "hip", "nvidia": "cuda"}[arch.vendor]
    named = arch.stand_in or arch.name
    assert named == arch.triton.arch or named.endswith(f"_{arch.triton.arch}")
    assert bool(arch.suffix) == (
        arch.vendor == "nvidia" and isinstance(arch.triton.arch, int) and arch.triton.arch > 89
    )


@every_arch
def test_a_portable_row_asks_for_no_more_than_any_of_its_devices_has(arch: GpuArch) -> None:
    if arch.generic:
        assert ARCHS[arch.generic].portable
        assert ARCHS[arch.generic].vendor == arch.vendor
    if not arch.portable:
        return
    devices = runs_code_of(arch)
    assert devices
    for row in devices:
        assert arch.wave_size == row.wave_size
        assert arch.shared_memory_per_block <= row.shared_memory_per_block
        assert arch.registers_per_unit <= row.registers_per_unit
        assert arch.registers_per_thread <= row.registers_per_thread
        assert arch.max_threads_per_unit <= row.max_threads_per_unit
        assert arch.features <= row.features
        # PTX has products of doubles for every arch, also for those where Triton takes none.
        assert {op.dtype for op in arch.matrix} <= {op.dtype for op in row.matrix} | {"fp64"}
        assert arch.fp8 in ("", row.fp8)


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_gives_its_numbers_to_its_arch(name: str) -> None:
    product = PRODUCTS[name]
    row = find_gpu(name)
    assert row is not None
    assert row.name == product.arch in ARCHS
    assert row.product is product
    assert dict(product.peaks).keys() <= DTYPES
    assert product.chiplets >= 1
    if product.compute_units is not None:
        assert row.units == product.compute_units // row.compute_units_per_unit
    # Units: bytes, not GB or MB, and bytes a second.
    assert product.memory is None or product.memory >= 8 * 10**9
    assert product.bandwidth is None or 1e11 < product.bandwidth < 1e14
    assert all(1e12 < peak < 1e17 for _, peak in product.peaks)


@pytest.mark.parametrize("name", PRODUCTS)
def test_narrower_operands_are_no_slower(name: str) -> None:
    wider = {"fp8": "fp16", "fp6": "fp8", "fp4": "fp8", "int8": "fp16", "int4": "int8", "fp16": "fp32", "fp32": "fp64"}
    product = PRODUCTS[name]
    for dtype, peak in product.peaks:
        assert peak >= (product.peak(wider.get(dtype, "")) or 0), dtype


def test_families_are_data() -> None:
    assert [row.name for row in archs_of("rdna3")] == ["gfx1100", "gfx1101", "gfx1102", "gfx1103"]
    assert "gfx1151" in FAMILIES["rdna3.5"]
    assert {"gfx1250", "gfx942", "sm_90"} <= set(FAMILIES["datacenter"])
    assert not {"gfx1250", "gfx1251"} & set(FAMILIES["rdna"])
    assert [row.name for row in archs_of("mi300x")] == ["gfx942"]
    assert not archs_of("gfx000")


def test_what_is_known_of_some_products() -> None:
    """Numbers that the vendors print, so that a slip of a column is seen."""
    mi300x, h200 = PRODUCTS["mi300x"], PRODUCTS["h200"]
    assert (mi300x.compute_units, mi300x.chiplets, mi300x.memory) == (304, 8, 192 << 30)
    assert (h200.compute_units, h200.memory, h200.bandwidth) == (132, 141 * 10**9, 4.8e12)
    assert ARCHS["gfx942"].fp8 == "fnuz"
    assert {name for name, row in ARCHS.items() if row.fp8 == "ocp"} >= {
        "gfx950",
        "gfx1200",
        "gfx1201",
        "sm_89",
        "sm_90",
    }
    assert ARCHS["sm_90"].shared_memory_per_block == 227 * 1024
    assert ARCHS["gfx950"].shared_memory_per_block == 160 * 1024
