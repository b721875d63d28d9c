"""The true values of a model's nodes: what a part of the model is to be fed with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import onnx

from argosy.debugging.reduction.case import Case
from argosy.debugging.reduction.messages import value_message
from argosy.frontends.onnx import load
from argosy.ir.module import Constant, Instruction, Module, Value
from argosy.ir.types import TensorType
from argosy.verification.cutting import Truth

__all__ = ["Capture", "Captured", "capture"]

_SHORT: Final = 64
"""Elements of a shape or list of axes; more are data."""


@dataclass(frozen=True, slots=True)
class Captured:
    """A value, its name and type, and whether it is fixed: the same for all inputs of these shapes.

    A part of the model gets a fixed value as an initializer, for nodes that need to know it early.
    """

    value: Any
    entry: onnx.ValueInfoProto
    fixed: bool


Capture: TypeAlias = Callable[[Case, Sequence[str]], Mapping[str, Captured]]


def capture(case: Case, names: Sequence[str]) -> dict[str, Captured]:
    """The values called `names`, as the reference computes them. Raises what reading or evaluating the model raises."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    model.graph.ClearField("output")
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    main = load(model).main
    values = Truth.by_name(main, case.inputs).results
    constant = _constants(main)
    return {
        name: Captured(values[name], value_message(name, result.type), _is_fixed(result, constant))
        for name, result in zip(main.result_names, main.results, strict=True)
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
