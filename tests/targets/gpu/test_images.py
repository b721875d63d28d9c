"""Convolutions of images of three channels, and what reads their results, as the kernels' text means it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper, parser

import argosy
from argosy.ir.module import Module
from argosy.options import CompileOptions
from argosy.passes.manager import PassManager
from argosy.targets.gpu.arch import find_gpu
from argosy.targets.gpu.lower import LoweredModule, lower_module
from argosy.targets.gpu.pipeline import pipeline
from tests.targets.gpu.interpreted import interpreted_run

_OPTIONS = CompileOptions(precision="fp16", strict=True)
_TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3,17,14] x) => (float[2,20] z) {
  y = Conv<pads=[3,3,3,3], strides=[2,2]>(x, w, b)
  r = Relu(y)
  z = ReduceMean<axes=[2,3], keepdims=0>(r)
}"""


def _numbers(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32) / 4


def _model() -> onnx.ModelProto:
    model = parser.parse_model(_TEXT)
    weights = {"w": _numbers(0, 20, 3, 7, 7), "b": _numbers(1, 20)}
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in weights.items())
    return model


def _module() -> Module:
    return PassManager(tuple(pipeline(_OPTIONS))).run(argosy.load_onnx(_model()).main)


def _lowered() -> LoweredModule:
    arch = find_gpu("h200")
    assert arch is not None
    return lower_module(_module(), arch, _OPTIONS, {}, {})


def test_an_image_of_three_channels_is_convolved_and_its_mean_taken() -> None:
    x, w, b = _numbers(2, 2, 3, 17, 14), _numbers(0, 20, 3, 7, 7), _numbers(1, 20)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (3, 3), (3, 3))), (7, 7), (2, 3))
    convolved = np.einsum("nchwrs,kcrs->nkhw", windows[:, :, ::2, ::2], w) + b[:, None, None]
    expected = np.maximum(convolved, 0).mean((2, 3))
    run = interpreted_run(argosy.load_onnx(_model()), "h200", _OPTIONS)
    np.testing.assert_allclose(run({"x": x})["z"], expected, rtol=5e-3, atol=5e-3)


def test_pixels_are_read_whole_and_a_row_of_the_window_is_a_step() -> None:
    (text,) = (kernel.text for kernel in _lowered().kernels.values() if kernel.label.startswith("conv7x7"))
    assert "ka // 4" in text
    assert "k0 = " in text


def test_a_convolution_writes_channels_last_for_a_mean_over_places() -> None:
    (text,) = (kernel.text for kernel in _lowered().kernels.values() if kernel.label.startswith("reduce_mean"))
    assert "i0 * 1260 + i1 + " in text  # 9 x 7 places of 20 channels each
