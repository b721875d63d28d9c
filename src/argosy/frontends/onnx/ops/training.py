"""Optimiser steps of ai.onnx.preview.training: one formula for each tensor that they update.

Inputs are the learning rate R, the number T of updates made, then all tensors X, all gradients G, and all of
each state; outputs are all new X, then all of each new state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.formula import Expr
from argosy.ir.module import Value

_DOMAIN = "ai.onnx.preview.training"


def _tensors(node: Node, states: int) -> list[tuple[Value, ...]]:
    """Of each optimised tensor: R in its type, X, G, and its states."""
    rest = [node.input(index) for index in range(2, len(node.inputs))]
    count, remainder = divmod(len(rest), 2 + states)
    if remainder or not count:
        node.fail(f"has {len(rest)} tensors after R and T, expected a multiple of {2 + states}")
    groups = zip(*(rest[start * count : (start + 1) * count] for start in range(2 + states)), strict=True)
    return [(node.builder.convert(node.input(0), group[0].dtype), *group) for group in groups]


def _in_order(results: Sequence[tuple[Value, ...]]) -> list[Value]:
    return [value for kind in zip(*results, strict=True) for value in kind]


@onnx_op("Adagrad", domain=_DOMAIN)
def Adagrad(node: Node) -> list[Value]:
    """H' = H + g²; X' = X - R g / ((1 + decay T) (√H' + epsilon)), where g = G + norm_coefficient X."""
    norm, epsilon = node.attr_float("norm_coefficient", 0.0), node.attr_float("epsilon", 1e-6)
    decay = node.attr_float("decay_factor", 0.0)
    results = []
    for rate, x, gradient, squares in _tensors(node, 1):
        count = node.builder.convert(node.input(1), x.dtype)

        def accumulated(x: Expr, g: Expr, h: Expr) -> Expr:
            slope = g + x * norm
            return h + slope * slope

        def step(r: Expr, t: Expr, x: Expr, g: Expr, h: Expr) -> Expr:
            return x - r / (t * decay + 1.0) * (g + x * norm) / (h.sqrt() + epsilon)

        new = node.pointwise(accumulated, x, gradient, squares)
        results.append((node.pointwise(step, rate, count, x, gradient, new), new))
    return _in_order(results)


@onnx_op("Adam", domain=_DOMAIN)
def Adam(node: Node) -> list[Value]:
    """V' = alpha V + (1 - alpha) g; H' = beta H + (1 - beta) g²; X' = (1 - post) (X - R' V' / (√H' + epsilon)).

    G is regularised to g = G + norm_coefficient X, and R' = R √(1 - beta^T) / (1 - alpha^T) for T > 0, else R.
    """
    alpha, beta = node.attr_float("alpha", 0.9), node.attr_float("beta", 0.999)
    epsilon, norm = node.attr_float("epsilon", 1e-6), node.attr_float("norm_coefficient", 0.0)
    keep = 1.0 - node.attr_float("norm_coefficient_post", 0.0)

    def adjusted(r: Expr, t: Expr) -> Expr:
        # 1 - c^T = -expm1(T log c), without the cancellation of coefficients near 1
        bias = [
            -(t * math.log(coefficient)).expm1() if coefficient > 0.0 else t * 0.0 + 1.0
            for coefficient in (beta, alpha)
        ]
        return (t > 0.0).select(r * bias[0].sqrt() / bias[1], r)

    results = []
    for rate, x, gradient, mean, squares in _tensors(node, 2):
        count = node.builder.convert(node.input(1), x.dtype)

        def average(x: Expr, g: Expr, v: Expr) -> Expr:
            return v * alpha + (g + x * norm) * (1.0 - alpha)

        def average_square(x: Expr, g: Expr, h: Expr) -> Expr:
            slope = g + x * norm
            return h * beta + slope * slope * (1.0 - beta)

        new_mean = node.pointwise(average, x, gradient, mean)
        new_squares = node.pointwise(average_square, x, gradient, squares)
        moved = node.pointwise(
            lambda r, x, v, h: (x - r * v / (h.sqrt() + epsilon)) * keep,
            node.pointwise(adjusted, rate, count),
            x,
            new_mean,
            new_squares,
        )
        results.append((moved, new_mean, new_squares))
    return _in_order(results)


@onnx_op("Momentum", domain=_DOMAIN)
def Momentum(node: Node) -> list[Value]:
    """V' = alpha V + b g; X' = X - R V', or X - R (g + alpha V') in Nesterov's mode.

    G is regularised to g = G + norm_coefficient X, and b is `beta` for T > 0, else 1.
    """
    alpha, beta, norm = node.attr_float("alpha"), node.attr_float("beta"), node.attr_float("norm_coefficient")
    nesterov = node.attr_choice("mode", "", ("standard", "nesterov")) == "nesterov"

    def momentum(t: Expr, x: Expr, g: Expr, v: Expr) -> Expr:
        slope = g + x * norm
        return v * alpha + (t > 0.0).select(slope * beta, slope)

    def nesterov_step(r: Expr, x: Expr, g: Expr, v: Expr) -> Expr:
        return x - r * (g + x * norm + v * alpha)

    results = []
    for rate, x, gradient, state in _tensors(node, 1):
        count = node.builder.convert(node.input(1), x.dtype)
        new = node.pointwise(momentum, count, x, gradient, state)
        if nesterov:
            results.append((node.pointwise(nesterov_step, rate, x, gradient, new), new))
        else:
            results.append((node.pointwise(lambda r, x, v: x - r * v, rate, x, new), new))
    return _in_order(results)
