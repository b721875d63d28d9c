"""Functions in the forms that results of 16 bits get: right to the last bit but one, of every number there is."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import argosy

pytest.importorskip("triton")

from tests.targets.gpu.interpreted import interpreted_run

FLOATS: dict[int, Any] = {TensorProto.FLOAT16: np.float16, TensorProto.BFLOAT16: ml_dtypes.bfloat16}


@pytest.mark.parametrize("kind", FLOATS)
def test_erf_of_every_number(kind: int) -> None:
    node = helper.make_node("Erf", ["x"], ["y"])
    values = [helper.make_tensor_value_info(name, kind, [1 << 16]) for name in "xy"]
    graph = helper.make_graph([node], "erf", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    x = np.arange(1 << 16, dtype=np.uint16).view(FLOATS[kind])
    (found,) = interpreted_run(argosy.load_onnx(model))({"x": x}).values()
    with np.errstate(invalid="ignore"):  # some of the numbers that are none are signals
        given = x.astype(np.float64)
    exact = np.array([math.erf(value) for value in given])
    assert np.isnan(found[np.isnan(exact)].astype(np.float64)).all()
    # Triton's interpreter makes zeros of the powers of two among bfloat16's subnormals.
    here = (np.abs(given) > np.finfo(np.float32).tiny) | (given == 0)
    nearest = exact[here].astype(x.dtype)
    assert (np.sign(found[here].astype(np.float64)) == np.sign(exact[here])).all()
    # The numbers of one sign are in the order of their bits.
    ulps = np.abs(found[here].view(np.int16).astype(np.int64) - nearest.view(np.int16).astype(np.int64))
    assert ulps.max() <= 1
    assert (ulps > 0).mean() < 0.02
