"""Compares a model of one node with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from argosy.frontends.onnx import load
from argosy.ir import Env
from argosy.ir.interpreter import Interpreter
from tests.frontends.onnx.one_node import model

__all__ = ["assert_agrees"]

Array = NDArray[Any]
_IR_VERSION = 10
"""One that ONNX Runtime reads, whichever onnx is installed."""


def assert_agrees(
    op: str,
    *inputs: Array | None,
    opset: int = 21,
    outputs: Sequence[str] = ("y",),
    rtol: float = 1e-5,
    atol: float = 1e-6,
    **options: Any,
) -> None:
    """Every output has ONNX Runtime's element type, shape and values."""
    proto = model(op, inputs, opset=opset, outputs=outputs, **options)
    proto.ir_version = _IR_VERSION
    feeds = {f"x{index}": value for index, value in enumerate(inputs) if value is not None}
    feeds = {name: value for name, value in feeds.items() if name in {entry.name for entry in proto.graph.input}}
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, feeds)
    program = load(proto)
    found = Interpreter(program.main).run([feeds[name] for name in program.inputs], Env())
    for name, want, have in zip(filter(None, outputs), expected, found, strict=True):
        assert have.dtype == want.dtype, name
        assert have.shape == want.shape, name
        if want.dtype == object:
            np.testing.assert_array_equal(have, want, err_msg=name)
            continue
        # Differences of unsigned numbers wrap.
        pair = (value.astype(np.int64) if value.dtype.kind in "iu" else value for value in (have, want))
        np.testing.assert_allclose(next(pair), next(pair), rtol=rtol, atol=atol, err_msg=name)
