"""`make_target("gpu", …)`: names, numbers given in place of the row's, and what a target without a device refuses."""

from __future__ import annotations

import inspect

import pytest

import argosy
from argosy.compiler import resolve_targets
from argosy.errors import DeviceError, UsageError
from argosy.targets.gpu.arch import ARCHS, FAMILIES, PRODUCTS, REFUSED
from argosy.targets.gpu.context import CrossCompileContext
from argosy.targets.gpu.overrides import Overrides
from argosy.targets.gpu.target import GpuTarget


def gpu(**fields: object) -> GpuTarget:
    target = argosy.make_target("gpu", **fields)
    assert isinstance(target, GpuTarget)
    return target


@pytest.mark.parametrize("name", [*ARCHS, *PRODUCTS])
def test_every_arch_and_product_makes_a_target(name: str) -> None:
    target = gpu(gpu_arch=name)
    assert target.is_cross_compile
    assert resolve_targets([name]) == (target,)
    assert target.arch in ARCHS
    numbers = {number.name: number for number in target.numbers()}
    assert {f"gpu_{key}" for key in numbers} == {
        name for name in inspect.signature(GpuTarget).parameters if name != "gpu_arch"
    }
    row = target.row
    assert numbers["num_cu"].value == row.product.compute_units
    assert numbers["wavefront_size"].value == row.wave_size
    assert numbers["max_threads_per_cu"].value == row.max_threads_per_unit
    assert all(number.value > 0 and number.source for number in numbers.values())


@pytest.mark.parametrize("name", [*ARCHS, *PRODUCTS])
def test_a_target_is_made_again_of_what_its_variants_record(name: str) -> None:
    for given in ({}, {"gpu_num_cu": 16, "gpu_max_threads_per_block": 128}):
        target = gpu(gpu_arch=name, **given)
        assert GpuTarget.of(target.arch, target.products).row == target.row


def test_targets_of_one_arch_are_told_apart() -> None:
    """Those of one bandwidth and number of units too: their ranks of kernels differ by the others."""
    names = ("mi300a", "mi300x", "mi325x")
    targets = [*(gpu(gpu_arch=name) for name in names), gpu(gpu_arch="mi300x", gpu_num_cu=80)]
    assert len({target.products for target in targets}) == len(targets)
    assert [target._words() for target in targets] == [
        "gfx942 (mi300a)", "gfx942", "gfx942 (mi325x)", "gfx942 (num_cu=80)",
    ]  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_a_target_for_each_of_its_archs(name: str) -> None:
    assert [target.arch for target in resolve_targets([name])] == list(FAMILIES[name])
    if len(FAMILIES[name]) > 1:
        with pytest.raises(UsageError, match="several archs"):
            gpu(gpu_arch=name)


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_arch_says_why_and_what_to_do(name: str) -> None:
    for make in (lambda: resolve_targets([name]), lambda: gpu(gpu_arch=name)):
        with pytest.raises(UsageError) as caught:
            make()
        assert REFUSED[name].reason in caught.value.what
        assert caught.value.hint == REFUSED[name].instead


def test_numbers_that_are_given_are_used_and_said() -> None:
    target = gpu(
        gpu_arch="gfx942",
        gpu_num_cu=80,
        gpu_num_chiplets=4,
        gpu_max_threads_per_cu=1024,
        gpu_max_threads_per_block=256,
        gpu_wavefront_size=64,
        gpu_max_shared_memory_per_block=32768,
    )
    row = target.row
    assert (row.product.compute_units, row.units, row.product.chiplets) == (80, 80, 4)
    assert (row.max_threads_per_unit, row.max_threads_per_block, row.shared_memory_per_block) == (1024, 256, 32768)
    assert {number.source for number in target.numbers()} == {"given"}
    assert row.product.bandwidth == PRODUCTS["mi300x"].bandwidth
    assert target != gpu(gpu_arch="gfx942")


def test_what_is_not_given_comes_from_the_row_or_is_said_to_be_assumed() -> None:
    numbers = {number.name: (number.value, number.source) for number in gpu(gpu_arch="mi300a").numbers()}
    assert numbers["num_cu"] == (228, "mi300a")
    assert numbers["num_chiplets"] == (6, "mi300a")
    assert numbers["max_threads_per_block"] == (1024, "gfx942")
    unknown = {number.name: (number.value, number.source) for number in gpu(gpu_arch="gfx1251").numbers()}
    assert unknown["num_cu"][0] == 120
    assert "assumed" in unknown["num_cu"][1]
    assert gpu(gpu_arch="gfx942", gpu_wavefront_size=0) == gpu(gpu_arch="gfx942") == gpu(gpu_arch="mi300x")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"gpu_arch": "gfx942", "gpu_wavefront_size": 32}, "64"),
        ({"gpu_arch": "rx7900xtx", "gpu_wavefront_size": 64}, "32"),
        ({"gpu_arch": "sm_90", "gpu_wavefront_size": 64}, "32"),
        ({"gpu_arch": "gfx942", "gpu_max_threads_per_block": 2048}, "1024"),
        ({"gpu_arch": "gfx942", "gpu_max_threads_per_block": 32}, "wave of 64"),
        ({"gpu_arch": "gfx942", "gpu_max_threads_per_cu": 4096}, "2048"),
        ({"gpu_arch": "gfx942", "gpu_max_shared_memory_per_block": 1 << 20}, "65536"),
        ({"gpu_arch": "gfx942", "gpu_num_chiplets": 305}, "304"),
        ({"gpu_arch": "gfx942", "gpu_num_cu": 0}, "whole number"),
        ({"gpu_arch": "gfx942", "gpu_num_cu": True}, "whole number"),
        ({"gpu_arch": "gfx942", "gpu_num_cu": 304.0}, "whole number"),
        ({"gpu_num_cu": 304}, "no GPU arch"),
        ({"gpu_arch": "gfx943"}, "gfx942"),
        ({"gpu_arch": "gfx942", "gpu_cores": 3}, "'gpu_cores'\n  there are: gpu_arch"),
        ({"gpu_arch": "gfx942", "gpu_num_cus": 3}, "did you mean 'gpu_num_cu'?"),
        ({"gpu_arch": "gfx942", "gpu_num_cu": 1 << 31}, f"from 1 to {(1 << 31) - 1}"),
        ({"gpu_arch": 942}, "gpu_arch is 942, expected a name"),
    ],
)
def test_what_is_not_honoured_is_refused_with_what_would_be_used(fields: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        gpu(**fields)
    assert said in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_limit_may_be_lowered_to_a_wave_and_no_further() -> None:
    assert gpu(gpu_arch="gfx942", gpu_max_threads_per_block=64).row.max_threads_per_block == 64
    lowered = gpu(gpu_arch="gfx942", gpu_max_threads_per_cu=512)
    assert lowered.row.max_threads_per_block == 512
    (source,) = (number.source for number in lowered.numbers() if number.name == "max_threads_per_block")
    assert source == "max_threads_per_cu"


def test_without_a_device_everything_that_needs_one_is_one_clear_error() -> None:
    context = gpu(gpu_arch="gfx942").context()
    assert isinstance(context, CrossCompileContext)
    for name in ("copy_to", "copy_from", "allocate", "finish", "get_queue", "wait_for"):
        with pytest.raises(DeviceError, match=f"{name}.*gfx942"):
            getattr(context, name)(object())
        with pytest.raises(DeviceError, match=f"{name}.*gfx942"):
            getattr(context, name)(shape=(1, 2))


def test_no_driver_is_asked() -> None:
    with pytest.raises(DeviceError, match="gpu_arch"):
        gpu()


def test_every_key_of_the_numbers_is_a_field_of_the_target() -> None:
    target = gpu(gpu_arch="gfx942")
    assert target._overrides() == Overrides()
    for position, key in enumerate(Overrides.__dataclass_fields__):
        given = gpu(**{"gpu_arch": "gfx942", f"gpu_{key}": 64})
        assert getattr(given._overrides(), key) == 64, position
