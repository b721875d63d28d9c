"""How ops read their operands, as far as it is the same in every language that kernels are written in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from argosy.errors import InternalError
from argosy.ir import access as maps
from argosy.ir import dim as dims
from argosy.ir.access import Access
from argosy.ir.dim import DimLike
from argosy.ir.dtype import FLOAT64, DType
from argosy.ir.formula import Step
from argosy.ir.module import Instruction, Value
from argosy.ir.op import Op
from argosy.ops.joining import Split
from argosy.ops.pointwise import Pointwise
from argosy.ops.shapes import normalize_axis

__all__ = [
    "LEAST",
    "DeclinedError",
    "axes_access",
    "broadcast_access",
    "op_of",
    "padded_place",
    "present",
    "split_access",
    "typed_steps",
]

LEAST: Final = -(1 << 62)
"""A lower bound for numbers of which nothing is known."""

A = TypeVar("A", bound=Op)


class DeclinedError(Exception):
    """A kernel can't be generated; the message says why, and the caller falls back."""


def present(instruction: Instruction, index: int) -> Value:
    """Operand `index`, which must be there."""
    operand = instruction.operands[index] if index < len(instruction.operands) else None
    if operand is None:
        raise DeclinedError(f"{instruction.op.name} lacks operand {index}")
    return operand


def op_of(instruction: Instruction, kind: type[A]) -> A:
    """The instruction's op, which is of that kind: emitters are registered under its name."""
    if not isinstance(instruction.op, kind):
        raise InternalError(f"{instruction.op.name} reached the emitter of {kind.__name__}")
    return instruction.op


def split_access(instruction: Instruction, index: int) -> Access:
    """How piece `index` of a split reads its operand."""
    op, x = op_of(instruction, Split), present(instruction, 0)
    axis = normalize_axis(op.axis, x.rank)
    start: DimLike = 0
    for piece in instruction.results[:index]:
        start = piece.shape[axis] + start
    starts: list[DimLike] = [0] * x.rank
    starts[axis] = start
    return maps.slice_by(x.shape, instruction.result(index).shape, starts, [1] * x.rank)


def broadcast_access(operand: Value, result: Value, access: Access) -> Access:
    """The access of a broadcast operand. Where only the run knows whether an axis repeats, so do its indices."""
    step = maps.broadcast(operand.shape, result.shape)
    if step is None:
        axes = maps.identity(result.shape).indices[result.rank - operand.rank :]
        indices = (
            index if dims.equal(size, whole) else dims.dim_min(index, size - 1)
            for index, size, whole in zip(axes, operand.shape, result.shape[result.rank - operand.rank :], strict=True)
        )
        step = Access(result.shape, operand.shape, tuple(indices))
    return access.compose(step)


def axes_access(extents: Sequence[DimLike], source: Sequence[DimLike], indices: Sequence[DimLike]) -> Access:
    """An access from an iteration space of `extents` to a tensor of dims `source`."""
    return Access(tuple(extents), tuple(source), tuple(indices))


def typed_steps(op: Pointwise, kinds: Sequence[DType]) -> Iterator[tuple[Step, list[DType], DType]]:
    """The steps of a formula on elements of `kinds`, each with the types of its arguments and of its result."""
    storage = [*kinds, *op.formula.step_dtypes(kinds)]
    for number, step in enumerate(op.formula.steps):
        kind = storage[op.formula.arity + number]
        typed = [storage[ref] for ref in step.args if isinstance(ref, int) and storage[ref].kind != "bool"]
        source = typed[0] if typed else storage[step.args[0]] if isinstance(step.args[0], int) else kind
        # A constant takes the type of the operand beside it, but an exponent of integers may be a fraction.
        own = FLOAT64 if step.primitive == "pow" and source.is_integer else source
        yield (
            step,
            [
                storage[ref] if isinstance(ref, int) else own if isinstance(ref.value, float) else source
                for ref in step.args
            ],
            kind,
        )


def padded_place(mode: str, index: DimLike, before: DimLike, after: DimLike, size: DimLike) -> DimLike:
    """Where along an axis an element comes from: negative pads cut off first, then the rest is folded."""
    if before == 0 and after == 0:
        return index
    cut = dims.dim_max(0 - before, 0)
    left = size - cut - dims.dim_max(0 - after, 0)
    return cut + _folded(mode, index - dims.dim_max(before, 0), left)


def _folded(mode: str, place: DimLike, size: DimLike) -> DimLike:
    if mode == "edge":
        return dims.dim_max(dims.dim_min(place, size - 1), 0)
    if mode == "wrap":
        return dims.mod(place, dims.dim_max(size, 1))
    if mode == "reflect":
        period = dims.dim_max(2 * (size - 1), 1)
        folded = dims.mod(place, period)
        return dims.dim_min(folded, period - folded) if not (isinstance(size, int) and size == 1) else 0
    raise DeclinedError(f"pad mode {mode}")
