"""Ensembles of decision trees: every row walks down every tree."""

from __future__ import annotations

from typing import Any

from argosy.ir.dtype import FLOAT64
from argosy.ir.module import Module
from argosy.ir.types import TensorType
from argosy.ops.shapes import product
from argosy.ops.trees import LEAF, TreeEnsemble
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.kernel import Kernel, chunk_count
from argosy.targets.cpu.codegen.op_kernel import OpKernel
from argosy.targets.cpu.lone_op import LoneOp
from argosy.targets.cpu.solution import Problem, Steps, register_solution
from argosy.targets.lowering.accesses import op_of

__all__ = ["TreeWalks"]

_X, _FEATURES, _SPLITS, _MODES, _YES, _NO, _MISSING, _ROOTS, _STARTS, _TARGETS, _WEIGHTS = range(11)


@register_solution
class TreeWalks(LoneOp):
    """Chunks share out the rows; sums are taken in float64."""

    name = "tree walks"
    anchors = frozenset({"tree_ensemble"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        totals = steps.temporary(TensorType(FLOAT64, problem.module.results[0].shape))
        self.call(problem, steps, _walk(problem.module), writes=[steps.result(), totals])


def _walk(module: Module) -> Kernel:
    result = module.results[0]
    kernel = OpKernel(module, [result.dtype, FLOAT64])
    text, op = kernel.text, op_of(kernel.instruction, TreeEnsemble)
    fill = {"min": "__builtin_inf()", "max": "-__builtin_inf()"}.get(op.aggregate, "0.0")
    joined = {
        "min": "min_float64(total[target], weight)",
        "max": "max_float64(total[target], weight)",
    }.get(op.aggregate, "total[target] + weight")
    trees = text.let("int64", kernel.dim(_ROOTS, 0))
    with kernel.share("row", kernel.dim(_X, 0)):
        text.line(f"float64 *total = y1 + row * {op.targets};")
        text.line(f"for (int64 i = 0; i < {op.targets}; ++i) total[i] = {fill};")
        with text.loop("tree", "0", trees):
            value = kernel.converted(_X, f"row * {kernel.dim(_X, 1)} + {kernel.load(_FEATURES, 'node')}", FLOAT64)
            kernel.code(
                f"""
int64 node = {kernel.load(_ROOTS, "tree")};
for (int64 step = 0; step < {op.depth} && {kernel.load(_MODES, "node")} != {LEAF}; ++step) {{
  const float64 value = {value}, split = {kernel.converted(_SPLITS, "node", FLOAT64)};
  bool taken = {kernel.load(_MISSING, "node")} && value != value;
  switch ({kernel.load(_MODES, "node")}) {{
    case 0: taken = taken || value <= split; break;
    case 1: taken = taken || value < split; break;
    case 2: taken = taken || value >= split; break;
    case 3: taken = taken || value > split; break;
    case 4: taken = taken || value == split; break;
    case 5: taken = taken || value != split; break;
  }}
  node = taken ? {kernel.load(_YES, "node")} : {kernel.load(_NO, "node")};
}}
for (int64 entry = {kernel.load(_STARTS, "node")}; entry < {kernel.load(_STARTS, "(node + 1)")}; ++entry) {{
  const int64 target = {kernel.load(_TARGETS, "entry")};
  const float64 weight = {kernel.converted(_WEIGHTS, "entry", FLOAT64)};
  total[target] = {joined};
}}"""
            )
        with text.loop("i", "0", str(op.targets)):
            value = f"total[i] / (float64){trees}" if op.aggregate == "average" else "total[i]"
            text.line(f"const float64 value = {value};")
            # a target without a weight
            kept = "value" if fill == "0.0" else "(value - value == 0 ? value : 0.0)"
            rounded = scalar.apply("convert", [kept], [FLOAT64], result.dtype)
            text.line(kernel.store(0, result.dtype, f"row * {op.targets} + i", rounded))
    roots = kernel.operand(_ROOTS).shape
    return kernel.kernel(chunk_count(result.shape[0] * product(roots) * op.depth, result.shape[0]))
