"""Products with weights that stay in codes: numbers, sizes, levels, and that no float copy of the weights is held."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import ModelProto, helper, numpy_helper

import argosy
from argosy.ir import Builder, Program
from argosy.ir.dtype import FLOAT32, dtype
from argosy.ops.matmul import Dot
from argosy.ops.quantize import Dequantize
from argosy.ops.view import Transpose
from tests.frontends.onnx.test_contrib_matmul import packed
from tests.targets.cpu.loops import needs_compiler

pytestmark = needs_compiler

HEIGHTS = (1, 2, 3, 4, 5, 9, 37)
"""Rows of a product whose rows only the run knows: few, more, and more than a tile of any level."""


def agrees(found: Any, a: Any, weights: Any, note: str) -> None:
    """Within the rounding of sums in float32 of the exact product."""
    exact = a.astype(np.float64) @ weights
    bound = np.abs(a).astype(np.float64) @ np.abs(weights)
    assert found.shape == exact.shape, note
    assert np.all(np.abs(found - exact) <= 1e-6 * bound + 1e-7), note


@dataclass(frozen=True, slots=True)
class Quantized:
    """A product with dequantised weights; scales for all (`tensor`), for columns, or for blocks of the depth."""

    kind: str
    depth: int
    columns: int
    block: int | str = "columns"
    zeros: str = "none"
    turned: bool = False
    rows: int | str = "m"
    scale: str = "float32"

    def build(self) -> tuple[Program, Any]:
        """The program, and its weights `[depth, columns]` in float64."""
        random = np.random.default_rng(5)
        kind = dtype(self.kind)
        low = -(1 << kind.bits - 1) if kind.kind == "int" else 0
        high = low + (1 << kind.bits)
        codes = random.integers(low, high, (self.depth, self.columns))
        blocks = -(-self.depth // self.block) if isinstance(self.block, int) else 1
        shape = () if self.block == "tensor" else (blocks, self.columns)
        scale = (random.random(shape) * 0.1 + 0.01).astype(dtype(self.scale).numpy)
        zeros = random.integers(low, high, shape if self.zeros == "each" else ())
        block = self.block if isinstance(self.block, int) else self.depth
        spread = [
            np.repeat(np.broadcast_to(x, (blocks, self.columns)), block, 0)
            for x in (scale.astype(np.float64), zeros if self.zeros != "none" else np.zeros(()))
        ]
        weights = (codes - spread[1][: self.depth]) * spread[0][: self.depth]

        def placed(value: Any, element: str) -> Any:
            return build.constant(np.ascontiguousarray(value.T if self.turned else value).astype(dtype(element).numpy))

        build = Builder()
        a = build.tensor_parameter("a", "float32", [self.rows, self.depth])
        if self.block == "columns":
            scale, zeros = scale[0], zeros[0] if zeros.ndim else zeros
        operands = [placed(codes, self.kind), placed(scale, self.scale)]
        operands += [placed(zeros, self.kind)] if self.zeros != "none" else []
        along, across = (1, 0) if self.turned else (0, 1)
        size = self.block if isinstance(self.block, int) else 0
        right = build.add(Dequantize(FLOAT32, along if size else across, size), *operands)
        if self.turned:
            right = build.add(Transpose((1, 0)), right)
        return Program(build.module({"y": build.add(Dot(None), a, right)})), weights

    def check(self, level: str = "cpu", **options: Any) -> argosy.Session:
        """It agrees with numpy for every number of rows."""
        program, weights = self.build()
        artifact = argosy.compile(program, targets=(level,), strict=True, **options)
        assert any("dot_quantized" in name for name in kernel_names(artifact)), self
        session = argosy.Session(artifact, device="cpu")
        for rows in HEIGHTS if isinstance(self.rows, str) else (self.rows,):
            a = np.random.default_rng(rows).standard_normal((rows, self.depth)).astype(np.float32)
            agrees(session.run({"a": a})["y"], a, weights, f"{self} with {rows} rows")
        return session


def kernel_names(artifact: argosy.Artifact) -> set[str]:
    """The entries that a variant calls."""
    plan = artifact.plan(artifact.variants[0].key)
    return {step.entry for block in plan.body for step in getattr(block, "steps", ()) if hasattr(step, "entry")}


def held_bytes(artifact: argosy.Artifact) -> int:
    """Bytes of the buffers that are prepared at load and stay."""
    plan = artifact.plan(artifact.variants[0].key)
    held = [plan.buffers[number].type for record in plan.prepare for number in record.results]
    assert held
    sizes = [re.fullmatch(r"uint8\[([\d, ]+)\]", kind) for kind in held]
    assert all(sizes), held  # bytes are all there is
    return sum(math.prod(map(int, found[1].split(","))) for found in sizes if found)


CASES = [
    Quantized("int8", 300, 70, "tensor"),
    Quantized("int8", 300, 70, "columns", turned=True),
    Quantized("uint8", 1040, 33, "columns", zeros="each"),
    Quantized("uint8", 160, 150, 16, zeros="each", turned=True),
    Quantized("int8", 1100, 40, 550),
    Quantized("int4", 257, 95, "columns", zeros="one"),
    Quantized("int4", 1030, 40, 32, turned=True),
    Quantized("uint4", 300, 64, 24, zeros="each"),
    Quantized("uint4", 4100, 20, 2050, zeros="one", scale="float16"),
    Quantized("int4", 290, 64, 7),
    Quantized("int2", 530, 35, 64, zeros="each", scale="bfloat16", turned=True),
    Quantized("uint2", 1025, 48, "columns", zeros="one"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_dequantised_weights(case: Quantized) -> None:
    case.check()


@pytest.mark.parametrize("rows", [1, 4, 6, 8, 40])
@pytest.mark.parametrize("depth", [1024, 999])
def test_rows_that_are_known(rows: int, depth: int) -> None:
    Quantized("int4", depth, 33, 32, zeros="each", rows=rows).check()


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("case", [CASES[2], CASES[6], CASES[7], CASES[10]], ids=str)
def test_levels(level: str, case: Quantized) -> None:
    """Registers of every width that this CPU has give the same results."""
    try:
        case.check(level)
    except argosy.errors.DeviceError as refusal:
        pytest.skip(str(refusal))


def test_short_floats_leave_the_codes_alone() -> None:
    CASES[6].check(precision="bf16")


def test_several_threads_share_the_panels() -> None:
    program, weights = Quantized("int4", 512, 1000, 32).build()
    session = argosy.Session(argosy.compile(program, targets=("cpu",), strict=True), device="cpu", threads=2)
    for rows in (1, 3, 70):
        a = np.random.default_rng(rows).standard_normal((rows, 512)).astype(np.float32)
        agrees(session.run({"a": a})["y"], a, weights, str(rows))


def matmul_n_bits(bits: int, depth: int, columns: int, block: int, zeros: bool) -> tuple[ModelProto, Any]:
    """A model with a bias, whose rows only the run knows, and its weights `[depth, columns]`."""
    random = np.random.default_rng(bits)
    blocks = -(-depth // block)
    codes = random.integers(0, 1 << bits, (columns, blocks, block))
    zero = random.integers(0, 1 << bits, (columns, blocks)) if zeros else np.full((columns, blocks), 1 << bits - 1)
    scale = (random.random((columns, blocks)) * 0.1 + 0.01).astype(np.float32)
    tensors = {"b": packed(codes, bits), "s": scale, "bias": np.linspace(-1, 1, columns).astype(np.float32)}
    if zeros:
        tensors["z"] = packed(np.pad(zero, ((0, 0), (0, -blocks % (8 // bits)))), bits)
    attributes: Any = {"N": columns, "K": depth, "bits": bits, "block_size": block}
    names = ["a", "b", "s", "z" if zeros else "", "", "bias"]
    node = helper.make_node("MatMulNBits", names, ["y"], domain="com.microsoft", **attributes)
    values = [helper.make_tensor_value_info(name, 1, ["m", size]) for name, size in (("a", depth), ("y", columns))]
    stored = [numpy_helper.from_array(value, name) for name, value in tensors.items()]
    graph = helper.make_graph([node], "g", values[:1], values[1:], stored)
    sets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    weights = ((codes - zero[..., None]) * scale.astype(np.float64)[..., None]).reshape(columns, -1)[:, :depth]
    return helper.make_model(graph, opset_imports=sets, ir_version=10), weights.T


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize(("depth", "columns", "block"), [(1100, 67, 16), (320, 96, 32), (520, 35, 256)])
@pytest.mark.parametrize("zeros", [False, True], ids=["no zeros", "zeros"])
def test_matmul_n_bits(bits: int, depth: int, columns: int, block: int, zeros: bool) -> None:
    """As numpy has it; of 4 and 8 bits as ONNX Runtime has it too. The codes and scales are all that is held."""
    model, weights = matmul_n_bits(bits, depth, columns, block, zeros)
    artifact = argosy.compile(model, targets=("cpu",), strict=True)
    session = argosy.Session(artifact, device="cpu")
    peer = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]) if bits > 2 else None
    for rows in HEIGHTS:
        a = np.random.default_rng(rows).standard_normal((rows, depth)).astype(np.float32)
        found = session.run({"a": a})["y"]
        agrees(found - np.linspace(-1, 1, columns), a, weights, str(rows))
        if peer is not None:
            np.testing.assert_allclose(found, peer.run(None, {"a": a})[0], 1e-3, 1e-3)
    blocks = -(-depth // block)
    assert held_bytes(artifact) <= (columns + 47) * blocks * (block * bits // 8 + 5)  # panels are whole, and the bias
    assert held_bytes(artifact) < 3 * depth * columns


def test_scales_along_the_sum_are_floats_at_load() -> None:
    """A scale for each number of the depth is no panel of codes; the product is right all the same."""
    random = np.random.default_rng(1)
    codes, scale = random.integers(-128, 128, (300, 70)).astype(np.int8), random.random(300).astype(np.float32)
    build = Builder()
    a = build.tensor_parameter("a", "float32", [5, 300])
    right = build.add(Dequantize(FLOAT32, 0), build.constant(codes), build.constant(scale))
    artifact = argosy.compile(
        Program(build.module({"y": build.add(Dot(None), a, right)})), targets=("cpu",), strict=True
    )
    assert not any("dot_quantized" in name for name in kernel_names(artifact))
    value = random.standard_normal((5, 300)).astype(np.float32)
    found = argosy.Session(artifact, device="cpu").run({"a": value})["y"]
    agrees(found, value, codes * scale.astype(np.float64)[:, None], "along the sum")
