"""Build programs with `argosy.ir.Builder` alone, compile them, run them. Needs no ONNX.

Three programs: a multilayer perceptron that takes any batch, a branch, and a loop.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import argosy
from argosy.ir import Builder, Program, Value
from argosy.ops.control import If, Loop
from argosy.ops.matmul import Dot

rng = np.random.default_rng(0)


def dense(b: Builder, x: Value, inputs: int, outputs: int) -> Value:
    """x @ w + bias."""
    weight = b.constant(rng.standard_normal((inputs, outputs), np.float32) * np.float32(inputs**-0.5))
    bias = b.constant(np.zeros(outputs, np.float32))
    return b.pointwise("add", b.add(Dot(), x, weight), bias)


def perceptron() -> Program:
    """Two layers; the batch N is a symbol, so that one artifact takes every size."""
    b = Builder()
    x = b.tensor_parameter("x", "float32", ["N", 16])
    hidden = b.pointwise(lambda v: v.max(0.0), dense(b, x, 16, 32))
    return Program(b.module({"y": dense(b, hidden, 32, 4)}))


def branch() -> Program:
    """-x where the flag is set, else x + 1. Bodies are closed: what they read comes in as a parameter."""
    b = Builder()
    flag = b.tensor_parameter("flag", "bool", [])
    x = b.tensor_parameter("x", "float32", ["N"])

    then = Builder("then", namer=b.namer)
    negated = then.pointwise("neg", then.parameter("x", x.type))
    otherwise = Builder("else", namer=b.namer)
    raised = otherwise.pointwise(lambda v: v + 1.0, otherwise.parameter("x", x.type))

    op = If(then.module({"y": negated}), otherwise.module({"y": raised}))
    return Program(b.module({"y": b.add(op, flag, x, x)}))


def loop() -> Program:
    """x doubled `count` times; also every value on the way."""
    b = Builder()
    count = b.tensor_parameter("count", "int64", [])
    x = b.tensor_parameter("x", "float32", [3])

    body = Builder("body", namer=b.namer)
    body.tensor_parameter("iteration", "int64", [])
    go_on = body.tensor_parameter("condition", "bool", [])
    doubled = body.pointwise(lambda v: v * 2.0, body.tensor_parameter("value", "float32", [3]))
    module = body.module([("condition", go_on), ("value", doubled), ("history", doubled)])

    last, history = b.add_all(Loop(module, carried=1), count, None, x)
    return Program(b.module({"last": last, "history": history}))


def main() -> None:
    """Compile each program, save it, load it, run it."""
    x = rng.standard_normal((5, 16), np.float32)
    cases = [
        ("perceptron", perceptron(), {"x": x}),
        ("branch", branch(), {"flag": np.array(True), "x": np.arange(4, dtype=np.float32)}),
        ("loop", loop(), {"count": np.array(3), "x": np.ones(3, np.float32)}),
    ]
    with TemporaryDirectory() as folder:
        for name, program, inputs in cases:
            path = Path(folder) / f"{name}.argosy"
            argosy.compile(program, targets=["ref"]).save(path)
            for output, value in argosy.Session(path).run(inputs).items():
                print(f"{name}: {output} = {np.array2string(value, precision=3, threshold=6)}")


if __name__ == "__main__":
    main()
