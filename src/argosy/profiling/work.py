"""How much arithmetic a model does, what its instructions move, and how much a device could do at most.

Formulas: a multiplication and an addition are two operations, so a product of [m, k] and [k, n] does 2 m n k (Golub and
Van Loan, Matrix Computations, 1.1); a convolution is such a product over windows, by its definition in the ONNX
standard; a recurrent layer does two products for each gate and step, by the same standard. What way a kernel goes is
another matter: fast convolutions do fewer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Final

from argosy.artifact.manifest import VariantRecord
from argosy.errors import ModelError, UsageError
from argosy.ir.dim import evaluate
from argosy.ir.module import Instruction, Value
from argosy.ir.program import Program
from argosy.ir.types import TensorType
from argosy.ops.control import If, Loop, Scan
from argosy.ops.convolution import Conv, ConvTranspose
from argosy.ops.einsum import Einsum
from argosy.ops.matmul import Dot
from argosy.ops.recurrent import GATES, Recurrent
from argosy.passes import NORMALISE
from argosy.passes.manager import PassManager
from argosy.targets.gpu.target import GpuTarget

__all__ = ["instruction_bytes", "instruction_operations", "least_seconds", "operations", "operations_by_type"]

_WHOLE: Final = frozenset(
    {"dot", "pointwise", "reduce", "softmax", "arg_reduce", "cumulative", "quantize", "dequantize"}
)
"""Ops that need every element of their operands, and store every one of their results."""
_PEAKS: Final = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "int8": "int8",
    "uint8": "int8",
}
"""Element types as the rows of products call them."""


def operations(program: Program) -> int | None:
    """Multiplications and additions of products, convolutions and recurrences; None where sizes or ways are open."""
    found = operations_by_type(program)
    return None if found is None else sum(found.values())


def operations_by_type(program: Program) -> Mapping[str, int] | None:
    """`operations` by element type of the first operand."""
    total: Counter[str] = Counter()
    for instruction in PassManager((NORMALISE,)).run(program.main).instructions:
        if isinstance(instruction.op, If | Loop | Scan | Einsum):
            return None
        if not isinstance(instruction.op, Conv | ConvTranspose | Dot | Recurrent):
            continue
        found = instruction_operations(instruction, {})
        first = instruction.operands[0]
        if found is None or first is None:
            return None
        total[first.dtype.name] += found
    return dict(total)


def instruction_operations(instruction: Instruction, sizes: Mapping[str, int]) -> int | None:
    """Multiplications and additions of a product, convolution or recurrent layer at these sizes by symbol.

    None for other ops, and where sizes are open.
    """
    op = instruction.op
    if not isinstance(op, Conv | ConvTranspose | Dot | Recurrent):
        return None
    shapes = [_shape(value, sizes) for value in (*instruction.operands[:2], instruction.result())]
    first, second, result = shapes
    if first is None or second is None or result is None:
        return None
    match op:
        case Conv():
            return 2 * math.prod(result) * math.prod(second[1:])
        case ConvTranspose():
            return 2 * math.prod(first) * math.prod(second[1:])
        case Dot():
            return 2 * math.prod(result) * first[-1]
        case _:
            directions, rows, width = second
            hidden = rows // GATES[op.kind]
            return 2 * first[0] * first[1] * directions * rows * (width + hidden)


def instruction_bytes(instruction: Instruction, sizes: Mapping[str, int]) -> int | None:
    """Bytes of the operands and results of an op that needs all of them, each once: the least that it moves.

    This is the traffic of the roofline model (Williams, Waterman and Patterson, CACM 52(4), 2009). None for ops that
    may leave elements out, and where sizes are open.
    """
    if instruction.op.name not in _WHOLE:
        return None
    total = 0
    for value in (*dict.fromkeys(value for value in instruction.operands if value is not None), *instruction.results):
        shape = _shape(value, sizes)
        if shape is None:
            return None
        total += value.dtype.byte_size(math.prod(shape))
    return total


def least_seconds(work: Mapping[str, int], variant: VariantRecord) -> tuple[float, str] | None:
    """Seconds that operations by type take at the dense peaks of the product that a variant is for, and its name.

    The variant's precision takes the place of float32. None where the row of the arch has no peak for a type: it has
    none for CPUs, whose clocks differ.
    """
    try:
        target = GpuTarget.for_variant(variant)
    except UsageError:  # a product that a newer version knows
        return None
    if not isinstance(target, GpuTarget) or not work:
        return None
    product, total = target.row.product, 0.0
    for dtype, count in work.items():
        kind = _PEAKS.get(dtype, "")
        if kind == "fp32":
            precision = str(variant.numeric.get("precision", "fp32"))
            kind = "tf32" if precision == "fp32" and variant.numeric.get("allow_tf32") else precision
        peak = product.peak(kind)
        if peak is None:
            return None
        total += count / peak
    return total, product.words


def _shape(value: Value | None, sizes: Mapping[str, int]) -> tuple[int, ...] | None:
    if value is None or not isinstance(value.type, TensorType) or value.type.dims is None:
        return None
    try:
        return tuple(evaluate(dim, sizes) for dim in value.type.dims)
    except ModelError:  # a size that only the run knows
        return None
