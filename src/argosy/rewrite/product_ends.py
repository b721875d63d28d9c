"""Where what is computed behind a product ends when a view comes next: there the product's own kernel stores it.

Element by element over the product's result, one reader each, it is a chain. Past a view no product can take it; so the
kernel ends at the last place of the chain where its elements are shortest, and others begin with the rest.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from argosy.ir.dim import equal
from argosy.ir.module import Instruction, Module
from argosy.ir.types import TensorType

__all__ = ["product_ends"]

_PRODUCTS: Final = frozenset({"dot", "conv", "conv_transpose"})
_STEPS: Final = frozenset({"pointwise", "quantize", "dequantize"})


def product_ends(module: Module, views: Collection[str]) -> frozenset[Instruction]:
    """The last instruction of the kernel of each product whose chain ends before one of `views`."""
    readers: dict[Instruction, list[Instruction]] = {}
    for instruction in module.instructions:
        for operand in instruction.operands:
            if operand is not None:
                readers.setdefault(operand.instruction, []).append(instruction)
    leaving = {value.instruction for value in module.results}
    found: set[Instruction] = set()
    for product in module.instructions:
        if product.op.name not in _PRODUCTS:
            continue
        chain: list[Instruction] = []
        last = product
        while last not in leaving and len(set(readers.get(last, ()))) == 1:
            (reader,) = set(readers[last])
            if reader.op.name in views and chain:
                found.add(min(reversed(chain), key=_bits))
            if reader.op.name not in _STEPS or not _same(reader, product):
                break
            chain.append(reader)
            last = reader
    return frozenset(found)


def _bits(instruction: Instruction) -> int:
    kind = instruction.types[0]
    return kind.dtype.bits if isinstance(kind, TensorType) else 0


def _same(left: Instruction, right: Instruction) -> bool:
    a, b = left.types[0], right.types[0]
    if not isinstance(a, TensorType) or not isinstance(b, TensorType) or a.dims is None or b.dims is None:
        return False
    return len(a.dims) == len(b.dims) and all(equal(x, y) for x, y in zip(a.dims, b.dims, strict=True))
