"""Formulas that several handlers share, written so that no argument overflows on the way to a finite answer."""

from __future__ import annotations

import math

from argosy.ir.formula import Expr

__all__ = ["gelu", "gelu_tanh", "sigmoid", "softplus"]


def sigmoid(x: Expr) -> Expr:
    """1 / (1 + e^-x), from e^-|x|, which never overflows: the far left tail keeps its relative accuracy."""
    small = (-x.abs()).exp()
    return (x < 0.0).select(small, 1.0) / (small + 1.0)


def softplus(x: Expr) -> Expr:
    """log(1 + e^x) = max(x, 0) + log1p(e^-|x|)."""
    return x.max(0.0) + (-x.abs()).exp().log1p()


def gelu(x: Expr) -> Expr:
    """x Φ(x) = x/2 (1 + erf(x / √2)), Φ being the normal distribution function."""
    return x * 0.5 * ((x * math.sqrt(0.5)).erf() + 1.0)


def gelu_tanh(x: Expr) -> Expr:
    """x/2 (1 + tanh u), u = √(2/π) (x + 0.044715 x³); as x sigmoid(2u), which is the same and cancels nowhere."""
    return x * sigmoid((x + x * x * x * 0.044715) * (2.0 * math.sqrt(2.0 / math.pi)))
