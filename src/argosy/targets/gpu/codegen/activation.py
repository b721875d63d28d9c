"""The activations of recurrent layers in Triton."""

from __future__ import annotations

from argosy.ir.dtype import DType
from argosy.targets.gpu.codegen import scalar

__all__ = ["activation_text"]


def activation_text(name: str, x: str, alpha: float, beta: float, kind: DType) -> str:
    """`name` (as `ops.recurrent.ACTIVATIONS` has it) of a variable `x` of the compute type `kind`."""
    a, b, one, zero = (scalar.constant(number, kind) for number in (alpha, beta, 1, 0))

    def call(primitive: str, *args: str) -> str:
        return scalar.apply(primitive, args, [kind] * len(args), kind)

    texts = {
        "relu": call("max", x, zero),
        "tanh": call("tanh", x),
        "sigmoid": call("div", one, f"({one} + {call('exp', f'(-{x})')})"),
        "softsign": call("div", x, f"({one} + tl.abs({x}))"),
        # log(1 + exp(x)) without overflow
        "softplus": f"({call('max', x, zero)} + {call('log1p', call('exp', f'(-tl.abs({x}))'))})",
        "affine": f"({a} * {x} + {b})",
        "leakyrelu": f"tl.where({x} < {zero}, {a} * {x}, {x})",
        "thresholdedrelu": f"tl.where({x} > {a}, {x}, {x} * {zero})",
        "scaledtanh": f"({a} * {call('tanh', f'({b} * {x})')})",
        "hardsigmoid": call("min", call("max", f"({a} * {x} + {b})", zero), one),
        "elu": f"tl.where({x} < {zero}, {a} * {call('expm1', x)}, {x})",
    }
    return texts[name]
