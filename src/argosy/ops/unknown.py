"""The placeholder of an ONNX node that nobody supports: a program that holds one can be read, not run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from argosy.errors import UnsupportedError
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Value
from argosy.ir.op import Op, register
from argosy.ir.types import TensorType, Type

__all__ = ["Unknown"]


@register
@dataclass(frozen=True, slots=True)
class Unknown(Op):
    """Any number of results that nothing is known of. They pass for tensors like the first operand, of any rank.

    `kind` is the node's domain and op (`com.example::Frobnicate`).
    """

    name = "unknown"
    pure = False
    kind: str
    count: int

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        types = [operand.type for operand in operands if operand is not None]
        element = next((kind.dtype for kind in types if isinstance(kind, TensorType)), FLOAT32)
        return (TensorType(element, None),) * self.count

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        raise UnsupportedError(f"{self.kind} is not supported; its node is a placeholder", (self.kind,))
