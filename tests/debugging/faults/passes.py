"""Passes with a wrong result: of the CPU's pipeline, and of what it shares with the GPU's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper

from argosy.ir.dim import Dim
from argosy.ir.dtype import FLOAT32, dtype
from argosy.ir.literal import Literal
from argosy.ops.control import If
from argosy.ops.pointwise import Pointwise
from argosy.ops.reduce import Reduce
from argosy.options import CompileOptions
from argosy.passes import (
    eliminate_common,
    fold_constants,
    fold_scales,
    fold_shapes,
    group_queries,
    hoist_constant_steps,
    lower_einsum,
    lower_precision,
    lower_quantize,
)
from argosy.passes.bind_dims import BindDims
from argosy.passes.split_ranks import SplitRanks
from argosy.rewrite.rebuild import transform
from tests.debugging.faults.fault import Fault, ranges, replaced
from tests.debugging.faults.network import Network, convolutional, perceptron, recurrent, tabular

__all__ = ["FAULTS"]


def roots(net: Network, x: str) -> str:
    scale = net.op("Sqrt", net.weight(24, low=0.5, high=9.0), name="guilty")
    return net.op("Mul", net.op("Mul", x, scale), net.op("Sqrt", net.op("Abs", x)))


def coarse(old: Any) -> Any:
    """What is folded keeps eight bits."""

    def evaluate(instruction: Any, literals: Any) -> Any:
        return [
            Literal.of((np.floor(each.array() * 8) / 8).astype(np.float32)) if each.dtype is FLOAT32 else each
            for each in old(instruction, literals)
        ]

    return evaluate


def normalized(net: Network, x: str) -> str:
    first = net.op("Conv", x, net.weight(6, 8, 3, 3), net.weight(6), name="conv", pads=[1, 1, 1, 1])
    moved = net.op("Mul", first, net.weight(1, 6, 1, 1, low=2.0, high=3.0), name="guilty")
    second = net.op("Conv", net.op("Relu", moved), net.weight(4, 6, 1, 1))
    return net.op("Add", second, net.weight(1, 4, 1, 1))


def unmoved(old: Any) -> Any:
    """What is multiplied by a scale leaves the bias as it was."""

    def scaled(self: Any, conv: Any, scale: Any, shift: Any, reader: Any) -> Any:
        bias = conv.operands[2].constant.array() if any(conv.operands[2:]) else np.zeros(1)
        return old(self, conv, scale, shift + (1 - scale) * bias, reader)

    return scaled


def extremes(net: Network, x: str) -> str:
    axes = net.ints(1)
    low = net.op("ReduceMin", x, axes, name="low")
    high = net.op("ReduceMax", x, axes, name="high")
    return net.op("Sub", net.op("Mul", high, net.constant(3.0)), net.op("Mul", low, net.op("ReduceMean", x, axes)))


def alike(old: Any) -> Any:
    """The least and the greatest are one."""
    return lambda op: ("extreme", op.axes) if isinstance(op, Reduce) and op.kind in ("min", "max") else old(op)


def weighted(net: Network, x: str) -> str:
    first = net.op("MatMul", x, net.weight(24, 20), name="one")
    second = net.op("MatMul", net.op("Sin", x), net.weight(24, 20), name="two")
    return net.op("Mul", net.op("Sub", first, second), net.op("Cos", net.op("MatMul", x, net.weight(24, 1))))


def alike_constants(old: Any) -> Any:
    """Constants of one type are one."""
    return lambda op: ("constant", op.literal.dtype, op.literal.shape) if op.name == "constant" else old(op)


def halves(net: Network, x: str) -> str:
    size = net.op("Gather", net.op("Shape", x), net.constant(1, "int64"))
    half = net.op("Div", size, net.constant(2, "int64"), name="guilty")
    scale = net.op("Cast", net.op("Mul", half, half), to=TensorProto.FLOAT)
    return net.op("Div", x, net.op("Add", scale, net.constant(1.0)))


def upwards(old: Any) -> Any:
    """Quotients of sizes are rounded up."""

    def spelt(build: Any, known: Any, *more: Any) -> Any:
        if known.size == 1 and isinstance(known.item(), Dim) and "floordiv" in str(known.item()):
            known = np.array(known.item() + 1, object).reshape(known.shape)
        return old(build, known, *more)

    return spelt


def heads(net: Network, x: str) -> str:
    """Attention with four heads of eight numbers, each with keys and values of its own."""

    def split(perm: Sequence[int], width: int = 32) -> str:
        rows = net.op("MatMul", x, net.weight(16, width))
        return net.op("Transpose", net.op("Reshape", rows, net.ints(0, 0, 4, 8)), perm=list(perm))

    scores = net.op("MatMul", split((0, 2, 1, 3)), split((0, 2, 3, 1)), name="scores")
    weights = net.op("Softmax", scores, axis=-1, name="softmax")
    return net.op("MatMul", weights, split((0, 2, 1, 3)), name="guilty")


def contracted(net: Network, x: str) -> str:
    pairs = net.op("Einsum", x, net.op("Sin", x), equation="nid,njd->nij", name="guilty")
    return net.op("Sub", pairs, net.op("Einsum", x, x, equation="nid,njd->nij"))


def crossed(old: Any) -> Any:
    """Rows and columns of a product change places."""

    def multiplied(build: Any, left: Any, right: Any, kept: Any) -> Any:
        found = old(build, left, right, kept)
        *batch, rows, columns = found.labels
        return type(found)(found.value, (*batch, columns, rows))

    return multiplied


def moments(net: Network, x: str) -> str:
    scale, variance = net.weight(8, 1, 1, low=0.5, high=2.0), net.weight(8, low=0.2, high=4.0)
    found = net.op(
        "BatchNormalization", x, net.weight(8, low=0.5, high=2.0), net.weight(8), net.weight(8), variance, name="guilty"
    )
    return net.op("Add", found, net.op("Mul", x, scale))


def turned_round(old: Any) -> Any:
    """What is computed apart is its own inverse."""

    def apart(build: Any, *more: Any) -> Any:
        return build.pointwise(lambda v: 1.0 / v, old(build, *more))

    return apart


def squares(net: Network, x: str) -> str:
    large = net.op("Mul", x, net.constant(900.0))
    total = net.op("ReduceSum", net.op("Mul", large, large), net.ints(1), name="guilty")
    return net.op("Sub", total, net.op("ReduceSum", net.op("MatMul", x, net.weight(24, 6)), net.ints(1)))


def short_sums(old: Any) -> Any:
    """Sums take their operands short, as products do."""

    def lower(self: Any, build: Any, instruction: Any, kind: Any, steady: Any) -> Any:
        x = instruction.operands[0] if instruction.operands else None
        if isinstance(instruction.op, Reduce) and x is not None and x.dtype is FLOAT32:
            if isinstance(x.instruction.op, Pointwise) and x.instruction.op.formula.primitive == "convert":
                return None
            return [build.add(instruction.op, build.convert(build.convert(x, dtype("float16")), FLOAT32))]
        return old(self, build, instruction, kind, steady)

    return lower


def codes(net: Network, k: str) -> str:
    weights = net.constant(np.arange(12 * 10).reshape(12, 10) % 251 - 90, "int8")
    sums = net.op("MatMulInteger", k, weights, net.constant(117, "uint8"), name="guilty")
    plain = net.op("MatMulInteger", k, net.constant(np.arange(120).reshape(12, 10) % 7, "int8"))
    return net.op("Cast", net.op("Sub", sums, plain), to=TensorProto.FLOAT)


def no_zero(old: Any) -> Any:
    """The zero point of the left operand is forgotten."""

    def corrected(build: Any, sums: Any, parameters: Any, columns: Any, rows: Any, depth: Any) -> Any:
        left, right = parameters
        return old(build, sums, (replace(left, zero=None), right), None, rows, depth)

    return corrected


def branched(net: Network, x: str) -> str:
    """Branches that give other ranks, and what reads them."""
    flag = net.op("Greater", net.op("ReduceSum", x, net.ints(0, 1), keepdims=0), net.constant(1e6))

    def branch(name: str, *nodes: onnx.NodeProto) -> onnx.GraphProto:
        given = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)
        return helper.make_graph(nodes, name, [], [given])

    flat = branch("flat", helper.make_node("Reshape", [x, net.ints(24)], ["flat"], name="row"))
    whole = branch("whole", helper.make_node("Exp", [x], ["whole"], name="powers"))
    either = net.op("If", flag, then_branch=flat, else_branch=whole, name="either")
    return net.op("Add", net.op("Neg", either), net.op("Cos", x), name="guilty")


def other_branch(old: Any) -> Any:
    """What was moved into the branches is in the wrong one."""

    def change(build: Any, instruction: Any) -> Any:
        op = instruction.op
        if not isinstance(op, If) or instruction.types != tuple(each.type for each in op.else_branch.results):
            return None
        count = len(op.then_branch.parameters)
        condition, *operands = instruction.operands
        return build.add_all(If(op.else_branch, op.then_branch), condition, *operands[count:], *operands[:count])

    def run(self: Any, module: Any, context: Any) -> Any:
        found = old(self, module, context)
        return found if found is module else transform(found, lambda: change, context.namer)

    return run


def differences(net: Network, x: str) -> str:
    return net.op("Neg", net.op("Sub", net.op("Exp", x), net.op("Sin", x), name="guilty"))


def turned_differences(old: Any) -> Any:
    """What is subtracted from what is exchanged where dims are bound."""

    def change(build: Any, instruction: Any) -> Any:
        primitive = getattr(getattr(instruction.op, "formula", None), "primitive", "")
        left, right = (*instruction.operands, None, None)[:2]
        if primitive != "sub" or left.type != right.type or not left.dtype.is_float:
            return None
        return build.add_all(instruction.op, right, left)

    def run(self: Any, module: Any, context: Any) -> Any:
        return transform(old(self, module, context), lambda: change, context.namer)

    return run


FAULTS: Final = (
    Fault("fold_constants", "wrong precision", "pass:fold_constants", ("guilty",), lambda: perceptron(roots),
          lambda: replaced(fold_constants, "_evaluate", coarse)),
    Fault("fold_scales", "wrong weights", "pass:fold_scales", ("conv", "guilty"), lambda: convolutional(normalized),
          lambda: replaced(fold_scales._Fold, "_scaled", unmoved)),
    Fault("eliminate_common", "what differs is merged", "pass:eliminate_common", ("low", "high"),
          lambda: perceptron(extremes), lambda: replaced(eliminate_common, "op_signature", alike)),
    Fault("constants_by_type", "wrong sharing of literals", "pass:eliminate_common", ("one", "two"),
          lambda: perceptron(weighted), lambda: replaced(eliminate_common, "op_signature", alike_constants)),
    Fault("fold_shapes", "wrong dim expression", "pass:fold_shapes", ("guilty",), lambda: recurrent(halves),
          lambda: replaced(fold_shapes, "_spelt", upwards), dims={"N": "2..4", "T": "5..9"}),
    Fault("group_queries", "wrong pass", "pass:group_queries", ("scores", "softmax", "guilty"),
          lambda: recurrent(heads), lambda: replaced(group_queries, "_repeats", lambda _: lambda *_: True),
          dims={"N": "2..4", "T": "5..9"}),
    Fault("lower_einsum", "axes swapped", "pass:lower_einsum", ("guilty",), lambda: recurrent(contracted, 16, 7),
          lambda: replaced(lower_einsum, "_multiplied", crossed)),
    Fault("hoist_constant_steps", "wrong pass", "pass:hoist_constant_steps", ("guilty",),
          lambda: convolutional(moments), lambda: replaced(hoist_constant_steps, "_apart", turned_round)),
    Fault("lower_precision", "wrong precision", "pass:lower_precision", ("guilty",),
          lambda: perceptron(squares), lambda: replaced(lower_precision.LowerPrecision, "_lower", short_sums),
          options=CompileOptions(precision="fp16")),
    Fault("lower_quantize", "zero point ignored", "pass:lower_quantize", ("guilty",),
          lambda: tabular(codes, "uint8"), lambda: replaced(lower_quantize, "_corrected", no_zero),
          inputs=ranges(k=(0, 255))),
    Fault("split_ranks", "wrong branch", "pass:split_ranks", ("either", "guilty"), lambda: perceptron(branched, 24, 1),
          lambda: replaced(SplitRanks, "run", other_branch), dims={}),
    Fault("bind_dims", "wrong for single sizes", "pass:bind_dims", ("guilty",), lambda: perceptron(differences),
          lambda: replaced(BindDims, "run", turned_differences), dims={"N": (4, 7)}),
)  # fmt: skip
