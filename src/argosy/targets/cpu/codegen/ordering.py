"""Comparisons that put elements in order, as C functions of a kernel."""

from __future__ import annotations

from argosy.ir.dtype import DType
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.op_kernel import OpKernel

__all__ = ["less_function"]


def less_function(kernel: OpKernel, dtype: DType) -> str:
    """A C function of two values: whether the first is less. NaN counts as greater than every number."""
    ctype = scalar.compute_type(dtype)
    body = "  return a < b || (b != b && a == a);" if dtype.is_float else "  return a < b;"
    return kernel.function("less", f"bool ({ctype} a, {ctype} b)", body)
