"""What products and convolutions of codes and of 8-bit floats become: the matrix instructions of their own type."""

from __future__ import annotations

import importlib.util
import re
from typing import Final

import numpy as np
import pytest

from argosy.ir import Builder, Module
from argosy.ir.dtype import FLOAT32, INT32, dtype
from argosy.ops.convolution import Conv
from argosy.ops.matmul import Dot
from argosy.ops.quantize import Dequantize
from argosy.options import CompileOptions
from argosy.passes.manager import PassManager
from argosy.targets.gpu.arch import ARCHS
from argosy.targets.gpu.lower import SPILLS
from argosy.targets.gpu.pipeline import pipeline
from argosy.targets.gpu.variant import compiled_variant, gpu_code
from argosy.toolchains.triton import CompiledKernel, compile_kernels
from tests.targets.gpu.test_toolchain import instructions

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="the package triton (extra gpu) is not installed"
)

OWN: Final = {"int8": re.compile(r"mfma_i32|iu8|\.s8\.s8|kind::i8"), "fp8": re.compile(r"fp8|bf8|f8f6f4|e4m3")}
"""What the names of instructions say of their operands."""
FORMATS: Final = {"ocp": "float8_e4m3fn", "fnuz": "float8_e4m3fnuz", "": "float8_e4m3fn"}


def codes() -> Module:
    """A product of uint8 values and int8 weights, and a convolution of them."""
    build = Builder()
    a, b = build.tensor_parameter("a", "uint8", (512, 256)), build.tensor_parameter("b", "int8", (256, 512))
    x, w = build.tensor_parameter("x", "uint8", (1, 64, 28, 28)), build.tensor_parameter("w", "int8", (64, 64, 3, 3))
    one, zero = build.constant(0.5), build.constant(dtype("uint8").numpy.type(9))
    scale = build.convert(one, FLOAT32)
    left, image = (build.add(Dequantize(FLOAT32), value, scale, zero) for value in (a, x))
    right, window = (build.add(Dequantize(FLOAT32), value, scale) for value in (b, w))
    padded = Conv((1, 1), (1, 1, 1, 1), (1, 1))
    return build.module({"dot": build.add(Dot(), left, right), "conv": build.add(padded, image, window)})


def floats(kind: str) -> Module:
    """A product of 8-bit floats."""
    build = Builder()
    a, b = (build.tensor_parameter(name, kind, (4096, 4096)) for name in "ab")
    return build.module({"y": build.add(Dot(FLOAT32), a, b)})


def packed(rows: int) -> Module:
    """Some rows of fp16 times weights of 4 bits in blocks."""
    build = Builder()
    codes = build.constant(np.arange(256 * 256, dtype=np.uint8).reshape(256, 256).astype(dtype("uint4").numpy))
    scale = build.constant(np.linspace(0.01, 0.02, 256 * 8, dtype=np.float32).reshape(8, 256))
    weights = build.add(Dequantize(FLOAT32, 0, 32), codes, scale)
    return build.module({"y": build.add(Dot(FLOAT32), build.tensor_parameter("x", "float16", (rows, 256)), weights)})


def products(module: Module, arch: str, accuracy: str = "standard", precision: str = "fp32") -> list[set[str]]:
    """The matrix instructions of each kernel of a product."""
    row, options = ARCHS[arch], CompileOptions(strict=True, accuracy=accuracy, precision=precision)
    kernels = compiled_variant(PassManager(tuple(pipeline(options))).run(module), row, options).lowered.kernels
    made = compile_kernels([kernel.source() for kernel in kernels.values()], gpu_code(row))
    found = []
    for name, answer in zip(kernels, made, strict=True):
        assert isinstance(answer, CompiledKernel)
        if "matrix_" in name or "coded_" in name:
            assert answer.spilled <= SPILLS[0], name
            found.append(set(instructions(answer.assembly)))
    return found


def check(arch: str) -> None:
    """Both kinds of products take their own instructions where the row has them, else others or none."""
    row = ARCHS[arch]
    found = products(codes(), arch)
    assert len(found) == 2
    for names in found:
        if row.has("matrix_int8"):
            assert names
            assert all(OWN["int8"].search(name) for name in names), names
        else:
            assert not any(OWN["int8"].search(name) for name in names), names
    exact = products(floats(FORMATS[row.fp8]), arch)
    (names,) = products(floats(FORMATS[row.fp8]), arch, "relaxed") if arch == "sm_90" else exact
    if row.has("matrix_fp8"):
        assert names
        assert all(OWN["fp8"].search(name) for name in names), names
    elif row.has("matrix_fp16"):
        assert names
        assert all(re.search("f16|fp16", name) for name in names), names
    (few,), (many,) = (products(packed(rows), arch, precision="fp16") for rows in (1, 64))
    assert not few
    assert bool(many) == row.has("matrix_fp16")
    if arch == "sm_90":  # which sums 8-bit floats with fewer bits: only where that is asked for
        assert all("f16" in name for name in exact[0])


SAMPLE = ("gfx942", "sm_90")


@pytest.mark.parametrize("name", SAMPLE)
def test_products_of_bytes_take_instructions_of_their_type(name: str) -> None:
    check(name)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in ARCHS if name not in SAMPLE])
def test_products_of_bytes_take_instructions_of_their_type_on_every_arch(name: str) -> None:
    check(name)


def test_integers_are_what_sums_of_codes_are_in() -> None:
    module = PassManager(tuple(pipeline(CompileOptions()))).run(codes())
    inner = [op for fused in module.instructions for op in getattr(fused.op, "module", module).instructions]
    sums = [each.result().dtype for each in inner if each.op.name in ("dot", "conv")]
    assert sums == [INT32, INT32]
