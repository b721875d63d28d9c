"""The driver that a variant asks for."""

from __future__ import annotations

import pytest

from argosy.targets.gpu.drivers import minimum_driver
from argosy.toolchains.triton import CompiledKernel


def kernel(form: str, version: str) -> CompiledKernel:
    text = f"//\n.version {version}\n.target any\n"
    code = text.encode() if form == "ptx" else b"\x7fELF"
    return CompiledKernel(form, code, "" if form == "ptx" else text, "kernel", 32, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("form", "version", "driver"),
    [
        ("ptx", "7.0", "11.0"),  # the release history of the PTX ISA
        ("ptx", "7.8", "11.8"),
        ("ptx", "8.5", "12.5"),
        ("ptx", "8.6", "12.7"),
        ("ptx", "8.8", "12.9"),
        ("ptx", "9.1", "13.1"),
        ("cubin", "8.7", "12.0"),
        ("cubin", "9.0", "13.0"),
        ("hsaco", "9.0", ""),
    ],
)
def test_driver_for_code(form: str, version: str, driver: str) -> None:
    assert minimum_driver([kernel(form, version)]) == driver


def test_the_newest_counts() -> None:
    assert minimum_driver([kernel("cubin", "8.7"), kernel("cubin", "9.0"), kernel("cubin", "8.8")]) == "13.0"
    assert not minimum_driver([])
