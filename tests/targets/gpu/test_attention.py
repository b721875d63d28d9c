"""Attention in short floats, as its one kernel means it, beside the suite's values."""

from __future__ import annotations

import numpy as np
import pytest

import argosy
from argosy.options import CompileOptions
from tests.conformance.cases import find_case
from tests.targets.gpu.interpreted import interpreted_run


@pytest.mark.parametrize("name", ["node/test_attention_4d_causal", "node/test_attention_4d_gqa_attn_mask"])
@pytest.mark.parametrize(("precision", "allowed"), [("fp32", 2e-7), ("fp16", 1e-3), ("bf16", 8e-3)])
def test_attention_is_as_exact_as_its_operands(name: str, precision: str, allowed: float) -> None:
    case = find_case(name)
    assert case is not None
    model, (data,) = case.read()
    found = interpreted_run(argosy.load_onnx(model), options=CompileOptions(precision=precision))(data.inputs)
    (given,) = found.values()
    error = np.abs(given - data.outputs["Y"]).max()
    assert error <= allowed
    assert precision == "fp32" or error > 2e-5, "nothing was short"
