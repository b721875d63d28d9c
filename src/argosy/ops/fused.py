"""Fused computation: a module that a target runs as one kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from argosy.ir.interpreter import run_module
from argosy.ir.module import Module, Value
from argosy.ir.op import Env, Op, register
from argosy.ir.types import Type

__all__ = ["Fused"]


@register
@dataclass(frozen=True, slots=True)
class Fused(Op):
    """What its module computes, nothing of it stored but the results. Operands: the module's parameters.

    The module holds views and pointwise ops, and at most one anchor (a reduction, a product, a window), whose
    result the ops after it take element by element.
    """

    name = "fused"
    module: Module

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        del operands
        return tuple(value.type for value in self.module.results)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        return self.evaluate_in(Env(), *values)

    def evaluate_in(self, env: Env, *values: Any) -> tuple[Any, ...]:
        return run_module(self.module, values, env.inner())

    def modules(self) -> tuple[Module, ...]:
        return (self.module,)
