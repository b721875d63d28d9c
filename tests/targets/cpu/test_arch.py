"""The rows of CPU levels are consistent, and `native` is what the runtime would accept."""

from __future__ import annotations

import pytest

from argosy import host_cpu
from argosy.artifact.manifest import VariantRecord
from argosy.errors import DeviceError
from argosy.runtime.selection import judge
from argosy.targets.cpu.arch import ARCHS, CpuArch, find_cpu, native
from argosy.targets.cpu.host import host_runtime
from argosy.toolchains.zig import compile_objects

every_arch = pytest.mark.parametrize("arch", ARCHS.values(), ids=lambda arch: arch.name)

ZEN4 = """
processor\t: 0
flags\t\t: fpu pni ssse3 fma cx16 sse4_1 sse4_2 movbe popcnt xsave avx f16c lahf_lm abm sse4a bmi1 avx2 bmi2 avx512f
processor\t: 1
flags\t\t: fpu pni ssse3 fma cx16 sse4_1 sse4_2 movbe popcnt xsave avx f16c lahf_lm abm sse4a bmi1 avx2 bmi2 avx512_bf16
"""
GRAVITON = "processor\t: 0\nFeatures\t: fp asimd evtstrm aes crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc asimddp\n"


@every_arch
def test_a_row_has_all_that_its_parent_has(arch: CpuArch) -> None:
    assert ARCHS[arch.name] is find_cpu(arch.name) is arch
    assert arch.portable == (not arch.parent)
    if arch.parent:
        parent = ARCHS[arch.parent]
        assert parent.features < arch.features
        assert parent.rank < arch.rank
        assert (parent.family, parent.system, parent.isa) == (arch.family, arch.system, arch.isa)


@every_arch
def test_a_row_says_how_wide_its_vectors_are(arch: CpuArch) -> None:
    width = 512 if arch.has("avx512f") else 256 if arch.has("avx2") else 128
    assert arch.vector_bits == width
    assert arch.lanes(32) == width // 32
    assert arch.vector_registers == (16 if arch.isa == "x86_64" and width < 512 else 32)
    assert arch.requirements().features == tuple(sorted(arch.features))


@every_arch
def test_a_row_has_no_smaller_cache_than_its_parent(arch: CpuArch) -> None:
    assert arch.second_cache % 65536 == 0
    if arch.parent:
        assert arch.second_cache >= ARCHS[arch.parent].second_cache


@every_arch
def test_the_compiler_knows_the_row(arch: CpuArch) -> None:
    (made,) = compile_objects([host_runtime()], arch.code)
    assert len(made) > 1000


def test_there_is_one_lowest_row_for_each_family_and_system() -> None:
    lowest = [(arch.family, arch.system) for arch in ARCHS.values() if arch.portable]
    linux = [entry for entry in lowest if entry[1] == "linux"]
    assert len(set(linux)) == len(linux) == 2


def test_features_are_those_of_every_processor() -> None:
    found = host_cpu.features_in(ZEN4)
    level = find_cpu("x86-64-v3")
    assert level is not None
    assert level.features <= found
    assert "sse4a" in found
    assert not {"avx512f", "avx512bf16"} & found
    assert host_cpu.features_in("") == frozenset()


def test_features_of_arm_cores_have_our_names() -> None:
    level = find_cpu("neoverse-n1")
    assert level is not None
    assert level.features <= host_cpu.features_in(GRAVITON)


def test_native_is_what_the_runtime_accepts() -> None:
    arch = native()
    row = VariantRecord("k", arch.family, arch.name, arch.name, system=arch.system, requirements=arch.requirements())
    assert judge([row]).fitting[0].variant is row


def test_a_machine_of_another_kind_has_no_native_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_cpu, "isa", lambda: "riscv64")
    with pytest.raises(DeviceError, match="riscv64"):
        native()


def test_cores_are_counted() -> None:
    assert 1 <= host_cpu.physical_cores() <= host_cpu.usable_cores()
