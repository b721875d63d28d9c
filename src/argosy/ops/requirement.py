"""What a run must satisfy for the rest of the program to mean something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.errors import ModelError
from argosy.ir.module import Value
from argosy.ir.op import Op, register
from argosy.ir.types import Type
from argosy.ops.operands import present

__all__ = ["Require"]


@register
@dataclass(frozen=True, slots=True)
class Require(Op):
    """No results: the run ends here with the fault `why` unless the condition, one bool, is `expected`.

    It stands for the other branch of a conditional, which nothing can run: its ops contradict each other.
    """

    name = "require"
    pure = False
    expected: bool
    why: str

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        condition = present(operands[0])
        if condition.dtype.kind != "bool":
            raise ModelError(f"the condition is {condition.type}, expected a bool")
        return ()

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        condition = np.asarray(values[0])
        if condition.size != 1:
            raise ModelError(f"a condition has the shape {list(condition.shape)}, expected one element")
        if bool(condition.reshape(-1)[0]) is not self.expected:
            raise ModelError(self.why)
        return ()
