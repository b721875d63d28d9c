"""More programs than axis 1 of a grid takes: they lie along axis 0, and each does what it did before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

import argosy
from argosy.artifact.plan import LaunchStep, steps_in
from argosy.options import CompileOptions
from argosy.passes.manager import PassManager
from argosy.targets.gpu.arch import ARCHS
from argosy.targets.gpu.codegen import kernel
from argosy.targets.gpu.lower import lower_module
from argosy.targets.gpu.pipeline import pipeline

interpreted_run = pytest.importorskip("tests.targets.gpu.interpreted").interpreted_run

_HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
PRODUCT = "g (float[N,24,40] x, float[N,40,72] y) => (float[N,24,72] z) {z = MatMul(x, y)}"
CASES = {
    "product": PRODUCT.replace("N", "5"),
    "attention": (
        "g (float[2,3,40,16] q, float[2,3,40,16] k, float[2,3,40,16] v) => (float[2,3,40,16] z)"
        "{t = Transpose<perm=[0,1,3,2]>(k)\n s = MatMul(q, t)\n p = Softmax<axis=-1>(s)\n z = MatMul(p, v)}"
    ),
    "convolution": (
        "g (float[1,64,5,5] x, float[80,16,3,3] w) => (float[1,80,5,5] z)"
        "{z = Conv<group=4, pads=[1,1,1,1], kernel_shape=[3,3]>(x, w)}"
    ),
    "best": (
        "g (float[2,5000] x) => (float[2,7] z, int64[2,7] i)"
        "{k = Constant<value_ints=[7]>()\n z, i = TopK<axis=-1>(x, k)}"
    ),
}


def model(text: str) -> onnx.ModelProto:
    return parser.parse_model(_HEAD + text)


def feeds(given: onnx.ModelProto, **sizes: int) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    shapes = {
        each.name: [dim.dim_value or sizes[dim.dim_param] for dim in each.type.tensor_type.shape.dim]
        for each in given.graph.input
    }
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def launches(given: onnx.ModelProto) -> Iterator[LaunchStep]:
    options = CompileOptions(strict=True)
    module = PassManager(tuple(pipeline(options))).run(argosy.load_onnx(given).main)
    plan = lower_module(module, ARCHS["sm_90"], options, {}, {}).plan
    return (step for step in steps_in(plan.body) if isinstance(step, LaunchStep))


def agrees(given: onnx.ModelProto, **sizes: int) -> None:
    arguments = feeds(given, **sizes)
    found = interpreted_run(argosy.load_onnx(given), options=CompileOptions(strict=True))(arguments)
    expected = ReferenceEvaluator(given).run(None, arguments)
    for name, value in zip(found, expected, strict=True):
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("case", CASES)
def test_programs_along_one_axis_do_what_they_did_along_two(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = model(CASES[case])
    assert any(step.grid[1] != 1 for step in launches(given))
    monkeypatch.setattr(kernel, "_WIDEST", 1)
    assert all(step.grid[1] == 1 for step in launches(given))
    agrees(given)


def test_a_batch_of_any_size_lies_along_axis_0() -> None:
    given = model(PRODUCT)
    (step,) = launches(given)
    assert step.grid[1:] == (1, 1)
    agrees(given, N=3)


def test_only_a_batch_that_is_too_long_for_axis_1_lies_along_axis_0() -> None:
    (short,), (long,) = (launches(model(PRODUCT.replace("N", str(count)))) for count in (65535, 65536))
    assert short.grid[1] == 65535
    assert long.grid[1:] == (1, 1)
    assert long.grid[0] == short.grid[0] * 65536
