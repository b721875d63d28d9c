"""Long products and convolutions by the copy engine and warp groups: when, and what their code is."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import argosy
from argosy.artifact.plan import TensorMapArgument
from argosy.options import CompileOptions
from argosy.passes.manager import PassManager
from argosy.targets.gpu.arch import GpuArch, find_gpu
from argosy.targets.gpu.lower import LoweredModule, lower_module
from argosy.targets.gpu.pipeline import pipeline
from argosy.targets.gpu.solutions.pipelined import _time, pipelined_tiles
from argosy.targets.gpu.solutions.tiles import ProductSize
from argosy.targets.gpu.variant import compiled_variant
from tests.targets.gpu.code_checks import all_launches, check_code

_OPTIONS = CompileOptions(precision="fp16", strict=True)
_HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
_PRODUCT = """g (float[8,512,{inner}] x, float[8,512,384] s) => (float[8,512,384] z) {{
  xx = Relu(x)
  y = MatMul(xx, w)
  b = Add(y, bias)
  a = Add(b, s)
  r = Relu(a)
  z = Sub(r, s)
}}"""
_WINDOW = """g (float[32,128,30,28] x) => (float[32,256,15,14] z) {
  xx = Relu(x)
  y = Conv<pads=[1,1,1,1], strides=[2,2]>(xx, w, bias)
  r = Relu(y)
  z = Conv(r, v)
}"""


def _arch(name: str = "h200") -> GpuArch:
    found = find_gpu(name)
    assert found is not None
    return found


def _model(text: str, **weights: tuple[int, ...]) -> onnx.ModelProto:
    model = parser.parse_model(_HEAD + text)
    draw = np.random.default_rng(0).standard_normal
    held = {name: draw(shape).astype(np.float32) / 32 for name, shape in weights.items()}
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in held.items())
    return model


def _product(inner: int = 1536) -> onnx.ModelProto:
    return _model(_PRODUCT.format(inner=inner), w=(inner, 384), bias=(384,))


def _window() -> onnx.ModelProto:
    return _model(_WINDOW, w=(256, 128, 3, 3), bias=(256,), v=(256, 256, 1, 1))


def _module(model: onnx.ModelProto) -> Any:
    return PassManager(tuple(pipeline(_OPTIONS))).run(argosy.load_onnx(model).main)


def _lowered(model: onnx.ModelProto, arch: str = "h200") -> LoweredModule:
    return lower_module(_module(model), _arch(arch), _OPTIONS, {}, {})


def _labels(lowered: LoweredModule) -> list[str]:
    return [kernel.label for kernel in lowered.kernels.values()]


@pytest.mark.parametrize("model", [_product(), _window()], ids=["product", "convolution"])
def test_long_ones_are_pipelined_on_hopper_alone(model: onnx.ModelProto) -> None:
    assert any("pipelined" in label for label in _labels(_lowered(model)))
    for arch in ("a100", "b200", "mi300x"):
        assert not any("pipelined" in label for label in _labels(_lowered(model, arch)))


def test_few_results_take_plain_tiles() -> None:
    model = _model(_PRODUCT.replace("8,512", "1,128").format(inner=1536), w=(1536, 384), bias=(384,))
    assert not any("pipelined" in label for label in _labels(_lowered(model)))


@pytest.mark.parametrize("model", [_product(), _window()], ids=["product", "convolution"])
def test_their_code_takes_what_its_launches_give_and_copies_by_maps(model: onnx.ModelProto) -> None:
    made = compiled_variant(_module(model), _arch(), _OPTIONS)
    check_code(made.plan, lambda path: made.entries[path], _arch())
    step = next(step for step in all_launches(made.plan) if "pipelined" in step.entry)
    maps = [argument for argument in step.arguments if isinstance(argument, TensorMapArgument)]
    assert {each.swizzle for each in maps} == {128}
    assert {each.offset % 64 for each in maps} == {48}  # parameters lie from 528 on, maps at multiples of 64
    assert {each.buffer for each in maps} <= {*step.reads, *step.writes}
    assert bool([each for each in maps if each.steps]) == ("conv" in step.entry)
    if "conv" in step.entry:
        (image,) = (each for each in maps if each.steps)
        assert (image.dims, image.steps) == ((128, 28, 30, 32), (1, 2, 2, 1))
        # The last windows begin at 26 - 1 of 28 columns and 28 - 1 of 30 rows.
        assert (image.lower, image.upper) == ((-1, -1), (-2, -2))


@pytest.mark.parametrize(
    ("size", "best"),
    [
        (ProductSize(4096, 768, 768, 1, 2, weight=2, others=1), 10.08),
        (ProductSize(4096, 768, 3072, 1, 2, weight=2, others=1), 28.53),
        (ProductSize(6272, 1024, 256, 1, 2), 8.16),
        (ProductSize(1568, 512, 4608, 1, 2, 9, weight=2, others=1), 14.28),
        (ProductSize(100352, 256, 64, 1, 2), 19.84),
    ],
)
def test_the_model_is_near_what_an_h200_took(size: ProductSize, best: float) -> None:
    first = pipelined_tiles(size, _arch())[0]
    assert first.shared(2) <= _arch().shared_memory_per_block
    assert 0.8 < _time(first, size, _arch()) / best < 1.35


def test_tiles_fill_the_columns() -> None:
    assert {tile.columns for tile in pipelined_tiles(ProductSize(64, 64, 64, 1, 2), _arch())} == {64}
    assert pipelined_tiles(ProductSize(64, 96, 64, 1, 2), _arch()) == []
