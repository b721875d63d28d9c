"""Finds out why a model fails: which node first, which part of the compiler, and how little of the model will do."""

from argosy.debugging.bisection import Bisection, bisect
from argosy.debugging.blame import Blame
from argosy.debugging.reduction import Reduced, reduce_model

__all__ = ["Bisection", "Blame", "Reduced", "bisect", "reduce_model"]
