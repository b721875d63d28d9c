"""Losses: the negative log likelihood of labels, by log-probabilities or by scores."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.frontends.onnx.checks import check_dims
from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.dtype import DType
from argosy.ir.module import Value
from argosy.ops.index import Gather, GatherElements
from argosy.ops.reduce import Reduce, Softmax
from argosy.ops.view import Squeeze, Unsqueeze


@onnx_op("NegativeLogLikelihoodLoss", since=12)
def NegativeLogLikelihoodLoss(node: Node) -> Value:
    """By the log-probabilities `[N, C, …]` of the labels `[N, …]`."""
    x = node.input(0)
    return _loss(node, node.builder.convert(x, x.dtype.compute), x.dtype)


@onnx_op("SoftmaxCrossEntropyLoss", since=12)
def SoftmaxCrossEntropyLoss(node: Node) -> Sequence[Value]:
    """The same by scores, whose log-softmax over C is the second result."""
    x = node.input(0)
    if x.rank < 2:
        node.fail(f"the scores are {x.type}, expected [N, C, ...]")
    logs = node.add(Softmax(1, log=True), node.builder.convert(x, x.dtype.compute))
    loss = _loss(node, logs, x.dtype)
    return (loss, node.builder.convert(logs, x.dtype))[: node.output_count]


def _loss(node: Node, logs: Value, result: DType) -> Value:
    """The loss of `logs [N, C, …]`, rounded once; a label equal to `ignore_index` counts for nothing."""
    labels, weight, wide = node.input(1), node.optional(2), logs.dtype
    if not labels.dtype.is_integer:
        node.fail(f"the labels tensor has type {labels.dtype}, expected an integer type")
    reduction = node.attr_choice("reduction", "mean", ("mean", "sum", "none"))
    if logs.rank < 2:
        node.fail(f"the log-probabilities are {node.input(0).type}, expected [N, C, ...]")
    check_dims(node, "the labels tensor", labels, (logs.shape[0], *logs.shape[2:]))
    ignored = node.attr_int("ignore_index") if node.has("ignore_index") else None
    classes = labels
    if ignored is not None:
        classes = node.pointwise(lambda label: (label == ignored).select(0, label), labels)
    picked = node.add(GatherElements(1), logs, node.add(Unsqueeze((1,)), classes))
    loss = node.pointwise("neg", node.add(Squeeze((1,)), picked))
    shares = _shares(node, labels, classes, weight, ignored, wide)
    if shares is not None:
        loss = node.pointwise("mul", loss, shares)
    if reduction == "none":
        return node.builder.convert(loss, result)
    if reduction == "sum" or shares is not None:
        total = node.add(Reduce("sum", (), keep_dims=False), loss)
        if reduction == "mean" and shares is not None:
            total = node.pointwise("div", total, node.add(Reduce("sum", (), keep_dims=False), shares))
        return node.builder.convert(total, result)
    return node.builder.convert(node.add(Reduce("mean", (), keep_dims=False), loss), result)


def _shares(
    node: Node, labels: Value, classes: Value, weight: Value | None, ignored: int | None, wide: DType
) -> Value | None:
    """How much each label counts; None where all count 1."""
    shares = None
    if weight is not None:
        if weight.dtype is not node.input(0).dtype:
            node.fail(f"the weight has type {weight.dtype}, expected {node.input(0).dtype} as of input 0")
        check_dims(node, "the weight", weight, (node.input(0).shape[1],))
        shares = node.add(Gather(0), node.builder.convert(weight, wide), classes)
    if ignored is None:
        return shares
    if shares is None:
        return node.pointwise(lambda label: (label == ignored).apply("not").convert(wide), labels)
    return node.pointwise(lambda label, share: (label == ignored).select(0.0, share), labels, shares)
