"""Templates of quantised layers: between QuantizeLinear and DequantizeLinear, and the ops of integers.

A number near the middle between two steps may go either way by rounding; the rule for quantised models allows for that.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tests.properties.networks.layers import image, rows
from tests.properties.networks.network import Network, Template, Value
from tests.properties.onnx_graphs.graph import ELEMENTS

__all__ = ["TEMPLATES"]


def _quantise(network: Network, x: Value) -> tuple[Value, Value, Value]:
    """A value in 8 bits, with its scale and zero point."""
    kind = network.one("uint8", "int8")
    reach = max(float(np.abs(array).max(initial=0.0)) for array in x.arrays) or 1.0
    step = reach / network.one(60, 100)
    scale = network.constant(np.array(step, x.dtype))
    zero = network.constant(np.array(network.one(128, 120) if kind == "uint8" else network.one(0, 0, 5), kind))
    network.quantised = True
    return network.node("QuantizeLinear", x, scale, zero), scale, zero


def between(network: Network) -> None:
    """A value is quantised, and no more."""
    x = network.pick("float32", ranks=(1, 2, 3, 4))
    network.node("DequantizeLinear", *_quantise(network, x))


def linear(network: Network) -> None:
    """A product of what was quantised, with weights in 8 bits, a scale for each column or for all."""
    x = network.node("DequantizeLinear", *_quantise(network, rows(network)))
    depth, width = x.size(-1), network.one(1, 3, 4, 8, 16)
    many = network.flag()
    scale = network.weight(x.dtype, (width,) if many else (), 0.3 / depth / 40, 1.5 / depth / 40)
    weight = network.weight("int8", (depth, width), -127, 127)
    zero = network.one(None, network.constant(np.zeros((width,) if many else (), np.int8)))
    y = network.node("MatMul", x, network.node("DequantizeLinear", weight, scale, zero, axis=1 if many else None))
    if network.flag():
        y = network.node("Add", y, network.weight(x.dtype, (width,)))
    if network.flag():
        y = network.node("Relu", y)
    if network.flag():
        network.node("DequantizeLinear", *_quantise(network, y))


def convolution(network: Network) -> None:
    x = network.node("DequantizeLinear", *_quantise(network, image(network)))
    channels, count, kernel = x.size(1), network.one(1, 4, 8), network.one(1, 3)
    many = network.flag()
    depth = channels * kernel * kernel
    scale = network.weight(x.dtype, (count,) if many else (), 0.3 / depth / 40, 1.5 / depth / 40)
    weight = network.weight("int8", (count, channels, kernel, kernel), -127, 127)
    kernels = network.node("DequantizeLinear", weight, scale, axis=0 if many else None)
    bias = network.one(None, network.weight(x.dtype, (count,)))
    y = network.node("Conv", x, kernels, bias, pads=network.one(None, [1, 1, 1, 1]))
    if network.flag():
        y = network.node("Relu", y)
    if network.flag():
        network.node("DequantizeLinear", *_quantise(network, y))


def integer_product(network: Network) -> None:
    """A product in int32, between quantisation at run time and what undoes it."""
    x = network.pick("float32", ranks=(2, 3), where=lambda value: not value.varies(1))
    short, scale, zero = network.add("DynamicQuantizeLinear", x, outputs=3)
    network.quantised = True
    depth, width = x.size(-1), network.one(1, 4, 8)
    weight = network.weight(network.one("int8", "uint8"), (depth, width), 0, 60)
    offset = network.one(None, network.constant(np.array(50, weight.dtype)))
    whole = network.node("MatMulInteger", short, weight, zero, offset)
    [sums] = network.add("Cast", whole, to=ELEMENTS["float32"], tame=False)
    network.node("Mul", sums, network.node("Mul", scale, network.constant(np.array(0.5 / depth / 60, np.float32))))


TEMPLATES: Final[dict[Template, int]] = {between: 2, linear: 3, convolution: 3, integer_product: 2}
