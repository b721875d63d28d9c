"""The activations of recurrent layers in C."""

from __future__ import annotations

from argosy.ir.dtype import DType
from argosy.targets.cpu.codegen import scalar

__all__ = ["activation_text"]


def activation_text(name: str, x: str, alpha: float, beta: float, kind: DType, lanes: int = 1) -> str:
    """`name` (as `ops.recurrent.ACTIVATIONS` has it) of a variable `x` of the compute type `kind`, or of `lanes`."""
    a, b, one, zero = (scalar.constant(number, kind, lanes) for number in (alpha, beta, 1, 0))
    exp, tanh, bounded = f"exp_{kind}", f"tanh_{kind}", f"min_{kind}(max_{kind}"
    texts = {
        "relu": f"max_{kind}({x}, {zero})",
        "tanh": f"{tanh}({x})",
        "sigmoid": f"({one} / ({one} + {exp}(-{x})))",
        "softsign": f"({x} / ({one} + abs_{kind}({x})))",
        # log(1 + exp(x)) without overflow
        "softplus": f"(max_{kind}({x}, {zero}) + log1p_{kind}({exp}(-abs_{kind}({x}))))",
        "affine": f"({a} * {x} + {b})",
        "leakyrelu": f"({x} < {zero} ? {a} * {x} : {x})",
        "thresholdedrelu": f"({x} > {a} ? {x} : {x} * {zero})",
        "scaledtanh": f"({a} * {tanh}({b} * {x}))",
        "hardsigmoid": f"{bounded}({a} * {x} + {b}, {zero}), {one})",
        "elu": f"({x} < {zero} ? {a} * expm1_{kind}({x}) : {x})",
    }
    return texts[name]
