"""Which operator set a node belongs to, where the model does not say it as it should."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from argosy.errors import ModelError, UnsupportedError
from argosy.frontends.onnx import ImportOptions, load
from tests.frontends.onnx.one_node import model, program, run

X = np.array([-1.0, 2.0], np.float32)


@pytest.mark.parametrize("op", ["Gelu", "QuickGelu"])
def test_contrib_ops_in_the_default_domain(op: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "argosy.onnx"):
        y = run(op, X, opset=19)  # ai.onnx has a Gelu from opset 20 on
    np.testing.assert_array_equal(y, run(op, X, domain="com.microsoft"))
    assert f"{op} is no ai.onnx op of opset 19; taken from com.microsoft" in caplog.text
    with pytest.raises(ModelError, match="no ai.onnx op"):
        load(model(op, [X], opset=19), ImportOptions(strict=True))


def test_the_standard_op_comes_first() -> None:
    with pytest.raises(ModelError, match="'approximate'"):
        program("Gelu", [X], opset=20, approximate="maybe")  # the contrib op has no such attribute


def test_a_name_that_nobody_knows() -> None:
    with pytest.raises(UnsupportedError, match="ai.onnx::Frobnicate, opset 13"):
        program("Frobnicate", [X], opset=13)
