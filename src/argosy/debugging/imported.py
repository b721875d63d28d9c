"""Whether a model was read as another engine reads it: the first node at which ref differs from ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from argosy.debugging.blame import Blame
from argosy.debugging.reduction.prepare import prepare
from argosy.frontends.onnx.protos import read_model
from argosy.ir.module import Instruction
from argosy.options import Dimensions
from argosy.verification.cutting import Truth
from argosy.verification.measure import measure
from argosy.verification.reference import OnnxRuntimeReference
from argosy.verification.report import Difference
from argosy.verification.tolerance import Tolerance

__all__ = ["Misread", "first_misread"]


@dataclass(frozen=True, slots=True)
class Misread:
    """The instruction of a node that ref and ONNX Runtime disagree on, how far, and the handler to blame."""

    instruction: Instruction
    differences: tuple[Difference, ...]
    blame: Blame


def first_misread(
    model: str | Path | bytes | onnx.ModelProto, truth: Truth, inputs: Mapping[str, Any], tolerance: Tolerance
) -> Misread | None:
    """The first node, in the order of the model, whose values differ; None where none of those in the main graph does.

    `truth` is what ref computes for the model's program from the same inputs. Raises EnvironmentError_ without ONNX
    Runtime, and where it can't run the model.
    """
    message, external, _ = read_model(model)
    shown = prepare(message, external, Dimensions())
    makers = {name: node.op_type for node in shown.graph.node for name in node.output if name}
    ours = {value.name: value for step in truth.steps for value in step.results if value.name in makers}
    shown.graph.ClearField("output")
    shown.graph.output.extend(onnx.ValueInfoProto(name=name) for name in ours)
    types = {name: value.type for name, value in ours.items()}
    theirs = OnnxRuntimeReference(shown, types).answer(inputs, 0)
    for name, value in ours.items():
        expected, found = {name: theirs[name]}, {name: truth.values[value]}
        if tolerance.compare(expected, found):
            step, op = value.instruction, makers[name]
            why = f"ref, which evaluates the model as it was read, differs from ONNX Runtime: {op} is read wrongly"
            return Misread(step, measure(expected, found), Blame("import", op, step.source or name, why))
    return None
