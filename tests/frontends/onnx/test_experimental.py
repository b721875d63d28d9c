"""The ops that were experimental, against their formulas."""

from __future__ import annotations

import numpy as np

from tests.frontends.onnx.one_node import run

X = np.linspace(-3, 3, 12).astype(np.float32).reshape(1, 3, 2, 2)


def test_affine_and_scale() -> None:
    np.testing.assert_allclose(run("Affine", X, opset=9, alpha=0.5, beta=2.0), 0.5 * X + 2, rtol=1e-6)
    np.testing.assert_allclose(run("Scale", X, opset=9, scale=0.25), 0.25 * X)


def test_scaled_tanh_and_parametric_softplus() -> None:
    np.testing.assert_allclose(run("ScaledTanh", X, opset=9, alpha=0.5, beta=2.0), 0.5 * np.tanh(2 * X), rtol=1e-6)
    y = run("ParametricSoftplus", X, opset=9, alpha=0.5, beta=2.0)
    np.testing.assert_allclose(y, 0.5 * np.log1p(np.exp(2 * X)), rtol=1e-5)


def test_image_scaler_has_a_bias_for_each_channel() -> None:
    y = run("ImageScaler", X, opset=9, scale=0.5, bias=[1.0, 2.0, 3.0])
    np.testing.assert_allclose(y, 0.5 * X + np.array([1, 2, 3], np.float32)[:, None, None], rtol=1e-6)
    assert run("ImageScaler", X.astype(np.float16), opset=9, bias=[1.0, 2.0, 3.0]).dtype == np.float16
