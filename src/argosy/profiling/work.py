"""How much arithmetic a program does, and what its instructions and the kernels of a plan do and move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from argosy.artifact.plan import LaunchStep, Size
from argosy.errors import ModelError
from argosy.ir.dim import DimLike, evaluate
from argosy.ir.module import Instruction, Value
from argosy.ir.program import Program
from argosy.ir.types import TensorType
from argosy.ops.arithmetic import products_of
from argosy.ops.control import If, Loop, Scan
from argosy.ops.einsum import Einsum
from argosy.ops.reading import Count, elements, elements_read
from argosy.passes import NORMALISE
from argosy.passes.manager import PassManager
from argosy.runtime.nodes import KernelCall

__all__ = ["Work", "operations", "operations_by_type", "work_of"]


@dataclass(frozen=True, slots=True)
class Work:
    """What one execution does: multiplications and additions of products by element type, and bytes of its tensors.

    `operations` is None where sizes or ways are open. `bytes` are those of what it reads and of what it writes, each
    buffer once, the least that it moves; None where it may leave elements out, and where sizes are open.
    """

    operations: Mapping[str, int] | None
    bytes: int | None


def operations(program: Program) -> int | None:
    """Multiplications and additions of products, convolutions and recurrences; None where sizes or ways are open."""
    found = operations_by_type(program)
    return None if found is None else sum(found.values())


def operations_by_type(program: Program) -> Mapping[str, int] | None:
    """`operations` by element type of the first operand."""
    total: Counter[str] = Counter()
    for instruction in PassManager((NORMALISE,)).run(program.main).instructions:
        found = None if isinstance(instruction.op, If | Loop | Scan) else _operations(instruction, {})
        if found is None:
            return None
        total.update(found)
    return dict(total)


def work_of(instruction: Instruction, sizes: Mapping[str, int], dim: Callable[[str], DimLike]) -> Work:
    """The work of an instruction, or of a kernel that one stands for, at these sizes by symbol.

    `dim` parses the sizes of the plan that the kernel is of.
    """
    if isinstance(instruction.op, KernelCall):
        return _kernel_work(instruction, instruction.op, sizes, dim)
    counts = elements_read(instruction, [elements(value) for value in instruction.results])
    touched = [(value, value, count) for value, count in zip(instruction.operands, counts, strict=True)]
    touched += [(value, value, elements(value)) for value in instruction.results]
    return Work(_operations(instruction, sizes), _bytes(touched, sizes))


def _kernel_work(
    instruction: Instruction, kernel: KernelCall, sizes: Mapping[str, int], dim: Callable[[str], DimLike]
) -> Work:
    """The work of a kernel, as its step tells it. Code that is older than the schema's 0.3 tells nothing."""

    def number(size: Size) -> int:
        return size if isinstance(size, int) else evaluate(dim(size), sizes)

    step = kernel.step
    try:
        if 0 in map(number, step.grid if isinstance(step, LaunchStep) else (step.chunks,)):
            return Work({}, 0)
        found = {kind: number(size) for kind, size in step.operations.items()}
    except ModelError:  # a size that only the run knows
        return Work(None, None)
    if not step.whole:
        return Work(found, None)
    numbers, values = (*step.reads, *step.writes), (*instruction.operands, *instruction.results)
    parts = [dim(part) if isinstance(part, str) else part for part in step.parts] or [None] * len(numbers)
    touched = [
        ((place < len(step.reads), number), value, elements(value) if part is None and value is not None else part)
        for place, (number, value, part) in enumerate(zip(numbers, values, parts, strict=True))
    ]
    return Work(found, _bytes(touched, sizes))


def _operations(instruction: Instruction, sizes: Mapping[str, int]) -> Mapping[str, int] | None:
    products = None if isinstance(instruction.op, Einsum) else products_of(instruction)
    if products is None:
        return None
    total: Counter[str] = Counter()
    for product in products:
        try:
            total[product.operands[0].dtype.name] += evaluate(product.operations, sizes)
        except ModelError:  # a size that only the run knows
            return None
    return dict(total)


def _bytes(touched: Iterable[tuple[object, Value | None, Count]], sizes: Mapping[str, int]) -> int | None:
    """Bytes of values, with how many of their elements are touched. What is the same is not read twice."""
    found: dict[object, tuple[Value, Count]] = {}
    for same, value, count in touched:
        if value is not None:
            found[same] = (value, count if same not in found else elements(value))
    total = 0
    for value, count in found.values():
        if count is None or not isinstance(value.type, TensorType):
            return None
        try:
            total += value.dtype.byte_size(evaluate(count, sizes))
        except ModelError:  # a size that only the run knows
            return None
    return total
