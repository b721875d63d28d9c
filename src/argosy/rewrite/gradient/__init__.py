"""Reverse-mode differentiation of instructions: `gradients` appends those that compute derivatives of a value.

Each op has its rule in `rules/`; formulas are differentiated symbolically, primitive by primitive.
"""

from argosy.rewrite.gradient.reverse import gradients

__all__ = ["gradients"]
