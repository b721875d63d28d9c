"""What to do about a node that is refused, where its handler says nothing better: what it reads, what it takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from argosy.errors import ArgosyError, ModelError, UnsupportedError
from argosy.frontends.onnx.signature import attribute_names, input_names, input_role
from argosy.ir.module import Constant, Parameter, Value

if TYPE_CHECKING:
    import onnx

__all__ = ["DAMAGED", "advised", "attributes_hint", "giver", "inputs_hint"]

DAMAGED: Final = "the model breaks the ONNX standard there: export it again, or mend that part of it"
"""What is left to say of a fault outside of nodes."""
_WITHOUT: Final = "export the model so that it does without, or put other ops in place of the node"
_SHOWN: Final = 6
"""Inputs that a hint lists."""


def advised(
    error: ArgosyError, proto: onnx.NodeProto, domain: str, version: int, inputs: Sequence[Value | None]
) -> ArgosyError:
    """The error about a node, with a hint: what its inputs are, or that other ops will do."""
    if error.hint or not isinstance(error, ModelError):
        return error
    if isinstance(error, UnsupportedError):
        return error.advise(_WITHOUT)
    return error.advise(_reads_hint(proto, domain, version, inputs) or DAMAGED)


def _reads_hint(proto: onnx.NodeProto, domain: str, version: int, inputs: Sequence[Value | None]) -> str:
    told = []
    for index, value in enumerate(inputs):
        if value is not None:
            role = input_role(domain, proto.op_type, version, index)
            told.append(f"{f'{role} = ' if role else ''}{proto.input[index]!r}: {value.type}{_whence(value)}")
    more = [f"{len(told) - _SHOWN} more"] if len(told) > _SHOWN else []
    return f"check what it reads: {', '.join([*told[:_SHOWN], *more])}" if told else ""


def _whence(value: Value) -> str:
    """Where a value comes from, for those whose type no node computes."""
    if isinstance(value.instruction.op, Parameter):
        return " (an input)"
    return " (a constant)" if isinstance(value.instruction.op, Constant) else ""


def giver(value: Value) -> str:
    """What gives a value, in words."""
    op, source = value.instruction.op, value.instruction.source
    if isinstance(op, Parameter):
        return "an input"
    if isinstance(op, Constant) and not source:
        return "an initializer"
    return source or "a constant"


def inputs_hint(domain: str, name: str, version: int) -> str:
    """Which inputs an op takes; an empty string for an op without a schema."""
    known = input_names(domain, name, version)
    return f"{name} (opset {version}) takes {', '.join(known)}" if known else ""


def attributes_hint(domain: str, name: str, version: int) -> str:
    """Which attributes an op has; an empty string for an op without a schema."""
    known = attribute_names(domain, name, version)
    if known is None:
        return ""
    return f"it has {', '.join(known) or 'no attributes'}"
