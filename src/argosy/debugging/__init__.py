"""Finds out why code is wrong: which node first, and which part of the compiler makes it so."""

from argosy.debugging.bisection import Bisection, bisect
from argosy.debugging.blame import Blame

__all__ = ["Bisection", "Blame", "bisect"]
