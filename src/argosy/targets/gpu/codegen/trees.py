"""The kernel of an ensemble of decision trees."""

from __future__ import annotations

from typing import Final

from argosy.ir.dtype import FLOAT64
from argosy.ir.module import Module
from argosy.ops.shapes import product
from argosy.ops.trees import LEAF, TreeEnsemble
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.op_kernel import OpKernel
from argosy.targets.lowering.accesses import op_of

__all__ = ["tree_kernel"]

_X, _FEATURES, _SPLITS, _MODES, _YES, _NO, _MISSING, _ROOTS, _STARTS, _TARGETS, _WEIGHTS = range(11)
_COMPARE: Final = ("<=", "<", ">=", ">", "==", "!=")


def tree_kernel(module: Module) -> Kernel:
    """The kernel of a `tree_ensemble`."""
    result = module.results[0]
    kernel = OpKernel(module)
    text, op = kernel.text, op_of(kernel.instruction, TreeEnsemble)
    fill = {"min": 'float("inf")', "max": 'float("-inf")'}.get(op.aggregate, "0")
    joined = {"min": "tl.minimum(total, {})", "max": "tl.maximum(total, {})"}.get(op.aggregate, "total + {}")
    kernel.items(product(result.shape))
    text.line(f"row, target = i // {op.targets}, i % {op.targets}")
    kernel.zeros("total", "tl.float64", fill)
    with text.block(f"for tree in range(0, {kernel.dim(_ROOTS, 0)}):"):
        text.line(f"node = {kernel.load(_ROOTS, 'tree + i * 0')}.to(tl.int64)")
        with text.block(f"for step in range(0, {op.depth}):"):
            feature = kernel.load(_FEATURES, "node")
            value = kernel.converted(_X, f"row * {kernel.dim(_X, 1)} + {feature}", FLOAT64)
            split, mode = kernel.converted(_SPLITS, "node", FLOAT64), kernel.load(_MODES, "node")
            text.line(f"taken = {kernel.load(_MISSING, 'node')} & ({value} != {value})")
            for number, symbol in enumerate(_COMPARE):
                text.line(f"taken = taken | (({mode} == {number}) & ({value} {symbol} {split}))")
            yes, no = kernel.load(_YES, "node"), kernel.load(_NO, "node")
            text.line(f"node = tl.where({mode} == {LEAF}, node, tl.where(taken, {yes}, {no})).to(tl.int64)")
        text.line(f"first = {kernel.load(_STARTS, 'node')}.to(tl.int64)")
        text.line(f"count = {kernel.load(_STARTS, 'node + 1')}.to(tl.int64) - first")
        with text.block("for entry in range(0, tl.max(count, 0)):"):
            text.line("live = inside & (entry < count)")
            own = kernel.load(_TARGETS, "first + entry", "live")
            weight = kernel.converted(_WEIGHTS, "first + entry", FLOAT64, "live")
            text.line(f"total = tl.where(live & ({own} == target), {joined.format(weight)}, total)")
    value = f"total / {kernel.dim(_ROOTS, 0)}" if op.aggregate == "average" else "total"
    if fill != "0":
        value = "tl.where(total - total == 0, total, 0.0)"  # a target without a weight
    kernel.put("i", text.let(scalar.apply("convert", [text.let(value)], [FLOAT64], result.dtype)))
    return kernel.finished()
