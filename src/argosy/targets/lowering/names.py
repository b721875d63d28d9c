"""Names of kernels for people: what a kernel does and how, such as `conv3x3s2_direct` or `mul_add_loops`.

The name is a function of the op and the solution alone, so equal kernels have equal names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from argosy.ir.dim import DimLike
from argosy.ir.formula import Formula
from argosy.ir.module import Constant, Instruction, Module
from argosy.ops.fused import Fused

__all__ = ["kernel_label"]

_MOST_WORDS: Final = 3
"""Ops that the name of a fused loop tells."""
_LONGEST: Final = 40
_OP_NAMES: Final = frozenset({"convolution", "transposed", "dot", "reduction", "softmax", "pool", "elementwise"})
"""Words of a solution's name that say again what the op is."""


def kernel_label(module: Module, anchor: Instruction | None, solution: str) -> str:
    """The label of the kernels that a solution, known by its name, makes for a fused module: a word of C and Python."""
    how = [word for word in solution.lower().replace("-", "").split() if word not in _OP_NAMES]
    what = [_anchor(anchor)] if anchor else list(dict.fromkeys(_ops(module)))[:_MOST_WORDS]
    return "_".join([*what, *how])[:_LONGEST].strip("_") or "kernel"


def _anchor(anchor: Instruction) -> str:
    """An op with its window: `conv3x3`, `conv7x7s2`, `pool_max3x3s2`, `reduce_sum`."""
    op = anchor.op
    kind = getattr(op, "kind", "")
    kernel: Sequence[DimLike] = getattr(op, "kernel", None) or ()
    strides: Sequence[int] = getattr(op, "strides", None) or ()
    if op.name in ("conv", "conv_transpose") and anchor.operands[1] is not None:
        kernel = anchor.operands[1].shape[2:]
    window = "x".join(str(size) for size in kernel) if all(isinstance(size, int) for size in kernel) else ""
    stride = f"s{strides[0]}" if len(set(strides)) == 1 and strides[0] != 1 else ""
    return f"{op.name}{f'_{kind}' if kind else ''}{window}{stride}"


def _ops(module: Module) -> Iterator[str]:
    """The ops of a module, formulas by their primitives."""
    for instruction in module.instructions:
        op = instruction.op
        formula = getattr(op, "formula", None)
        if isinstance(op, Fused):
            yield from _ops(op.module)
        elif isinstance(formula, Formula):
            yield from (step.primitive for step in formula.steps)
        elif not isinstance(op, Constant):
            yield op.name
