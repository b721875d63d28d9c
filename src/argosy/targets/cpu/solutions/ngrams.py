"""Counting n-grams of numbers: the pool is sorted, every window of a sequence is looked up in it."""

from __future__ import annotations

from typing import Any

from argosy.ir.dim import DimLike
from argosy.ir.dtype import FLOAT32, INT64
from argosy.ir.module import Instruction, Module
from argosy.ir.types import TensorType
from argosy.ops.ngrams import CountNGrams
from argosy.targets.cpu.codegen.element import Elements
from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.cpu.codegen.op_kernel import OpKernel
from argosy.targets.cpu.lone_op import LoneOp
from argosy.targets.cpu.solution import Problem, Steps, register_solution
from argosy.targets.cpu.solutions.steered import define_sizes
from argosy.targets.lowering.accesses import axes_access, op_of, present

__all__ = ["NGramCounts"]

_TOKENS, _POOL, _COLUMNS, _WEIGHTS = range(4)


@register_solution
class NGramCounts(LoneOp):
    """For each length of grams a sort of the pool, then binary searches."""

    name = "n-gram counts"
    anchors = frozenset({"count_ngrams"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        define_sizes(problem, steps, _sizes)
        (count,) = problem.module.instructions
        columns = present(count, _COLUMNS).shape
        order, spare = (steps.temporary(TensorType(INT64, columns)) for _ in range(2))
        self.call(problem, steps, _count(problem.module), writes=[steps.result(), order, spare])


def _sizes(elements: Elements, instruction: Instruction) -> list[list[DimLike]]:
    text, columns = elements.text, present(instruction, _COLUMNS)
    text.line("int64 width = 0;")
    with text.loop("i", "0", text.dim(columns.shape[0])), elements.scope():
        place = elements.of(columns, axes_access((), columns.shape, [elements.local("i", 0)]))
        text.line(f"if ({place} < 0) argosy_fail(scratch, ARGOSY_INDEX, {place});")
        text.line(f"width = max_int64(width, (int64){place} + 1);")
    return [[*present(instruction, _TOKENS).shape[:-1], elements.local("width", 0)]]


def _count(module: Module) -> Kernel:
    kernel = OpKernel(module, [FLOAT32, INT64, INT64])
    text, op = kernel.text, op_of(kernel.instruction, CountNGrams)
    tokens, result = kernel.operand(_TOKENS), kernel.instruction.result()
    storage = kernel.operand(_POOL).dtype
    before = kernel.function(
        "before",
        "bool (const void *context, int64 i, int64 j)",
        f"""
  const int64 *grams = context; /* where they begin, and how long each is */
  const {storage} *a = (const {storage} *)grams[0] + i * grams[1], *b = (const {storage} *)grams[0] + j * grams[1];
  for (int64 k = 0; k < grams[1]; ++k)
    if (a[k] != b[k]) return a[k] < b[k];
  return false;""",
    )
    length, width = (
        text.let("int64", kernel.dim(_TOKENS, tokens.rank - 1)),
        text.let("int64", text.dim(result.shape[-1])),
    )
    rows = text.let("int64", kernel.count(tokens.shape[:-1]))
    text.line(f"for (int64 i = 0; i < {rows} * {width}; ++i) y0[i] = 0;")
    text.line("int64 first_gram = 0;")
    pool_end = text.let("int64", kernel.dim(_POOL, 0))
    for size, start in enumerate(op.starts, start=1):
        end = str(op.starts[size]) if size < len(op.starts) else pool_end
        skips = op.skips if size > 1 else 0
        with text.block(""):
            text.line(f"const int64 count = ({end} - {start}) / {size};")
            if op.shortest <= size <= op.longest:
                kernel.code(
                    f"""
const int64 grams[2] = {{(int64)({kernel.pointer(_POOL)} + {start}), {size}}};
const {storage} *pool = (const {storage} *)grams[0];
sort_positions(y1, y2, count, {before}, grams);
for (int64 row = 0; row < {rows}; ++row)
  for (int64 stride = 1; stride <= {skips + 1} && stride <= max_int64({length}, 1); ++stride)
    for (int64 at = 0; at + stride * {size - 1} < {length}; ++at) {{
      int64 low = 0, high = count; /* the first gram that is not less than the window */
      while (low < high) {{
        const int64 middle = low + (high - low) / 2;
        const {storage} *gram = pool + y1[middle] * {size};
        int64 k = 0;
        while (k < {size - 1} && (int64)gram[k] == {_token(kernel, length, "k")}) ++k;
        if ((int64)gram[k] < {_token(kernel, length, "k")}) low = middle + 1; else high = middle;
      }}
      bool found = low < count;
      for (int64 k = 0; k < {size} && found; ++k)
        found = (int64)pool[y1[low] * {size} + k] == {_token(kernel, length, "k")};
      if (found) y0[row * {width} + (int64){kernel.load(_COLUMNS, "(first_gram + y1[low])")}] += 1;
    }}"""
                )
            text.line("first_gram += count;")
    if op.mode == "IDF":
        text.line(f"for (int64 i = 0; i < {rows} * {width}; ++i) y0[i] = y0[i] > 1 ? 1 : y0[i];")
    if op.mode != "TF" and kernel.has(_WEIGHTS):
        with text.loop("column", "0", width):
            text.line("float32 scale = 0;")
            with text.loop("i", "0", kernel.dim(_COLUMNS, 0)):
                text.line(f"if ({kernel.load(_COLUMNS, 'i')} == column) scale = {kernel.load(_WEIGHTS, 'i')};")
            text.line(f"for (int64 row = 0; row < {rows}; ++row) y0[row * {width} + column] *= scale;")
    return kernel.kernel(1)


def _token(kernel: OpKernel, length: str, place: str) -> str:
    return f"(int64){kernel.load(_TOKENS, f'(row * {length} + at + {place} * stride)')}"
