"""Recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import CONTRIB, onnx_op
from argosy.ir.dim import equal
from argosy.ir.dtype import FLOAT32, INT32
from argosy.ir.module import Value
from argosy.ops.quantize import Dequantize
from argosy.ops.recurrent import ACTIVATIONS, Recurrent
from argosy.ops.view import Transpose, Unsqueeze

_DEFAULTS = {"rnn": ("Tanh",), "gru": ("Sigmoid", "Tanh"), "lstm": ("Sigmoid", "Tanh", "Tanh")}


def _layer(node: Node, kind: str) -> Recurrent:
    """The op that the node's attributes describe.

    Alphas and betas are consumed by the activations that take one, in order; what is left out has the
    default of the ONNX op of that name.
    """
    node.ignore("output_sequence")  # of opset 1: whether Y is wanted, which its name says as well
    clip = node.attr_float("clip", 0.0)
    if clip < 0.0:
        node.fail(f"attribute 'clip' is {clip}, expected a positive number")
    direction = node.attr_choice("direction", "forward", ("forward", "reverse", "bidirectional"))
    defaults = _DEFAULTS[kind] * (2 if direction == "bidirectional" else 1)
    names = tuple(name.lower() for name in node.attr_strings("activations", defaults))
    alphas, betas = list(node.attr_floats("activation_alpha", ())), list(node.attr_floats("activation_beta", ()))
    chosen_alphas, chosen_betas = [], []
    for name in names:
        row = ACTIVATIONS.get(name)
        if row is None:
            node.fail(f"unknown activation {name!r}", hint=f"known: {', '.join(ACTIVATIONS)}")
        chosen_alphas.append(0.0 if row.alpha is None else alphas.pop(0) if alphas else row.alpha)
        chosen_betas.append(0.0 if row.beta is None else betas.pop(0) if betas else row.beta)
    return Recurrent(
        kind,
        direction,
        names,
        tuple(chosen_alphas),
        tuple(chosen_betas),
        clip or None,  # some exporters write 0 where nothing is to be clipped
        node.attr_flag("input_forget") if kind == "lstm" else False,
        node.attr_flag("linear_before_reset") if kind == "gru" else False,
    )


def _run(node: Node, op: Recurrent, operands: Sequence[Value | None]) -> Sequence[Value]:
    """The results of the layer; `layout` 1 has the batch first everywhere."""
    x, w, r, *rest = operands
    batch_first = node.attr_flag("layout")
    if node.has("hidden_size") and r is not None and r.tensor.dims:
        hidden = node.attr_int("hidden_size")
        if equal(r.shape[-1], hidden) is False:
            node.fail(f"attribute 'hidden_size' is {hidden}, R is {r.type}")
    node.ignore("hidden_size")
    if batch_first:
        swap = Transpose((1, 0, 2))
        x = None if x is None else node.add(swap, x)
        # Initial h and c stand at 5 and 6.
        rest = [node.add(swap, v) if v is not None and place in (2, 3) else v for place, v in enumerate(rest)]
    results = node.add_all(op, x, w, r, *rest)
    if batch_first:
        y, *ends = results
        results = (node.add(Transpose((2, 0, 1, 3)), y), *(node.add(swap, end) for end in ends))
    return results[: node.output_count]


@onnx_op("RNN", "GRU", "LSTM")
def recurrent(node: Node) -> Sequence[Value]:
    """A recurrent layer."""
    op = _layer(node, node.proto.op_type.lower())
    return _run(node, op, [node.input(0), node.input(1), node.input(2), *node.inputs[3:]])


@onnx_op("DynamicQuantizeLSTM", domain=CONTRIB)
def DynamicQuantizeLSTM(node: Node) -> Sequence[Value]:
    """An LSTM in float with weights stored as 8-bit integers, transposed: W [directions, input, 4*hidden].

    ONNX Runtime also quantises the activations on the way; this follows the weights alone.
    """
    w = _dequantized(node, node.input(1), node.input(8), node.optional(9))
    r = _dequantized(node, node.input(2), node.input(10), node.optional(11))
    return _run(node, _layer(node, "lstm"), [node.input(0), w, r, *(node.optional(index) for index in range(3, 8))])


def _dequantized(node: Node, weight: Value, scale: Value, zero_point: Value | None) -> Value:
    """Scale (weight - zero point) with its last two axes exchanged; one scale for a direction, or for a column too."""

    def placed(parameter: Value) -> Value:
        return node.add(Unsqueeze((1, 2) if parameter.rank == 1 else (1,)), parameter)

    if scale.rank == 1 and (zero_point is None or (zero_point.rank == 1 and zero_point.dtype is weight.dtype)):
        real = node.add(Dequantize(FLOAT32, 0), weight, scale, *([] if zero_point is None else [zero_point]))
    elif zero_point is None:
        whole = node.builder.convert(weight, FLOAT32)
        real = node.pointwise("mul", whole, placed(scale))
    else:
        real = node.pointwise(
            lambda w, z, s: (w.convert(INT32) - z.convert(INT32)).convert(FLOAT32) * s,
            weight,
            placed(zero_point),
            placed(scale),
        )
    return node.add(Transpose((0, 2, 1)), real)
