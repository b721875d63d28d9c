"""Products whose inner axis is split, and what follows them, as the kernels' text means it: against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import argosy
from argosy.options import CompileOptions
from argosy.targets.gpu.arch import find_gpu
from argosy.targets.gpu.solutions.tiles import ProductSize, tiles
from tests.targets.gpu.interpreted import interpreted_run

_HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'


def _model(text: str, **weights: Any) -> onnx.ModelProto:
    model = parser.parse_model(_HEAD + text)
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in weights.items())
    return model


def _numbers(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32) / 4


def _run(model: onnx.ModelProto, feeds: dict[str, Any], times: int = 3) -> list[Any]:
    run = interpreted_run(argosy.load_onnx(model), "h200", CompileOptions(precision="fp16", strict=True))
    return [np.asarray(next(iter(run(feeds).values())), np.float32) for _ in range(times)]


def _near(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=5e-3, atol=4e-3 * np.abs(expected).max())


def test_a_long_product_of_few_rows_is_split_and_summed_the_same_every_time() -> None:
    size = ProductSize(24, 48, 1024, 1, 2)
    arch = find_gpu("h200")
    assert arch is not None
    assert tiles(size, arch)[0].splits > 1
    x, side, w, b = _numbers(0, 24, 1024), _numbers(1, 24, 48), _numbers(2, 1024, 48), _numbers(3, 48)
    text = "g (float[24,1024] x, float[24,48] s) => (float[24,48] z) {y = MatMul(x, w)\n a = Add(y, b)\n z = Add(a, s)}"
    found = _run(_model(text, w=w, b=b), {"x": x, "s": side})
    _near(found[0], x @ w + b + side)
    assert all(np.array_equal(found[0], each) for each in found[1:])  # counters are 0 again after each run


def test_a_convolution_of_few_places_is_split_over_taps_and_channels() -> None:
    x, side, w, b = _numbers(0, 1, 128, 5, 5), _numbers(1, 1, 40, 5, 5), _numbers(2, 40, 128, 3, 3), _numbers(3, 40)
    text = (
        "g (float[1,128,5,5] x, float[1,40,5,5] s) => (float[1,40,5,5] z)"
        "{y = Conv<pads=[1,1,1,1], kernel_shape=[3,3]>(x, w, b)\n a = Add(y, s)\n z = Relu(a)}"
    )
    padded = np.pad(x[0], ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    expected = np.maximum(np.einsum("chwrs,kcrs->khw", windows, w) + b[:, None, None] + side[0], 0)
    found = _run(_model(text, w=w, b=b), {"x": x, "s": side})
    _near(found[0][0], expected)
    assert all(np.array_equal(found[0], each) for each in found[1:])


def test_an_image_of_three_channels_goes_over_taps_and_channels_as_one() -> None:
    x, w = _numbers(0, 1, 3, 20, 20), _numbers(1, 24, 3, 7, 7)
    text = (
        "g (float[1,3,20,20] x) => (float[1,24,10,10] z)"
        "{z = Conv<pads=[3,3,3,3], kernel_shape=[7,7], strides=[2,2]>(x, w)}"
    )
    padded = np.pad(x[0], ((0, 0), (3, 3), (3, 3)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (7, 7), (1, 2))[:, ::2, ::2]
    _near(_run(_model(text, w=w), {"x": x}, 1)[0][0], np.einsum("chwrs,kcrs->khw", windows, w))


@pytest.mark.parametrize("name", ["h200", "a100", "mi300x", "rx9070xt", "compute_80"])
def test_tiles_split_steps_evenly_and_fit(name: str) -> None:
    arch = find_gpu(name)
    assert arch is not None
    for rows, columns, inner, taps in ((49, 512, 4608, 9), (4096, 3072, 768, 1), (1, 1000, 2048, 1), (7, 5, 3, 1)):
        found = tiles(ProductSize(rows, columns, inner, 1, 2, taps), arch)
        assert found
        for tile in found:
            stretch = inner // taps
            assert taps * -(-stretch // tile.inner) % tile.splits == 0
            shared = tile.stages * tile.inner * (tile.rows + tile.columns) * 2
            assert shared <= arch.shared_memory_per_block
