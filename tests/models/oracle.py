"""What ONNX Runtime gives for a model, which is what our outputs are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

from tests.models.float_rewrite import float_rewrite, has_quantised_lstm

__all__ = ["expected_outputs"]


def expected_outputs(model: Path | onnx.ModelProto, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """ONNX Runtime's outputs, by name, on one thread; of the float rewrite for models with DynamicQuantizeLSTM."""
    read = onnx.load(model) if isinstance(model, Path) else model
    if has_quantised_lstm(read):
        source: Any = float_rewrite(read).SerializeToString()
    else:
        source = model if isinstance(model, Path) else model.SerializeToString()
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return {
        info.name: value if isinstance(value, list) else np.asarray(value)
        for info, value in zip(session.get_outputs(), session.run(None, dict(feeds)), strict=True)
    }
