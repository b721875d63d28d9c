"""Tensors between fused ops are stored in a short float.

    y = fused { …: float32 }        y = fused { convert(…): float16 }
    z = fused { x: float32 … }      z = fused { convert(x): float32 … }

Kernels compute in float32 all the same; half as many bytes go to memory and back. What leaves the module keeps its
type, and so do results of reductions, which are small and sums, and what an op reads that is not fused.
"""

from __future__ import annotations

from dataclasses import dataclass

from argosy.ir.builder import Builder
from argosy.ir.dtype import FLOAT32, DType, dtype
from argosy.ir.module import Constant, Instruction, Module, Parameter, Value
from argosy.ir.types import TensorType
from argosy.ops.fused import Fused
from argosy.ops.pointwise import Pointwise
from argosy.passes.manager import PassContext, register_pass

__all__ = ["StoreShort"]

_KEPT = frozenset({"reduce", "arg_reduce"})


@register_pass
@dataclass(frozen=True, slots=True)
class StoreShort:
    """Store what one fused op gives to others as the element type called `element`."""

    name = "store_short"
    element: str = "float16"

    def run(self, module: Module, context: PassContext) -> Module:
        """The module with its intermediate tensors of float32 stored short."""
        del context
        kind = dtype(self.element)
        readers: dict[Instruction, list[Instruction]] = {}
        for instruction in module.instructions:
            for operand in instruction.operands:
                if operand is not None:
                    readers.setdefault(operand.instruction, []).append(instruction)
        leaving = {value.instruction for value in module.results}
        short = {
            instruction
            for instruction in module.instructions
            if _may_be_short(instruction)
            and instruction not in leaving
            and readers.get(instruction)
            and all(isinstance(reader.op, Fused) for reader in readers[instruction])
        }
        if not short:
            return module
        return _Rewriter(module, short, kind).run()


def _may_be_short(instruction: Instruction) -> bool:
    op = instruction.op
    if not isinstance(op, Fused):  # others may have no result at all
        return False
    result = instruction.types[0]
    if not isinstance(result, TensorType) or result.dtype is not FLOAT32:
        return False
    if not result.dims or len(result.dims) < 2:
        return False
    made = op.module.results[0].instruction
    while made.op.name in ("reshape", "squeeze", "unsqueeze", "transpose") and made.operands[0] is not None:
        made = made.operands[0].instruction
    return made.op.name not in _KEPT


class _Rewriter:
    """Writes the module anew; `short` instructions give tensors of the short type."""

    def __init__(self, module: Module, short: set[Instruction], kind: DType) -> None:
        self._module = module
        self._short = short
        self._kind = kind
        self._builder = Builder(module.name)
        self._values: dict[Value, Value] = {}

    def run(self) -> Module:
        builder = self._builder
        for parameter in self._module.parameters:
            self._values[parameter.result()] = builder.adopt(parameter)
        for instruction in self._module.instructions:
            operands = [None if operand is None else self._values[operand] for operand in instruction.operands]
            if isinstance(instruction.op, Fused):
                made = self._fused(instruction, instruction.op, operands)
                self._values[instruction.result()] = made
                continue
            for old, new in zip(instruction.results, builder.keep(instruction, operands), strict=True):
                self._values[old] = new
        results = [self._values[value] for value in self._module.results]
        return builder.module(list(zip(self._module.result_names, results, strict=True)))

    def _fused(self, instruction: Instruction, op: Fused, operands: list[Value | None]) -> Value:
        """The fused op with its parameters as they are stored now, and its result converted where that is short."""
        inner = Builder(op.module.name).at(instruction.source)
        values: dict[Value, Value] = {}
        own: list[Instruction] = []
        for parameter, operand in zip(op.module.parameters, operands, strict=True):
            old = parameter.result()
            if operand is not None and operand.dtype is not old.dtype:
                given = inner.parameter(parameter.names[0], operand.type)
                values[old] = inner.convert(given, old.dtype)
            else:
                given = values[old] = inner.adopt(parameter)
            own.append(given.instruction)
        for each in op.module.instructions:
            values.update(zip(each.results, self._kept(inner, each, values), strict=True))
        result = values[op.module.results[0]]
        if instruction in self._short:
            result = _converted(inner, result, self._kind)
        source = result.instruction
        if isinstance(source.op, Parameter):  # nothing is left to do
            found = operands[own.index(source)]
            if found is not None:
                return found
        module = inner.module([("y", result)])
        names, where = instruction.names, instruction.source
        return self._builder.add(Fused(module), *operands, names=names, source=where)

    def _kept(self, inner: Builder, each: Instruction, values: dict[Value, Value]) -> list[Value]:
        operands = [None if operand is None else values[operand] for operand in each.operands]
        if _is_conversion(each) and operands[0] is not None:
            return [_converted(inner, operands[0], each.result().dtype)]
        return list(inner.keep(each, operands))


def _is_conversion(instruction: Instruction) -> bool:
    op = instruction.op
    return isinstance(op, Pointwise) and [step.primitive for step in op.formula.steps] == ["convert"]


def _converted(builder: Builder, value: Value, kind: DType) -> Value:
    """A value in another element type; back to the one that it was widened from, it is that again."""
    made = value.instruction
    source = made.operands[0] if _is_conversion(made) else None
    if source is not None and source.dtype is kind and value.dtype.is_float and value.dtype.bits > kind.bits:
        return source
    if isinstance(made.op, Constant) and value.constant is not None and value.constant.size != 1:
        return builder.convert(value, kind)
    return value if value.dtype is kind else builder.convert(value, kind)
