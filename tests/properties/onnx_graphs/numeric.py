"""Templates of reductions, products, windows, norms, quantisation, recurrence, and of control flow."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from onnx import helper

from tests.properties.onnx_graphs.graph import Graph, NotDrawn, Template, Value, make_body
from tests.properties.onnx_graphs.shapes import axis_of

__all__ = ["TEMPLATES"]


def reduce(graph: Graph, op: str) -> None:
    kinds = (
        ("float32", "int64", "int32") if op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd") else ("float32",)
    )
    # Of nothing, the standard leaves the mean and the extremes undefined.
    x = graph.pick(*kinds, ranks=(1, 2, 3), where=lambda value: value.array.size > 0 and value.finite)
    if op.startswith("ReduceLogSum") and op != "ReduceLogSumExp":
        x = graph.tensor("float32", x.shape, 0.5, 3)
    keep = graph.one(None, 0, 1)
    axes = graph.rng.sample(range(x.rank), graph.one(*range(1, x.rank + 1)))
    since = 13 if op == "ReduceSum" else 18
    if graph.flag(0.2):
        graph.node(op, x, keepdims=keep)
    elif graph.since(op) >= since:
        graph.node(op, x, graph.ints(*axes), keepdims=keep)
    else:
        graph.node(op, x, axes=axes, keepdims=keep)


def arg_reduce(graph: Graph, op: str) -> None:
    x = graph.pick("float32", "int32", ranks=(1, 2, 3), where=lambda value: value.finite)
    last = graph.one(None, 1) if graph.since(op) >= 12 else None
    graph.node(op, x, axis=axis_of(graph, x), keepdims=graph.one(None, 0), select_last_index=last)


def softmax(graph: Graph, op: str) -> None:
    x = graph.pick("float32", "float64" if op != "Hardmax" else "float32", ranks=(1, 2, 3), where=lambda v: v.finite)
    graph.node(op, x, axis=graph.one(None, axis_of(graph, x)) if graph.since(op) >= 13 else graph.rng.randrange(x.rank))


def norm(graph: Graph, op: str) -> None:
    x = graph.pick("float32", ranks=(2, 3))
    graph.node(op, x, axis=graph.one(0, 1), p=graph.one(None, 1))


def mean_variance(graph: Graph, op: str) -> None:
    graph.node(op, graph.tensor("float32", graph.sizes(4, 2)), axes=graph.one(None, [0, 2, 3]))


def matmul(graph: Graph, op: str) -> None:
    x = graph.pick("float32", "float64", *(("int32",) if graph.opset >= 9 else ()), ranks=(1, 2, 3))
    shape = [x.shape[-1], graph.one(1, 3)] if graph.flag(0.8) else [x.shape[-1]]
    if x.rank == 3 and len(shape) == 2 and graph.flag():
        shape = [x.shape[0], *shape]
    graph.node(op, x, graph.tensor(x.dtype, shape))


def gemm(graph: Graph, op: str) -> None:
    x = graph.pick("float32", ranks=(2,))
    swap, other = graph.flag(), graph.flag()
    rows, depth = x.shape[::-1] if swap else x.shape
    columns = graph.one(1, 3)
    y = graph.tensor("float32", (columns, depth) if other else (depth, columns))
    c = graph.tensor("float32", graph.one((rows, columns), (columns,), (1,), (rows, 1)))
    if graph.opset >= 11 and graph.flag(0.2):
        graph.node(op, x, y, transA=int(swap), transB=int(other))
    else:
        graph.node(
            op, x, y, c, transA=int(swap), transB=int(other), alpha=graph.one(None, 0.5), beta=graph.one(None, 2.0)
        )


def einsum(graph: Graph, op: str) -> None:
    x = graph.pick("float32", ranks=(2,))
    y = graph.tensor("float32", (x.shape[1], graph.one(1, 3)))
    equation, operands = graph.one(
        ("ij,jk->ik", (x, y)), ("ij,jk->k", (x, y)), ("ij->ji", (x,)), ("ij->", (x,)), ("ij,jk->ijk", (x, y))
    )
    graph.node(op, *operands, equation=equation)


def determinant(graph: Graph, op: str) -> None:
    side = graph.one(1, 2, 3)
    graph.node(op, graph.tensor("float32", (*graph.sizes(graph.one(0, 1)), side, side)))


def image(graph: Graph, axes: int | None = None) -> Value:
    """An image [N, C, …] of one to three axes."""
    axes = axes or graph.one(1, 2, 2, 3)
    fitting = [
        v
        for v in graph.values[-4:]
        if v.dtype == "float32" and v.rank == axes + 2 and min(v.shape[2:]) > 2 and v.finite
    ]
    return graph.one(*fitting) if fitting and graph.flag(0.7) else graph.tensor(
        "float32", (*graph.sizes(2), *(graph.one(3, 4, 6) for _ in range(axes)))
    )  # fmt: skip


def window(graph: Graph, axes: int, *, dilations: bool = True) -> dict[str, Any]:
    chosen: dict[str, Any] = {"strides": graph.one(None, [graph.one(1, 2) for _ in range(axes)])}
    if graph.flag(0.3):
        chosen["auto_pad"] = graph.one("SAME_UPPER", "SAME_LOWER", "VALID")
    else:
        chosen["pads"] = graph.one(None, [graph.one(0, 1) for _ in range(2 * axes)])
        chosen["dilations"] = graph.one(None, [graph.one(1, 2) for _ in range(axes)]) if dilations else None
    return chosen


def conv(graph: Graph, op: str) -> None:
    x = image(graph)
    axes, channels = x.rank - 2, x.shape[1]
    group = graph.one(1, channels)
    kernel = [graph.one(1, 2) for _ in range(axes)]
    weight = graph.tensor("float32", (group * graph.one(1, 2), channels // group, *kernel))
    bias = graph.tensor("float32", (weight.shape[0],)) if graph.flag() else None
    graph.node(op, x, weight, bias, group=group, **window(graph, axes))


def conv_transpose(graph: Graph, op: str) -> None:
    x = image(graph, graph.one(1, 2))
    axes, channels = x.rank - 2, x.shape[1]
    weight = graph.tensor("float32", (channels, graph.one(1, 2), *(graph.one(2, 3) for _ in range(axes))))
    bias = graph.tensor("float32", (weight.shape[1],)) if graph.flag() else None
    strides = [graph.one(1, 2) for _ in range(axes)]
    graph.node(op, x, weight, bias, strides=strides, pads=graph.one(None, [graph.one(0, 1) for _ in range(2 * axes)]))


def pool(graph: Graph, op: str) -> None:
    x = image(graph)
    axes = x.rank - 2
    # Where a window is larger than the image, the formula of the standard gives 0, ONNX Runtime 0 or 1; we refuse.
    kernel = [graph.one(2, 3) if min(x.shape[2:]) > 4 else 2 for _ in range(axes)]
    options = window(
        graph, axes, dilations=graph.since(op) >= (19 if op == "AveragePool" else 18 if op == "LpPool" else 10)
    )
    if op != "LpPool" and graph.since(op) >= 10 and "auto_pad" not in options:
        options["ceil_mode"] = graph.one(None, 1)
    if op == "AveragePool":
        options["count_include_pad"] = graph.one(None, 1)
    if op == "LpPool":
        options["p"] = graph.one(None, 1)
    outputs = 2 if op == "MaxPool" and graph.since(op) >= 8 and graph.flag(0.3) else 1
    graph.node(op, x, outputs=outputs, kernel_shape=kernel, **options)


def global_pool(graph: Graph, op: str) -> None:
    graph.node(op, image(graph))


def lrn(graph: Graph, op: str) -> None:
    graph.node(op, image(graph, 2), size=graph.one(1, 3, 5), alpha=graph.one(None, 0.5), bias=graph.one(None, 2.0))


def channel_norm(graph: Graph, op: str) -> None:
    x = image(graph)
    channels = x.shape[1]
    scale, bias, mean = (graph.tensor("float32", (channels,)) for _ in range(3))
    epsilon = graph.one(None, 0.01)
    if op == "InstanceNormalization":
        graph.node(op, x, scale, bias, epsilon=epsilon)
    elif op == "GroupNormalization":
        if graph.since(op) < 21:
            raise NotDrawn
        graph.node(op, x, scale, bias, num_groups=graph.one(1, channels), epsilon=epsilon)
    else:
        graph.node(op, x, scale, bias, mean, graph.tensor("float32", (channels,), 0.5, 2), epsilon=epsilon)


def layer_norm(graph: Graph, op: str) -> None:
    x = graph.pick("float32", ranks=(2, 3))
    axis = graph.one(-1, 1)
    shape = x.shape[axis:]
    scale = graph.tensor("float32", shape)
    bias = graph.tensor("float32", shape) if graph.flag() and op == "LayerNormalization" else None
    graph.node(op, x, scale, bias, axis=axis, epsilon=graph.one(None, 0.01))


def resize(graph: Graph, op: str) -> None:
    x = image(graph, 2)
    mode = graph.one("nearest", "linear", *(("cubic",) if graph.since(op) >= 11 else ()))
    coordinates = graph.one("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    # Where a size is a fraction, ONNX's suite aligns the corners of that (test_resize_downsample_scales_linear_
    # align_corners), ONNX Runtime those of the whole number.
    factors = (1, 2) if coordinates == "align_corners" else (1, 2, 1.5, 0.5)
    scales = graph.new(np.array([1, 1, graph.one(*factors), graph.one(*factors)], np.float32), constant=True)
    if graph.since(op) < 11:
        graph.node(op, x, scales, mode=mode)
        return
    options = {"mode": mode, "coordinate_transformation_mode": coordinates}
    if mode == "nearest":
        options["nearest_mode"] = graph.one("round_prefer_floor", "floor", "ceil", "round_prefer_ceil")
    if graph.flag():
        graph.node(op, x, None, scales, **options)
    else:
        sizes = graph.new(np.array([*x.shape[:2], graph.one(2, 5), graph.one(3, 7)]), constant=True)
        empty = graph.new(np.zeros(0, np.float32), constant=True)
        graph.node(op, x, None, empty if graph.since(op) < 13 else None, sizes, **options)


def upsample(graph: Graph, op: str) -> None:
    x = image(graph, 2)
    mode = graph.one("nearest", "linear")
    scales = [1.0, 1.0, 2.0, graph.one(1.0, 3.0)]
    if graph.since(op) < 9:
        graph.node(op, x, mode=mode, scales=scales)
    else:
        graph.node(op, x, graph.new(np.array(scales, np.float32), constant=True), mode=mode)


def grid_sample(graph: Graph, op: str) -> None:
    x = image(graph, 2)
    grid = graph.tensor("float32", (x.shape[0], *graph.sizes(2), 2), -1.2, 1.2)
    modes = ("linear", "nearest", "cubic") if graph.since(op) >= 20 else ("bilinear", "nearest", "bicubic")
    padding = graph.one("zeros", "border", "reflection")
    graph.node(op, x, grid, mode=graph.one(*modes), padding_mode=padding, align_corners=graph.one(0, 1))


def roi_align(graph: Graph, op: str) -> None:
    x = image(graph, 2)
    regions = np.sort(graph.array("float32", (2, 2, 2), 0, 5), 1).reshape(2, 4)
    images = graph.tensor("int64", (2,), 0, x.shape[0] - 1)
    options = {
        "output_height": 2,
        "output_width": 3,
        "sampling_ratio": graph.one(0, 2),
        "mode": graph.one("avg", "max"),
    }
    graph.node(op, x, graph.new(regions), images, **options)


def suppress(graph: Graph, op: str) -> None:
    boxes = graph.new(np.sort(graph.array("float32", (1, 5, 2, 2), 0, 5), 2).reshape(1, 5, 4))
    scores = graph.tensor("float32", (1, 2, 5), 0, 1)
    graph.node(op, boxes, scores, graph.ints(graph.one(1, 3)), graph.new(np.array([0.4], np.float32), constant=True))


def quantize(graph: Graph, op: str) -> None:
    if op == "DynamicQuantizeLinear":
        graph.node(op, graph.pick("float32", ranks=(1, 2, 3), where=lambda value: value.finite), outputs=3, loose=True)
        return
    kind = graph.one("uint8", "int8")
    x = graph.pick("float32" if op == "QuantizeLinear" else kind, ranks=(1, 2, 3), where=lambda value: value.finite)
    axis = graph.rng.randrange(x.rank)
    shape = (x.shape[axis],) if graph.since(op) >= 13 and graph.flag() else ()
    scale = graph.positive(shape)
    zero = graph.tensor(kind, shape, 0, 9)
    options: dict[str, Any] = {"axis": axis} if graph.since(op) >= 13 else {}
    graph.node(op, x, scale, zero, loose=op == "QuantizeLinear", **options)


def integer_product(graph: Graph, op: str) -> None:
    # With AVX2, ONNX Runtime adds two products of 8 bits in 16, which 200 * 100 and as much leave.
    left, right = graph.tensor("uint8", (3, 4), 0, 200), graph.tensor(graph.one("uint8", "int8"), (4, 2), 0, 80)
    zero, other = graph.tensor("uint8", (), 0, 99), graph.tensor(right.dtype, (), 0, 50)
    if op == "MatMulInteger":
        graph.node(op, left, right, graph.one(None, zero), graph.one(None, other))
        return
    scales = [graph.positive((), 0.01, 0.1) for _ in range(3)]
    graph.node(
        op, left, scales[0], zero, right, scales[1], other, scales[2], graph.tensor("uint8", (), 0, 9), loose=True
    )


def integer_conv(graph: Graph, op: str) -> None:
    x, weight = graph.tensor("uint8", (1, 2, 4, 4), 0, 200), graph.tensor("uint8", (2, 2, 2, 2), 0, 100)
    zero, other = graph.tensor("uint8", (), 0, 99), graph.new(np.array(3, np.uint8), constant=True)
    options = window(graph, 2)
    if op == "ConvInteger":
        graph.node(op, x, weight, zero, other, **options)
        return
    scales = [graph.new(np.array(scale, np.float32), constant=True) for scale in (0.02, 0.03, 0.5)]
    last = graph.new(np.array(7, np.uint8), constant=True)
    graph.node(op, x, scales[0], zero, weight, scales[1], other, scales[2], last, loose=True, **options)


_GATES: Final = {"RNN": 1, "GRU": 3, "LSTM": 4}


def recurrent(graph: Graph, op: str) -> None:
    steps, batch, inputs = graph.sizes(3)
    hidden, gates = graph.one(1, 2), _GATES[op]
    direction = graph.one("forward", "reverse", "bidirectional")
    both = 2 if direction == "bidirectional" else 1
    operands: list[Value | None] = [
        graph.tensor("float32", (steps, batch, inputs)),
        graph.tensor("float32", (both, gates * hidden, inputs)),
        graph.tensor("float32", (both, gates * hidden, hidden)),
        graph.one(None, graph.tensor("float32", (both, 2 * gates * hidden))),
        graph.one(None, graph.tensor("int32", (batch,), 1, steps)),
        graph.one(None, graph.tensor("float32", (both, batch, hidden))),
    ]
    linear = graph.one(None, 1) if op == "GRU" else None
    outputs = 3 if op == "LSTM" else 2
    graph.node(op, *operands, outputs=outputs, hidden_size=hidden, direction=direction, linear_before_reset=linear)


def loss(graph: Graph, op: str) -> None:
    shape = (graph.one(1, 3), 4, *graph.sizes(graph.one(0, 1)))
    x = graph.tensor("float32", shape)
    target = graph.tensor("int64", (shape[0], *shape[2:]), 0, 3)
    weight = graph.tensor("float32", (4,), 0.5, 2) if graph.flag() else None
    reduction, ignored = graph.one("mean", "sum", "none"), graph.one(None, 1)
    graph.node(op, x, target, weight, reduction=reduction, ignore_index=ignored)


def conditional(graph: Graph, op: str) -> None:
    x = graph.pick("float32", ranks=(1, 2))
    condition = graph.new(np.array(graph.flag()), constant=False)
    first = helper.make_node("Relu", [x.name], ["then_"])
    second = helper.make_node(graph.one("Neg", "Abs"), [x.name], ["else_"])
    branches = {"then_branch": make_body([first], [], ["then_"]), "else_branch": make_body([second], [], ["else_"])}
    graph.node(op, condition, captures=[x], **branches)


def loop(graph: Graph, op: str) -> None:
    x = graph.pick("float32", ranks=(1, 2))
    # After 0 iterations ONNX Runtime gives scan outputs a 0 for every dim that the body leaves open.
    trips = graph.new(np.array(graph.one(1, 2, 3)), constant=False)
    go = graph.one(None, graph.new(np.array(True), constant=True))
    nodes = [
        helper.make_node("Identity", ["on"], ["next"]),
        helper.make_node("Add", ["state", x.name], ["new"]),
        helper.make_node("Identity", ["state"], ["each"]),
    ]
    inputs = [("i", "int64", 0), ("on", "bool", 0), ("state", "float32", x.rank)]
    body = make_body(nodes, inputs, ["next", "new", "each"])
    graph.node(op, trips, go, x, outputs=2, captures=[x], body=body)


def scan(graph: Graph, op: str) -> None:
    if graph.since(op) < 9:
        raise NotDrawn
    x = graph.pick("float32", ranks=(2,))
    state = graph.tensor("float32", x.shape[1:])
    nodes = [helper.make_node("Add", ["state", "item"], ["new"]), helper.make_node("Neg", ["state"], ["each"])]
    body = make_body(nodes, [("state", "float32", 1), ("item", "float32", 1)], ["new", "each"])
    backwards = graph.one(None, [1])
    graph.node(op, state, x, outputs=2, body=body, num_scan_inputs=1, scan_input_directions=backwards)


def windows_of_time(graph: Graph, op: str) -> None:
    if op == "DFT":
        x = graph.tensor("float32", (graph.one(1, 2), graph.one(4, 5, 8), 1))
        if graph.since(op) >= 20:
            graph.node(op, x, None, graph.new(np.array(1)), onesided=graph.one(None, 1))
        else:
            graph.node(op, x, axis=1, onesided=graph.one(None, 1))
    else:
        graph.node(op, graph.new(np.array(graph.one(4, 7))), periodic=graph.one(None, 0))


def labels(graph: Graph, op: str) -> None:
    x = graph.pick("int64", "object", ranks=(1, 2))
    keys = {"keys_int64s": [0, 1]} if x.dtype == "int64" else {"keys_strings": ["a", "b"]}
    graph.node(op, x, domain="ai.onnx.ml", values_floats=[0.5, 2.0], default_float=-1.0, **keys)


def features(graph: Graph, op: str) -> None:
    x = graph.pick("float32", "int64", ranks=(2,))
    if op == "Binarizer":
        graph.node(op, graph.pick("float32", ranks=(2,)), domain="ai.onnx.ml", threshold=0.5)
    elif op == "ArrayFeatureExtractor":
        graph.node(op, x, graph.tensor("int64", (1, 2), 0, x.shape[1] - 1), domain="ai.onnx.ml")
    else:
        graph.node(op, graph.pick("int64", ranks=(1,)), domain="ai.onnx.ml", cats_int64s=[0, 1, 2], zeros=1)


def contrib_activation(graph: Graph, op: str) -> None:
    x = graph.pick("float32", ranks=(2, 3))
    bias = graph.tensor("float32", x.shape[-1:])
    operands = (x, bias) if op == "BiasGelu" or (op == "FastGelu" and graph.flag()) else (x,)
    graph.node(op, *operands, domain="com.microsoft")


def fused_matmul(graph: Graph, op: str) -> None:
    x = graph.pick("float32", ranks=(2, 3))
    y = graph.tensor("float32", (*x.shape[:-2], graph.one(1, 3), x.shape[-1]))
    graph.node(op, x, y, domain="com.microsoft", transB=1, alpha=graph.one(None, 0.5))


def skip_norm(graph: Graph, op: str) -> None:
    x = graph.tensor("float32", graph.sizes(3))
    width = x.shape[-1:]
    operands = [x, graph.tensor("float32", x.shape), graph.tensor("float32", width)]
    if op == "SkipLayerNormalization":
        operands += [graph.tensor("float32", width)]
    graph.node(op, *operands, domain="com.microsoft", epsilon=1e-3)


TEMPLATES: dict[str, Template] = {
    **dict.fromkeys(
        [
            "ReduceSum",
            "ReduceMean",
            "ReduceMax",
            "ReduceMin",
            "ReduceProd",
            "ReduceL1",
            "ReduceL2",
            "ReduceLogSum",
            "ReduceLogSumExp",
            "ReduceSumSquare",
        ],
        reduce,
    ),
    **dict.fromkeys(["ArgMax", "ArgMin"], arg_reduce),
    **dict.fromkeys(["Softmax", "LogSoftmax", "Hardmax"], softmax),
    "LpNormalization": norm,
    "MeanVarianceNormalization": mean_variance,
    "MatMul": matmul,
    "Gemm": gemm,
    "Einsum": einsum,
    "Det": determinant,
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    **dict.fromkeys(["MaxPool", "AveragePool", "LpPool"], pool),
    **dict.fromkeys(["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"], global_pool),
    "LRN": lrn,
    **dict.fromkeys(["BatchNormalization", "InstanceNormalization", "GroupNormalization"], channel_norm),
    **dict.fromkeys(["LayerNormalization", "RMSNormalization"], layer_norm),
    "Resize": resize,
    "Upsample": upsample,
    "GridSample": grid_sample,
    "RoiAlign": roi_align,
    "NonMaxSuppression": suppress,
    **dict.fromkeys(["QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"], quantize),
    **dict.fromkeys(["MatMulInteger", "QLinearMatMul"], integer_product),
    **dict.fromkeys(["ConvInteger", "QLinearConv"], integer_conv),
    **dict.fromkeys(_GATES, recurrent),
    **dict.fromkeys(["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"], loss),
    "If": conditional,
    "Loop": loop,
    "Scan": scan,
    **dict.fromkeys(["DFT", "HannWindow", "HammingWindow", "BlackmanWindow"], windows_of_time),
    "ai.onnx.ml::LabelEncoder": labels,
    **dict.fromkeys(
        ["ai.onnx.ml::Binarizer", "ai.onnx.ml::ArrayFeatureExtractor", "ai.onnx.ml::OneHotEncoder"], features
    ),
    **dict.fromkeys(
        [f"com.microsoft::{name}" for name in ("Gelu", "FastGelu", "QuickGelu", "BiasGelu")], contrib_activation
    ),
    "com.microsoft::FusedMatMul": fused_matmul,
    **dict.fromkeys(
        ["com.microsoft::SkipLayerNormalization", "com.microsoft::SkipSimplifiedLayerNormalization"], skip_norm
    ),
}
