"""What is known of a Fourier transform while compiling."""

from __future__ import annotations

from argosy.ir.dim import Dim, DimLike
from argosy.ir.module import Instruction
from argosy.ops.operands import numbers
from argosy.ops.shapes import normalize_axis
from argosy.ops.signal import Fourier
from argosy.targets.lowering.accesses import op_of, present

__all__ = ["fixed_length", "known_axis", "transform_length"]


def known_axis(dft: Instruction) -> int | None:
    """The axis that a `dft` transforms, counted from the front; None where it depends on the run."""
    op, x = op_of(dft, Fourier), present(dft, 0)
    operand = dft.operands[2] if len(dft.operands) > 2 else None
    known = numbers(None if op.axis is None else (op.axis,), operand)
    return None if known is None else normalize_axis(known[0], x.rank)


def transform_length(dft: Instruction, axis: int) -> DimLike | None:
    """How many elements a `dft` along an axis transforms; None where that is not told by its types."""
    op, x = op_of(dft, Fourier), present(dft, 0)
    length: DimLike | None = op.length
    given = dft.operands[1] if len(dft.operands) > 1 else None
    if length is None and given is not None and given.known is not None:
        length = given.known.reshape(-1)[0]
    if op.onesided and not op.inverse:
        return x.shape[axis] if given is None and length is None else length
    return dft.result().shape[axis]


def fixed_length(dft: Instruction, axis: int) -> int | None:
    """The length where it is a number."""
    length = transform_length(dft, axis)
    return None if length is None or isinstance(length, Dim) else int(length)
