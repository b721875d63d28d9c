"""The true values of a model's nodes: what a part of the model is to be fed with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import onnx

from argosy.debugging.reduction.case import Case
from argosy.frontends.onnx import load
from argosy.ir.interpreter import Interpreter
from argosy.ir.module import Constant, Instruction, Module, Value
from argosy.ir.op import Env
from argosy.ir.types import TensorType, Type

__all__ = ["Captured", "capture"]

_SHORT: Final = 64
"""Elements of a shape or list of axes; more are data."""


@dataclass(frozen=True, slots=True)
class Captured:
    """A value, its type, and whether it is fixed: the same for all inputs of these shapes.

    A part of the model gets a fixed value as an initializer, for nodes that need to know it early.
    """

    value: Any
    kind: Type
    fixed: bool


def capture(case: Case, names: Iterable[str]) -> dict[str, Captured]:
    """The values called `names`, as the reference computes them. Raises what reading or evaluating the model raises."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    model.graph.ClearField("output")
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    program = load(model)
    values = Interpreter(program.main).run([case.inputs[name] for name in program.inputs], Env({}, 0))
    constant = _constants(program.main)
    return {
        name: Captured(value, result.type, _is_fixed(result, constant))
        for name, result, value in zip(program.main.result_names, program.main.results, values, strict=True)
    }


def _is_fixed(result: Value, constant: set[Instruction]) -> bool:
    if not isinstance(result.type, TensorType):
        return False
    return result.instruction in constant or (result.known is not None and result.known.size <= _SHORT)


def _constants(module: Module) -> set[Instruction]:
    """The instructions that depend on constants alone."""
    found: set[Instruction] = set()
    for instruction in module.instructions:
        op = instruction.op
        operands = [operand.instruction for operand in instruction.operands if operand is not None]
        derived = bool(operands) and op.pure and not op.modules() and not op.has_symbols()
        if isinstance(op, Constant) or (derived and found.issuperset(operands)):
            found.add(instruction)
    return found
