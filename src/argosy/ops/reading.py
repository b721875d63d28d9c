"""How many elements of its operands an op needs for those of its results that somebody reads, by what it means.

It is the least that code reads: a gather takes the rows that its indices name, not the table, a convolution of 1 x 1
with stride 2 a quarter of an image. Parts that overlap count each, up to the whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from argosy.ir.dim import DimLike, dim_max, dim_min, equal
from argosy.ir.module import Instruction, Module, Value
from argosy.ir.types import Dims, TensorType
from argosy.ops.convolution import Conv
from argosy.ops.fused import Fused
from argosy.ops.pooling import Pool
from argosy.ops.resize import Resize
from argosy.ops.sampling import GridSample
from argosy.ops.shapes import product
from argosy.ops.slicing import Pad

__all__ = ["Count", "elements", "elements_read", "module_reads"]

Count: TypeAlias = DimLike | None
"""A number of elements; None where it is not known."""

_ALL: Final = frozenset({
    "arg_reduce", "bit_cast", "col2im", "conv_transpose", "cumulative", "dequantize", "determinant", "dft", "dot",
    "einsum", "mel_weights", "non_max_suppression", "nonzero", "one_hot", "quantize", "random", "range", "reduce",
    "require", "reverse_sequence", "rnn", "scatter_elements", "scatter_nd", "softmax", "topk", "triangle", "unique",
})  # fmt: skip
"""Ops that need every element of their operands."""
_EACH_ONE: Final = frozenset({
    "broadcast", "concat", "constant", "frames", "pointwise", "reshape", "split", "squeeze", "tile", "transpose",
    "unsqueeze",
})  # fmt: skip
"""Ops that need of each operand an element for each that they give, or all where it has fewer."""
_TAKES: Final = frozenset({"compress", "gather", "gather_elements", "gather_nd", "slice"})
"""Ops that need of their first operand an element for each that they give, and all of what says which."""
_SIZES_ALONE: Final = frozenset({"dims", "shape"})
"""Ops that need of their operands nothing but their sizes."""
_TAPS: Final = {"nearest": 1, "linear": 2, "cubic": 4}
"""Neighbours on an axis from which an element between them is made."""


def elements(value: Value) -> Count:
    """All elements of a value."""
    return product(value.type.dims) if isinstance(value.type, TensorType) and value.type.dims is not None else None


def module_reads(module: Module, results: Collection[int]) -> list[Count]:
    """How many elements a module needs of each parameter for these of its results, by index."""
    return _reads(module, [elements(value) if index in results else 0 for index, value in enumerate(module.results)])


def elements_read(instruction: Instruction, given: Sequence[Count]) -> list[Count]:
    """How many elements an instruction needs of each operand, where `given` are read of each of its results."""
    op = instruction.op
    wholes = [0 if operand is None else elements(operand) for operand in instruction.operands]
    if isinstance(op, Fused):
        reads = iter(_reads(op.module, given))
        return [0 if operand is None else next(reads) for operand in instruction.operands]
    if op.name in _SIZES_ALONE:
        return [0] * len(wholes)
    if op.name in _ALL:
        return wholes
    if op.name in _EACH_ONE:
        return [_least(whole, _sum(given)) for whole in wholes]
    x = instruction.operands[0] if instruction.operands else None
    if x is None or not isinstance(x.type, TensorType) or x.type.dims is None or wholes[0] is None:
        return [None] * len(wholes)
    return [_of_first(instruction, x.type.dims, wholes[0], given), *wholes[1:]]


def _of_first(instruction: Instruction, sizes: Dims, whole: DimLike, given: Sequence[Count]) -> Count:
    """How many elements are needed of the first operand, of these `sizes`."""
    op, result = instruction.op, instruction.types[0]
    if op.name in _TAKES:
        return _least(whole, _sum(given))
    if not isinstance(result, TensorType) or result.dims is None:
        return None
    match op:
        case Pad():
            kept = op.kept(*instruction.operands)
            return None if kept is None else _least(whole, product(kept))
        case Conv() | Pool():
            weight = instruction.operands[1] if isinstance(op, Conv) else None
            kernel = op.kernel if isinstance(op, Pool) else weight.shape[2:] if weight is not None else ()
            return product((*sizes[:2], *_covered(op, sizes[2:], result.dims[2:], kernel)))
        case Resize():
            if op.antialias:
                return whole
            taps = _TAPS[op.mode]
            return product(tuple(_smaller(size, count * taps) for size, count in zip(sizes, result.dims, strict=True)))
        case GridSample():
            count = _sum(given)
            return None if count is None else _smaller(whole, count * _TAPS[op.mode] ** (len(sizes) - 2))
    return None


def _covered(op: Conv | Pool, sizes: Dims, counts: Dims, kernel: Dims) -> Iterator[DimLike]:
    """How many places windows touch on each axis: all where no gap is between them, borders aside."""
    for size, count, width, stride, dilation in zip(sizes, counts, kernel, op.strides, op.dilations, strict=True):
        is_dense = stride == 1 or (dilation == 1 and isinstance(width, int) and stride <= width)
        yield size if is_dense else _smaller(size, count * width)


def _reads(module: Module, given: Sequence[Count]) -> list[Count]:
    """How many elements a module needs of each parameter, where `given` are read of each of its results.

    They are counted by what takes a part: what several ops read of the same part, element by element, counts once.
    """
    read: dict[Value, dict[object, Count]] = {}

    def add(value: Value, part: object, count: Count) -> None:
        parts = read.setdefault(value, {})
        parts[part] = _least(elements(value), count if part not in parts else _greater(parts[part], count))

    def total(value: Value) -> Count:
        return _least(elements(value), _sum(read.get(value, {}).values()))

    for value, count in zip(module.results, given, strict=True):
        add(value, "whole", count)
    for instruction in reversed(module.instructions):
        wanted = [total(value) for value in instruction.results]
        if all(count == 0 for count in wanted):
            continue
        if instruction.op.name in _EACH_ONE:
            parts = [pair for value in instruction.results for pair in read.get(value, {}).items()]
            if len(instruction.results) > 1:
                parts = [((instruction, place), count) for place, count in enumerate(wanted)]
            for present in filter(None, instruction.operands):
                for part, count in parts:
                    add(present, part, count)
            continue
        for place, (operand, count) in enumerate(
            zip(instruction.operands, elements_read(instruction, wanted), strict=True)
        ):
            if operand is not None:
                add(operand, (instruction, place), count)
    return [total(parameter.result()) for parameter in module.parameters]


def _sum(counts: Iterable[Count]) -> Count:
    total: DimLike = 0
    for count in counts:
        if count is None:
            return None
        total = total + count
    return total


def _greater(left: Count, right: Count) -> Count:
    return None if left is None or right is None else dim_max(left, right)


def _least(whole: Count, count: Count) -> Count:
    return None if whole is None or count is None else _smaller(whole, count)


def _smaller(whole: DimLike, count: DimLike) -> DimLike:
    return whole if equal(whole, count) else dim_min(whole, count)
