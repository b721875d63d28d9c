"""Products of one operand with several weights become one product.

    dot(x, w0) + b0, dot(x, w1) + b1   =   split(dot(x, concat(w0, w1)) + concat(b0, b1))

One product fills a device where several small ones would not, and reads `x` once. Weights are matrices with as many
rows; a bias of one element to a column, where each product is read by the addition of one alone, goes along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.ir.builder import Builder
from argosy.ir.module import Constant, Instruction, Module, Value
from argosy.ir.types import TensorType
from argosy.ops.joining import Concat, Split
from argosy.ops.matmul import Dot
from argosy.ops.pointwise import Pointwise
from argosy.passes.manager import PassContext, register_pass

__all__ = ["MergeProducts"]


@dataclass(frozen=True, slots=True)
class _Branch:
    """A product, and the addition of a bias behind it where there is one: what is read of both."""

    product: Instruction
    bias: Value | None
    end: Instruction


@register_pass
@dataclass(frozen=True, slots=True)
class MergeProducts:
    """Merge products with weights of one operand; those with the most columns are `most` times as wide at most."""

    name = "merge_products"
    most: int = 4

    def run(self, module: Module, context: PassContext) -> Module:
        """The module with its products merged."""
        del context
        groups = self._groups(module)
        if not groups:
            return module
        return _Rewriter(module, groups).run()

    def _groups(self, module: Module) -> list[list[_Branch]]:
        readers: dict[Instruction, list[Instruction]] = {}
        for instruction in module.instructions:
            for operand in instruction.operands:
                if operand is not None:
                    readers.setdefault(operand.instruction, []).append(instruction)
        results = {value.instruction for value in module.results}
        found: dict[tuple[object, ...], list[_Branch]] = {}
        for instruction in module.instructions:
            key = _key(instruction)
            if key is not None:
                bias, end = _bias(instruction, readers.get(instruction, ()), results)
                found.setdefault((*key, bias is not None), []).append(_Branch(instruction, bias, end))
        return [group for group in found.values() if len(group) > 1 and self._is_even(group)]

    def _is_even(self, group: Sequence[_Branch]) -> bool:
        sizes = [branch.product.result().shape[-1] for branch in group]
        numbers = [size for size in sizes if isinstance(size, int)]
        return len(numbers) == len(sizes) and max(numbers) <= self.most * min(numbers)


def _key(instruction: Instruction) -> tuple[object, ...] | None:
    """What products must have in common; None for other ops and other operands."""
    op = instruction.op
    if not isinstance(op, Dot) or None in instruction.operands:
        return None
    left, right = instruction.operands
    if left is None or right is None or not _is_weight(right) or right.rank != 2 or left.rank < 2:
        return None
    return left, right.shape[0], right.dtype, op


def _is_weight(value: Value) -> bool:
    """Whether it is a constant, or a constant in another element type."""
    made = value.instruction
    if isinstance(made.op, Pointwise) and len(made.operands) == 1 and made.operands[0] is not None:
        made = made.operands[0].instruction
    return isinstance(made.op, Constant)


def _bias(
    product: Instruction, readers: Sequence[Instruction], results: set[Instruction]
) -> tuple[Value | None, Instruction]:
    """The bias that is added to a product, and the addition; None and the product itself where there is none."""
    if len(readers) != 1 or product in results:
        return None, product
    added = readers[0]
    if not isinstance(added.op, Pointwise) or added.op.formula.primitive != "add" or len(added.operands) != 2:
        return None, product
    others = [operand for operand in added.operands if operand is not None and operand.instruction is not product]
    kind = added.types[0]
    if len(others) != 1 or not isinstance(others[0].instruction.op, Constant) or not isinstance(kind, TensorType):
        return None, product
    bias = others[0]
    columns = product.result().shape[-1]
    if bias.shape != (columns,) or kind.dims != product.result().shape or bias.dtype is not kind.dtype:
        return None, product
    return bias, added


class _Rewriter:
    """Writes the module anew: a merged product in the place of the last of its own."""

    def __init__(self, module: Module, groups: Sequence[Sequence[_Branch]]) -> None:
        self._module = module
        self._builder = Builder(module.name)
        self._values: dict[Value, Value] = {}
        places = {instruction: place for place, instruction in enumerate(module.instructions)}
        self._merged: dict[Instruction, Sequence[_Branch]] = {}
        self._gone: set[Instruction] = set()
        for group in groups:
            # Where the first is needed: all that they read lies before, for weights and biases are constants.
            first = min((branch.product for branch in group), key=places.__getitem__)
            self._merged[first] = group
            self._gone |= {each for branch in group for each in (branch.product, branch.end)}

    def run(self) -> Module:
        builder, module = self._builder, self._module
        for parameter in module.parameters:
            self._values[parameter.result()] = builder.adopt(parameter)
        for instruction in module.instructions:
            if instruction in self._merged:
                self._merge(self._merged[instruction])
            elif instruction not in self._gone and not self._is_there(instruction):
                operands = [None if operand is None else self._value(operand) for operand in instruction.operands]
                for old, new in zip(instruction.results, builder.keep(instruction, operands), strict=True):
                    self._values[old] = new
        results = [self._value(value) for value in module.results]
        return builder.module(list(zip(module.result_names, results, strict=True)))

    def _is_there(self, instruction: Instruction) -> bool:
        """Whether a merged product needed an instruction before its place."""
        return bool(instruction.types) and instruction.results[0] in self._values

    def _value(self, value: Value) -> Value:
        """A value in the new module; a constant, or a conversion of one, also before its place."""
        found = self._values.get(value)
        if found is None:
            made = value.instruction
            operands = [None if operand is None else self._value(operand) for operand in made.operands]
            self._values.update(zip(made.results, self._builder.keep(made, operands), strict=True))
            found = self._values[value]
        return found

    def _merge(self, group: Sequence[_Branch]) -> None:
        builder, first = self._builder, group[0]
        left = first.product.operands[0]
        weights = [branch.product.operands[1] for branch in group]
        source = first.product.source
        joined = builder.add(Concat(1), *(self._value(w) for w in weights if w is not None), source=source)
        total = builder.add(first.product.op, self._value(left) if left is not None else None, joined, source=source)
        biases = [branch.bias for branch in group if branch.bias is not None]
        if len(biases) == len(group):
            bias = builder.add(Concat(0), *(self._value(each) for each in biases), source=source)
            total = builder.add(first.end.op, total, bias, source=source)
        sizes = tuple(branch.product.result().shape[-1] for branch in group)
        pieces = builder.add_all(Split(total.rank - 1, len(group), sizes), total, source=source)
        for branch, piece in zip(group, pieces, strict=True):
            self._values[branch.end.result()] = piece
