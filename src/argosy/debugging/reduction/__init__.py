"""Reduces a model that fails to a small one that fails in the same way: delta debugging of nodes, shapes and values."""

from argosy.debugging.reduction.checks import Check
from argosy.debugging.reduction.reduced import Reduced
from argosy.debugging.reduction.reducer import reduce_model

__all__ = ["Check", "Reduced", "reduce_model"]
