"""Top-k by a heap of the best for each line, unique by a stable merge sort."""

from __future__ import annotations

from typing import Any

from argosy.ir.dim import DimLike
from argosy.ir.dtype import INT64
from argosy.ir.module import Instruction, Module
from argosy.ir.types import TensorType
from argosy.ops.shapes import normalize_axis, product
from argosy.ops.sort import TopK, Unique
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.element import Elements
from argosy.targets.cpu.codegen.kernel import Kernel, chunk_count
from argosy.targets.cpu.codegen.op_kernel import OpKernel
from argosy.targets.cpu.codegen.ordering import less_function
from argosy.targets.cpu.lone_op import LoneOp
from argosy.targets.cpu.solution import Problem, Steps, register_solution
from argosy.targets.cpu.solutions.steered import define_sizes
from argosy.targets.lowering.accesses import DeclinedError, op_of, present

__all__ = ["TopKHeap", "UniqueSort"]


@register_solution
class TopKHeap(LoneOp):
    """A heap of the k best for each line; sorted in place."""

    name = "top-k heap"
    anchors = frozenset({"topk"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        define_sizes(problem, steps, _topk_sizes)
        (topk,) = problem.module.instructions
        order = steps.temporary(TensorType(INT64, topk.result().shape))
        self.call(problem, steps, _topk(problem.module), writes=[steps.result(0), steps.result(1), order])


def _topk_sizes(elements: Elements, instruction: Instruction) -> list[list[DimLike]]:
    x = present(instruction, 0)
    kept = elements.entries(None, present(instruction, 1))
    if not kept:
        raise DeclinedError("k is not one number")
    axis = normalize_axis(op_of(instruction, TopK).axis, x.rank)
    shape = [*x.shape[:axis], kept[0], *x.shape[axis + 1 :]]
    return [shape, shape]


def _topk(module: Module) -> Kernel:
    kernel = OpKernel(module, [module.results[0].dtype, INT64, INT64])
    op, text = op_of(kernel.instruction, TopK), kernel.text
    x, result = kernel.operand(0), kernel.instruction.result()
    axis = normalize_axis(op.axis, x.rank)
    less = less_function(kernel, x.dtype)
    storage, ctype = scalar.storage_type(x.dtype), scalar.compute_type(x.dtype)
    first, second = ("b", "a") if op.largest else ("a", "b")
    before = kernel.function(
        "before",
        "bool (const void *context, int64 i, int64 j)",
        f"""
  const int64 *line = context; /* where it begins, and from one element to the next */
  const {storage} *x = (const {storage} *)line[0];
  {ctype} a = {scalar.load(x.dtype, "x", "i * line[1]")}, b = {scalar.load(x.dtype, "x", "j * line[1]")};
  return {less}({first}, {second}) || (!{less}({second}, {first}) && i < j);""",
    )
    size, kept = text.let("int64", kernel.dim(0, axis)), text.let("int64", text.dim(result.shape[axis]))
    inner = text.let("int64", kernel.count(x.shape[axis + 1 :]))
    text.line(f"if ({kept} > {size}) {{ argosy_fail(scratch, ARGOSY_SIZE, {kept}); return; }}")
    with kernel.share("line", f"{kernel.count(x.shape[:axis])} * {inner}"):
        base = text.let("int64", f"line / {inner} * {size} * {inner} + line % {inner}")
        target = text.let("int64", f"line / {inner} * {kept} * {inner} + line % {inner}")
        text.line(f"const int64 context[2] = {{(int64)({kernel.pointer(0)} + {base}), {inner}}};")
        text.line(f"int64 *order = y2 + line * {kept};")
        text.line(f"first_positions(order, {kept}, {size}, {before}, context);")
        with text.loop("i", "0", kept):
            at = text.let("int64", f"{target} + i * {inner}")
            text.line(kernel.store(0, x.dtype, at, kernel.load(0, f"{base} + order[i] * {inner}")))
            text.line(f"y1[{at}] = order[i];")
    return kernel.kernel(chunk_count(product(x.shape) * 4, product(x.shape[:axis]) * product(x.shape[axis + 1 :])))


@register_solution
class UniqueSort(LoneOp):
    """Items are sorted; runs of equal ones are the results."""

    name = "unique sort"
    anchors = frozenset({"unique"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        module = problem.module
        (unique,) = module.instructions
        items = unique.result(2).shape[0]
        order, spare, first, counts = (steps.temporary(TensorType(INT64, (items,))) for _ in range(4))
        count = steps.temporary(TensorType(INT64, (1,)))
        self.call(problem, steps, _unique(module), writes=[steps.result(2), order, spare, first, counts, count])
        for name in dict.fromkeys(name for result in (0, 1, 3) for name, _ in steps.undefined(result)):
            steps.define(name, count)
        results = [steps.result(number) for number in (0, 1, 3)]
        self.call(problem, steps, _unique_results(module), [first, counts], results)


def _unique(module: Module) -> Kernel:
    """The sort. Results: inverse, order, spare, first, counts, count."""
    kernel = OpKernel(module, [INT64] * 6)
    op, text = op_of(kernel.instruction, Unique), kernel.text
    x = kernel.operand(0)
    storage, ctype = scalar.storage_type(x.dtype), scalar.compute_type(x.dtype)
    less = less_function(kernel, x.dtype)
    outer, items, inner = _item_sizes(kernel, op)
    before = kernel.function(
        "before",
        "bool (const void *context, int64 i, int64 j)",
        f"""
  const int64 *all = context; /* the elements; how many before, along and after the axis */
  const {storage} *x = (const {storage} *)all[0];
  for (int64 row = 0; row < all[1]; ++row)
    for (int64 k = 0; k < all[3]; ++k) {{
      {ctype} a = {scalar.load(x.dtype, "x", "(row * all[2] + i) * all[3] + k")};
      {ctype} b = {scalar.load(x.dtype, "x", "(row * all[2] + j) * all[3] + k")};
      if ({less}(a, b)) return true;
      if ({less}(b, a)) return false;
    }}
  return false;""",
    )
    text.line(f"const int64 all[4] = {{(int64){kernel.pointer(0)}, {outer}, {items}, {inner}}};")
    kernel.code(
        f"""
int64 *inverse = y0, *order = y1, *spare = y2, *first = y3, *counts = y4, found = 0;
sort_positions(order, spare, {items}, {before}, all);
for (int64 i = 0; i < {items}; ++i) {{
  if (i == 0 || {before}(all, order[i - 1], order[i])) {{
    first[found] = order[i];
    counts[found++] = 0;
  }}
  counts[found - 1]++;
  inverse[order[i]] = found - 1;
}}
y5[0] = found;"""
    )
    if not op.sorted:
        kernel.code(
            f"""
/* the runs by their first occurrence: spare[run] is the new number of a run */
int64 next = 0;
for (int64 i = 0; i < {items}; ++i)
  if (first[inverse[i]] == i) spare[inverse[i]] = next++;
for (int64 i = 0; i < {items}; ++i) inverse[i] = spare[inverse[i]];
for (int64 run = 0; run < found; ++run) order[spare[run]] = counts[run];
for (int64 run = 0; run < found; ++run) counts[run] = order[run];
for (int64 run = 0; run < found; ++run) order[spare[run]] = first[run];
for (int64 run = 0; run < found; ++run) first[run] = order[run];"""
        )
    return kernel.kernel(1)


def _item_sizes(kernel: OpKernel, op: Unique) -> tuple[str, str, str]:
    """Elements before the axis, along it, and after it."""
    shape = kernel.operand(0).shape
    if op.axis is None:
        return "1", kernel.text.let("int64", kernel.count(shape)), "1"
    axis = normalize_axis(op.axis, len(shape))
    parts = (shape[:axis], shape[axis : axis + 1], shape[axis + 1 :])
    outer, items, inner = (kernel.text.let("int64", kernel.count(part)) for part in parts)
    return outer, items, inner


def _unique_results(module: Module) -> Kernel:
    """Copies what was found. Temporaries: first, counts; results: values, first, counts."""
    x = module.parameters[0].result()
    kernel = OpKernel(module, [x.dtype, INT64, INT64], [INT64, INT64])
    outer, items, inner = _item_sizes(kernel, op_of(kernel.instruction, Unique))
    text = kernel.text
    found = text.let("int64", text.dim(kernel.instruction.result(1).shape[0]))
    with text.loop("i", "0", found):
        text.line("y1[i] = temporary0[i]; y2[i] = temporary1[i];")
        with text.loop("row", "0", outer), text.loop("k", "0", inner):
            value = kernel.load(0, f"(row * {items} + temporary0[i]) * {inner} + k")
            text.line(kernel.store(0, x.dtype, f"(row * {found} + i) * {inner} + k", value))
    return kernel.kernel(1)
