"""Programs in a short precision on the CPU: products of short floats, close to the program as it is."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import argosy
from argosy.ir import Builder, Env, Module, Program
from argosy.ir.dtype import dtype
from argosy.ir.interpreter import Interpreter
from argosy.ops.convolution import Conv
from argosy.ops.matmul import Dot
from argosy.ops.reduce import Softmax
from argosy.passes.lower_precision import LowerPrecision
from argosy.passes.manager import PassManager, Phase
from argosy.targets.cpu.target import CpuTarget
from tests.targets.cpu.loops import needs_compiler

pytestmark = needs_compiler

RANDOM = np.random.default_rng(9)
SHARES = {"fp16": 1e-2, "bf16": 5e-2}
"""DESIGN's share of the largest magnitude."""


def numbers(*shape: int) -> Any:
    """Random numbers whose products keep their size."""
    return (RANDOM.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def net(batch: int | str) -> Module:
    """Convolutions of every kind, products of odd sizes, a softmax."""
    build = Builder()
    x = build.tensor_parameter("x", "float32", (batch, 3, 20, 20))
    for shape, group, pads in (((33, 3, 3, 3), 1, 1), ((33, 1, 3, 3), 33, 1), ((40, 33, 1, 1), 1, 0)):
        weight, bias = numbers(*shape) * 2, numbers(shape[0])
        op = Conv((1, 1), (pads,) * 4, (1, 1), group)
        x = build.pointwise(lambda v: v.max(0.0), build.add(op, x, build.constant(weight), build.constant(bias)))
    rows = build.add(Dot(), x, build.constant(numbers(20, 37)))
    return build.module({"y": build.add(Softmax(3), rows), "z": rows})


def target(pairs: bool) -> CpuTarget:
    """This machine's level, as one that multiplies pairs of bfloat16 faster where it can do so at all."""
    found = CpuTarget()
    if pairs:
        if not (found.row.has("avx512bf16") or found.row.has("bf16")):
            pytest.skip("this CPU does not multiply pairs of bfloat16")
        object.__setattr__(found, "row", dataclasses.replace(found.row, idle=frozenset()))
    return found


@pytest.mark.parametrize(("precision", "pairs"), [("fp16", False), ("bf16", False), ("bf16", True)])
@pytest.mark.parametrize("batch", [2, "batch"])
def test_a_net(precision: str, pairs: bool, batch: int | str) -> None:
    module = net(batch)
    artifact = argosy.compile(Program(module), targets=(target(pairs),), precision=precision, strict=True)
    x = RANDOM.standard_normal((2, 3, 20, 20)).astype(np.float32)
    found = argosy.Session(artifact, device="cpu").run({"x": x})
    for name, value in zip(module.result_names, Interpreter(module).run([x], Env()), strict=True):
        expected = np.asarray(value)
        assert found[name].dtype == expected.dtype
        assert np.abs(found[name] - expected).max() <= SHARES[precision] * np.abs(expected).max()
        assert (found[name] != expected).any()  # it is not the long precision


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_short_images(kind: str) -> None:
    """Convolutions of short floats, as a model has them, have kernels."""
    build = Builder()
    short = dtype(kind)
    x = build.tensor_parameter("x", short, (1, 20, 9, 9))
    weight = numbers(24, 20, 3, 3).astype(short.numpy)
    module = build.module({"y": build.add(Conv((1, 1), (1,) * 4, (1, 1)), x, build.constant(weight))})
    image = RANDOM.standard_normal((1, 20, 9, 9)).astype(short.numpy)
    found = argosy.Session(argosy.compile(Program(module), targets=("cpu",), strict=True), device="cpu").run(
        {"x": image}
    )
    (value,) = Interpreter(module).run([image], Env())
    expected = np.asarray(value).astype(np.float32)
    assert np.abs(found["y"].astype(np.float32) - expected).max() <= 2e-2 * np.abs(expected).max()


def test_weights_only() -> None:
    """Where a level gains nothing from short products, no more than weights is short."""
    passes = PassManager((Phase("short", (LowerPrecision("float16", weights_only=True),)),))
    products = [i for i in passes.run(net(1)).instructions if i.op.name in ("dot", "conv")]
    assert len(products) == 4
    for product in products:
        kinds = [operand.dtype.name for operand in product.operands[:2] if operand is not None]
        assert kinds == ["float32", "float16"]
