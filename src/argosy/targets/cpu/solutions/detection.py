"""Non-maximum suppression: boxes in order of their score, without those that overlap a better one too much."""

from __future__ import annotations

from typing import Any

from argosy.ir.dtype import FLOAT32, INT64
from argosy.ir.module import Module
from argosy.ir.types import TensorType
from argosy.ops.sort import NonMaxSuppression
from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.cpu.codegen.op_kernel import OpKernel
from argosy.targets.cpu.lone_op import LoneOp
from argosy.targets.cpu.solution import Problem, Steps, register_solution
from argosy.targets.lowering.accesses import DeclinedError, op_of

__all__ = ["GreedySuppression"]


@register_solution
class GreedySuppression(LoneOp):
    """For each batch and class a sort of the scores; every box is compared with those that stay."""

    name = "greedy suppression"
    anchors = frozenset({"non_max_suppression"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        module = problem.module
        boxes, scores = (parameter.result() for parameter in module.parameters[:2])
        if boxes.dtype is not FLOAT32 or scores.dtype is not FLOAT32:
            raise DeclinedError(f"boxes of {boxes.dtype}")
        chosen = steps.temporary(TensorType(INT64, (*scores.shape, 3)))
        order, spare = (steps.temporary(TensorType(INT64, (scores.shape[2],))) for _ in range(2))
        count = steps.temporary(TensorType(INT64, (1,)))
        self.call(problem, steps, _select(module), writes=[chosen, order, spare, count])
        for name, _ in steps.undefined(0):
            steps.define(name, count)
        self.call(problem, steps, _rows(module), [chosen])


def _select(module: Module) -> Kernel:
    """Results: rows of batch, class and box; order and spare for the sort; the number of rows."""
    kernel = OpKernel(module, [INT64] * 4)
    op, text = op_of(kernel.instruction, NonMaxSuppression), kernel.text
    boxes, scores = kernel.pointer(0), kernel.pointer(1)
    before = kernel.function(
        "before",
        "bool (const void *context, int64 i, int64 j)",
        """
  float32 a = ((const float32 *)context)[i], b = ((const float32 *)context)[j];
  return a > b || (b != b && a == a);""",
    )
    corners = kernel.function(
        "corners", "void (const float32 *box, float32 *to)", _CENTERED if op.center_point_box else _CORNERS
    )
    ratio = kernel.function(
        "ratio", "float32 (const float32 *first, const float32 *second)", _RATIO % (corners, corners)
    )
    most = kernel.load(2, "0") if kernel.has(2) else "0"
    overlap = f"(float32){kernel.load(3, '0')}" if kernel.has(3) else "0.0f"
    floor = f" && {scores}[line * count + order[i]] > {kernel.load(4, '0')}" if kernel.has(4) else ""
    text.line(f"const int64 batches = {kernel.dim(1, 0)}, classes = {kernel.dim(1, 1)}, count = {kernel.dim(1, 2)};")
    text.line(f"const int64 most = (int64){most};")
    text.line(f"const float32 overlap = {overlap};")
    kernel.code(
        f"""
int64 *chosen = y0, *order = y1, *spare = y2, found = 0;
for (int64 line = 0; line < batches * classes; ++line) {{
  const int64 begin = found;
  const float32 *box = {boxes} + line / classes * count * 4;
  sort_positions(order, spare, count, {before}, {scores} + line * count);
  for (int64 i = 0; i < count && found - begin < most{floor}; ++i) {{
    bool stays = true;
    for (int64 k = begin; k < found && stays; ++k)
      stays = {ratio}(box + 4 * chosen[3 * k + 2], box + 4 * order[i]) <= overlap;
    if (!stays) continue;
    chosen[3 * found] = line / classes;
    chosen[3 * found + 1] = line % classes;
    chosen[3 * found++ + 2] = order[i];
  }}
}}
y3[0] = found;"""
    )
    return kernel.kernel(1)


_CORNERS = """
  for (int axis = 0; axis < 2; ++axis) {
    to[axis] = min_float32(box[axis], box[axis + 2]);
    to[axis + 2] = max_float32(box[axis], box[axis + 2]);
  }"""

_CENTERED = """
  for (int axis = 0; axis < 2; ++axis) {
    float32 a = box[axis] - box[axis + 2] / 2, b = box[axis] + box[axis + 2] / 2;
    to[axis] = min_float32(a, b);
    to[axis + 2] = max_float32(a, b);
  }"""

_RATIO = """
  float32 a[4], b[4];
  %s(first, a);
  %s(second, b);
  float32 height = max_float32(min_float32(a[2], b[2]) - max_float32(a[0], b[0]), 0);
  float32 width = max_float32(min_float32(a[3], b[3]) - max_float32(a[1], b[1]), 0);
  float32 shared = height * width;
  float32 both = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared;
  return both > 0 ? shared / both : 0;"""
"""Intersection over union, 0 for boxes without area."""


def _rows(module: Module) -> Kernel:
    kernel = OpKernel(module, [INT64], [INT64])
    with kernel.text.loop("i", "0", f"3 * {kernel.text.dim(kernel.instruction.result().shape[0])}"):
        kernel.text.line("y0[i] = temporary0[i];")
    return kernel.kernel(1)
