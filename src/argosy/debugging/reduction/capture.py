"""The true values of a model's nodes: what a part of the model is to be fed with."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import onnx

from argosy.debugging.reduction.case import Case
from argosy.debugging.reduction.child import Child, EndedError
from argosy.debugging.reduction.messages import value_message
from argosy.frontends.onnx import load
from argosy.ir.module import Constant, Instruction, Module, Value
from argosy.ir.types import TensorType
from argosy.verification.cutting import Truth

__all__ = ["Captured", "Reference"]

log = logging.getLogger("argosy.reduce")

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


class Reference:
    """Asks a child for the true values of cases, as the model may be one that crashes or hangs whoever reads it.

    What did so once is not asked again.
    """

    def __init__(self, child: Child) -> None:
        self._child = child
        self._ended: dict[str, EndedError] = {}

    def values(self, case: Case, names: Iterable[str]) -> Mapping[str, Captured]:
        """The values called `names`. Raises what reading or evaluating the model raises, and EndedError."""
        asked = _with_outputs(case, [onnx.ValueInfoProto(name=name) for name in names])
        key = asked.digest()
        if key in self._ended:
            raise self._ended[key]
        try:
            return self._child.run(partial(_captured, asked))
        except EndedError as ended:
            self._ended[key] = ended
            raise

    def with_output_types(self, case: Case) -> Case:
        """The case with the types of its outputs as they follow from its inputs, by us or by the `onnx` package.

        Where neither knows them, they are as they were.
        """
        for types in (_read, _inferred):
            try:
                return _with_outputs(case, self._child.run(partial(types, case.model)))
            except Exception as error:  # noqa: BLE001 - the model is here because something is wrong with it
                log.debug("no types of the outputs: %s", error)
        return case


def _with_outputs(case: Case, outputs: Sequence[onnx.ValueInfoProto]) -> Case:
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    model.graph.ClearField("output")
    model.graph.output.extend(outputs)
    return Case(model, case.inputs)


def _read(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    return [value_message(name, kind) for name, kind in load(model).outputs.items()]


def _inferred(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    return list(onnx.shape_inference.infer_shapes(model).graph.output)


def _captured(case: Case) -> dict[str, Captured]:
    main = load(case.model).main
    truth = Truth.by_name(main, case.inputs)
    constant = _constants(main)
    return {
        name: Captured(truth.values[result], value_message(name, result.type), _is_fixed(result, constant))
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
