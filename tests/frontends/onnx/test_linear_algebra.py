"""Einsum and Det: the handlers; equations and values are tested with the ops."""

from __future__ import annotations

import numpy as np
import pytest

from argosy.errors import ModelError
from tests.frontends.onnx.against_onnxruntime import assert_agrees
from tests.frontends.onnx.one_node import program

X = np.random.default_rng(0).standard_normal((2, 3, 3)).astype(np.float32)


@pytest.mark.parametrize("equation", ["bij,bjk->bik", "bij,bkj", "bij,bij->b", "...ij,...jk->...ik", "bij, bij -> i j"])
def test_einsum(equation: str) -> None:
    assert_agrees("Einsum", X, X, opset=12, equation=equation, shapes=[("b", 3, 3), ("b", 3, 3)])


def test_an_equation_that_makes_other_engines_hang_is_an_error() -> None:
    with pytest.raises(ModelError, match=r"Einsum \(node 0 → 'y'\): the equation .* more than one '...'"):
        program("Einsum", [X, X], equation="......ii,...jj->...ij")


def test_det() -> None:
    assert_agrees("Det", X, opset=11, shapes=[("n", 3, 3)])
