"""Rewrites com.microsoft::DynamicQuantizeLSTM as a float LSTM, so that ONNX Runtime is an independent oracle for it.

ONNX Runtime quantises the activations of that op too, which no other engine confirms; the weights are what the
model holds. W `[directions, input, 4*hidden]` and R `[directions, hidden, 4*hidden]` are dequantised (a scale per
direction, or per direction and column) and transposed into the layout of ONNX's LSTM.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

__all__ = ["float_rewrite", "has_quantised_lstm"]

OP = "DynamicQuantizeLSTM"


def has_quantised_lstm(model: onnx.ModelProto) -> bool:
    """Whether the main graph holds the op."""
    return any(node.op_type == OP for node in model.graph.node)


def float_rewrite(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of the model with every DynamicQuantizeLSTM of its main graph as an LSTM in float."""
    rewritten = onnx.ModelProto()
    rewritten.CopyFrom(model)
    graph = rewritten.graph
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    values |= {
        node.output[0]: numpy_helper.to_array(node.attribute[0].t)
        for node in graph.node
        if node.op_type == "Constant" and node.attribute[0].name == "value"
    }
    for node in graph.node:
        if node.op_type != OP:
            continue
        inputs = [*node.input, *[""] * (12 - len(node.input))]
        for position, scale, zero in ((1, 8, 9), (2, 10, 11)):
            weight = _dequantised(values[inputs[position]], values[inputs[scale]], values.get(inputs[zero]))
            name = f"{inputs[position]}/float"
            graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(weight.transpose(0, 2, 1)), name))
            inputs[position] = name
        del node.input[:]
        node.input.extend(inputs[:8])
        while node.input and not node.input[-1]:
            node.input.pop()
        node.op_type, node.domain = "LSTM", ""
    return rewritten


def _dequantised(weight: NDArray[Any], scale: NDArray[Any], zero: NDArray[Any] | None) -> NDArray[np.float32]:
    directions = weight.shape[0]
    scales = scale.reshape(directions, 1, -1)
    zeros = np.zeros_like(scales) if zero is None else zero.reshape(directions, 1, -1).astype(np.float32)
    return ((weight.astype(np.float32) - zeros) * scales).astype(np.float32)
