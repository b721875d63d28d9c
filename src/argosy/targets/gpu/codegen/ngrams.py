"""Kernels that count n-grams: a lane for each row and gram of the pool goes over the windows of the row."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.ir.dim import DimLike
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Instruction, Module
from argosy.ops.ngrams import CountNGrams
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen.element import Elements
from argosy.targets.gpu.codegen.faults import Fault
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.op_kernel import OpKernel
from argosy.targets.lowering.accesses import DeclinedError, axes_access, op_of, present

__all__ = ["count_kernel", "count_sizes", "weigh_kernel", "zero_kernel"]

_TOKENS, _POOL, _COLUMNS, _WEIGHTS = range(4)


def count_sizes(elements: Elements, instruction: Instruction) -> Sequence[Sequence[DimLike]]:
    """The dims of the result: as many columns as the greatest one asks for."""
    text, columns = elements.text, present(instruction, _COLUMNS)
    text.line("width = tl.full([], 0, tl.int64)")
    with text.block(f"for c in range(0, {text.dim(columns.shape[0])}):"), elements.scope():
        place = elements.of(columns, axes_access((), columns.shape, [elements.local("c + 0", 0)]))
        elements.fault(f"{place} < 0", Fault.INDEX, place)
        text.line(f"width = tl.maximum(width, {place}.to(tl.int64) + 1)")
    return [[*present(instruction, _TOKENS).shape[:-1], elements.local("width + 0", 0)]]


def zero_kernel(module: Module) -> Kernel:
    """Counts nothing yet."""
    writer = OpKernel(Module("zero", (), module.instructions, (), ()), [FLOAT32])
    writer.items(product(module.results[0].shape))
    writer.zeros("none", "tl.float32")
    writer.put("i", "none")
    return writer.finished()


def count_kernel(module: Module) -> list[Kernel]:
    """A kernel for each length of grams that adds what it finds to the counts."""
    op, pool = op_of(module.instructions[-1], CountNGrams), present(module.instructions[-1], _POOL)
    whole = pool.shape[0]
    if not isinstance(whole, int):
        raise DeclinedError("the size of the pool is known only when the program runs")
    found, before = [], 0
    for size, start in enumerate(op.starts, start=1):
        end = op.starts[size] if size < len(op.starts) else whole
        count = (end - start) // size
        if op.shortest <= size <= op.longest and count:
            found.append(_count(module, size, start, count, before))
        before += count
    return found


def _count(module: Module, size: int, start: int, count: int, before: int) -> Kernel:
    """Grams of `size` tokens: `count` of them from token `start` of the pool on; `before` grams have other sizes."""
    kernel = OpKernel(module, [FLOAT32])
    text, op, tokens = kernel.text, op_of(kernel.instruction, CountNGrams), kernel.operand(_TOKENS)
    kernel.items(product(tokens.shape[:-1]) * count)
    text.line(f"length, width = {kernel.dim(_TOKENS, tokens.rank - 1)}, {text.dim(module.results[0].shape[-1])}")
    text.line(f"row, gram = i // {count}, i % {count}")
    for place in range(size):
        text.line(f"g{place} = {kernel.load(_POOL, f'{start + place} + gram * {size}')}.to(tl.int64)")
    # of equal grams the first one counts
    text.line("first = inside")
    with text.block(f"for other in range(0, {count}):"):
        same = [kernel.load(_POOL, f"{start + place} + (other + i * 0) * {size}") for place in range(size)]
        equal = " & ".join(f"({name}.to(tl.int64) == g{place})" for place, name in enumerate(same))
        text.line(f"first = first & (({equal} & (other < gram)) == 0)")
    kernel.zeros("total", "tl.float32")
    skips = f"tl.minimum({op.skips}, length + 0)" if size > 1 else "0"
    with (
        text.block(f"for skip in range(0, {skips} + 1):"),
        text.block(f"for at in range(0, length - (skip + 1) * {size - 1}):"),
    ):
        seen = [kernel.load(_TOKENS, f"row * length + at + {place} * (skip + 1)") for place in range(size)]
        equal = " & ".join(f"({name}.to(tl.int64) == g{place})" for place, name in enumerate(seen))
        text.line(f"total = total + ({equal}).to(tl.float32)")
    column = kernel.load(_COLUMNS, f"{before} + gram")
    text.line(f"tl.atomic_add({kernel.result()} + row * width + {column}, total, mask=first & (total > 0))")
    return kernel.finished()


def weigh_kernel(module: Module) -> Kernel:
    """The result from the counts, its temporary."""
    kernel = OpKernel(module, temporaries=[FLOAT32])
    text, op = kernel.text, op_of(kernel.instruction, CountNGrams)
    kernel.items(product(module.results[0].shape))
    text.line(f"value = {kernel.load_temporary(0, 'i')}")
    if op.mode == "IDF":
        text.line("value = tl.minimum(value, 1.0)")
    if op.mode != "TF" and kernel.has(_WEIGHTS):
        kernel.zeros("scale", "tl.float32")
        text.line(f"column = i % {text.dim(module.results[0].shape[-1])}")
        with text.block(f"for c in range(0, {kernel.dim(_COLUMNS, 0)}):"):
            own, weight = (kernel.load(index, "c + i * 0") for index in (_COLUMNS, _WEIGHTS))
            text.line(f"scale = tl.where({own} == column, {weight}, scale)")
        text.line("value = value * scale")
    kernel.put("i", "value")
    return kernel.finished()
