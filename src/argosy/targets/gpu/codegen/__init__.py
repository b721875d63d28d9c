"""Triton text from fused modules."""
