"""Products with weights in codes of 2, 4 and 8 bits, as the kernels' text means them: against the IR's interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import argosy
from argosy.ir import Builder, Env, Value
from argosy.ir.dtype import DTYPES, FLOAT32
from argosy.ir.interpreter import Interpreter
from argosy.ir.program import Program
from argosy.ops.matmul import Dot
from argosy.ops.quantize import Dequantize
from argosy.ops.view import Transpose
from argosy.options import CompileOptions
from argosy.passes.manager import PassManager
from argosy.targets.gpu.arch import find_gpu
from argosy.targets.gpu.codegen.coded import CodedRight
from argosy.targets.gpu.lower import LoweredModule, lower_module
from argosy.targets.gpu.pipeline import pipeline
from argosy.targets.lowering.accesses import DeclinedError
from tests.targets.gpu.interpreted import interpreted_run

RANDOM = np.random.default_rng(3)


def _codes(kind: str, *shape: int) -> Any:
    row = DTYPES[kind]
    low = -(1 << (row.bits - 1)) if row.kind == "int" else 0
    return RANDOM.integers(low, low + (1 << row.bits), shape).astype(np.int16).astype(row.numpy)


def _weights(build: Builder, kind: str, depth: int, columns: int, block: int, *, turned: bool, zeros: bool) -> Value:
    """Weights `[depth, columns]`; a block of 0 is a scale for each column, of -1 one for all."""
    blocks = -(-depth // block) if block > 0 else 0
    codes = _codes(kind, columns, depth) if turned else _codes(kind, depth, columns)
    sizes = () if block < 0 else (columns,) if not block else (columns, blocks) if turned else (blocks, columns)
    axis = (1 if turned else 0) if block > 0 else (0 if turned else 1)
    scale = build.constant(np.asarray(RANDOM.uniform(0.01, 0.1, sizes), np.float32))
    zero = [build.constant(np.asarray(_codes(kind, *sizes, 1)[..., 0]))] if zeros else []
    matrix = build.add(Dequantize(FLOAT32, axis, max(block, 0)), build.constant(codes), scale, *zero)
    return build.add(Transpose((1, 0)), matrix) if turned else matrix


def _lowered(build: Builder, y: Value, options: CompileOptions, arch: str = "h200") -> LoweredModule:
    row = find_gpu(arch)
    assert row is not None
    return lower_module(PassManager(tuple(pipeline(options))).run(build.module({"y": y})), row, options, {}, {})


@pytest.mark.parametrize(
    ("rows", "kind", "depth", "columns", "block", "turned", "zeros"),
    [
        (1, "uint4", 150, 115, 32, True, True),
        (3, "int4", 64, 260, 16, False, False),
        (20, "uint4", 150, 115, 32, True, True),
        (17, "int4", 96, 177, 48, False, True),
        (1, "int8", 70, 243, 0, True, False),
        (18, "uint8", 70, 240, -1, False, True),
        (2, "uint2", 200, 83, 64, True, True),
        (19, "int2", 100, 168, 0, False, False),
    ],
)
def test_weights_in_codes(
    rows: int, kind: str, depth: int, columns: int, block: int, turned: bool, zeros: bool
) -> None:
    x = RANDOM.standard_normal((rows, depth)).astype(np.float32)
    build = Builder()
    weights = _weights(build, kind, depth, columns, block, turned=turned, zeros=zeros)
    bias = build.constant(RANDOM.standard_normal(columns).astype(np.float32))
    total = build.add(Dot(), build.tensor_parameter("x", "float32", x.shape), weights)
    y = build.pointwise("tanh", build.pointwise("add", total, bias))
    module = build.module({"y": y})
    assert any("coded" in name for name in _lowered(build, y, CompileOptions()).kernels)
    found = interpreted_run(Program(module), options=CompileOptions(strict=True))({"x": x})["y"]
    np.testing.assert_allclose(found, Interpreter(module).run([x], Env())[0], 1e-4, 1e-4)


@pytest.mark.parametrize("rows", [1, 17])
def test_in_fp16_both_operands_are(rows: int) -> None:
    x = RANDOM.standard_normal((2, rows, 256)).astype(np.float32)
    build = Builder()
    weights = _weights(build, "uint4", 256, 144, 32, turned=True, zeros=True)
    y = build.add(Dot(), build.tensor_parameter("x", "float32", x.shape), weights)
    module, options = build.module({"y": y}), CompileOptions(precision="fp16", strict=True)
    kernels = _lowered(build, y, options).kernels
    (kernel,) = (kernel for name, kernel in kernels.items() if "coded_product" in name)
    assert ("tl.dot(" in kernel.text) == (rows > 1)
    assert "tl.float32).to(tl.float32)" not in kernel.text
    found = interpreted_run(Program(module), options=options)({"x": x})["y"]
    expected = Interpreter(module).run([x], Env())[0]
    np.testing.assert_allclose(found, expected, atol=5e-3 * np.abs(expected).max())


def test_symbolic_rows_take_tiles() -> None:
    build = Builder()
    weights = _weights(build, "int4", 64, 264, 32, turned=False, zeros=False)
    y = build.add(Dot(), build.tensor_parameter("x", "float32", ("rows", 64)), weights)
    module = build.module({"y": y})
    run = interpreted_run(Program(module), options=CompileOptions(strict=True))
    for rows in (1, 21):
        x = RANDOM.standard_normal((rows, 64)).astype(np.float32)
        expected = Interpreter(module).run([x], Env({"rows": rows}))[0]
        np.testing.assert_allclose(run({"x": x})["y"], expected, 1e-4, 1e-4)


def test_packed_bytes_are_all_that_the_device_keeps_of_the_weights() -> None:
    depth, columns, block = 512, 256, 32
    blocks = depth // block
    packed = RANDOM.integers(0, 256, (columns, blocks, block // 2), np.uint8)
    scales = RANDOM.uniform(0.01, 0.1, (columns * blocks)).astype(np.float32)
    node = helper.make_node(
        "MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=depth, N=columns, bits=4, block_size=block
    )
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node], "g", [tensor("x", onnx.TensorProto.FLOAT, [1, depth])],
        [tensor("y", onnx.TensorProto.FLOAT, [1, columns])],
        [numpy_helper.from_array(packed, "w"), numpy_helper.from_array(scales, "s")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    program = argosy.load_onnx(helper.make_model(graph, opset_imports=opsets, ir_version=10))
    options = CompileOptions(strict=True)
    row = find_gpu("h200")
    assert row is not None
    lowered = lower_module(PassManager(tuple(pipeline(options))).run(program.main), row, options, {}, {})
    kept = [buffer.type for buffer in lowered.plan.buffers if buffer.kind == "prepared"]
    assert kept == ["uint8[8, 256, 32]", "float32[256, 16]"]  # two codes to a byte
    assert packed.nbytes == 8 * 256 * 32
    x = RANDOM.standard_normal((1, depth)).astype(np.float32)
    codes = np.stack([packed & 15, packed >> 4], -1).reshape(columns, depth).astype(np.float32) - 8
    expected = x @ (codes * np.repeat(scales.reshape(columns, blocks), block, 1)).T
    found = interpreted_run(program, options=options)({"x": x})["y"]
    np.testing.assert_allclose(found, expected, 1e-4, 1e-4)


def test_what_does_not_fit_says_why() -> None:
    build = Builder()
    x = build.tensor_parameter("x", "float32", (1, 40))
    codes, scale = build.tensor_parameter("c", "int4", (40, 424)), build.tensor_parameter("s", "float32", (4, 424))
    weights = build.add(Dequantize(FLOAT32, 0, 10), codes, scale)
    y = build.add(Dot(), x, weights)
    kernels = _lowered(build, y, CompileOptions()).kernels
    assert not any("coded" in name for name in kernels)
    with pytest.raises(DeclinedError, match="a block of 10 has no even parts"):
        CodedRight.of(weights)
