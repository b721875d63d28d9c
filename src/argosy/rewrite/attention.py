"""Where a module attends: a product of queries and keys, what is done to the scores, their softmax, times the values.

Whatever wrote it, the ops of ONNX and com.microsoft or a model by hand, comes down to this chain of IR ops. In between
the axes before the keys may be cut in another way: queries that share keys are rows of one product (grouped heads),
while masks tell them apart.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.ir.dim import equal
from argosy.ir.dtype import FLOAT32, DType
from argosy.ir.formula import Constant
from argosy.ir.module import Instruction, Module, Value
from argosy.ir.types import TensorType
from argosy.ops import shapes
from argosy.ops.pointwise import Pointwise
from argosy.ops.reduce import Softmax

__all__ = ["Attention", "find_attentions", "is_scaled", "placed_values"]

_LARGEST_HEAD: Final = 512
"""Numbers of a query, key or value beyond which the scores are the smaller part of the work."""

_VIEWS: Final = ("reshape", "transpose", "broadcast", "slice", "squeeze", "unsqueeze")
_CHEAP: Final = frozenset(
    {"add", "sub", "mul", "neg", "min", "max", "lt", "le", "eq", "and", "or", "not", "select", "convert"}
)


@dataclass(frozen=True, slots=True)
class Attention:
    """`product` is the softmax of what becomes of `scores`, times the values; `steps` are what lies between.

    Those behind the softmax scale whole rows of it: f(a w) = a f(w), and f is the same for all keys. In row-major order
    all of them have the same rows.
    """

    scores: Instruction
    steps: frozenset[Instruction]
    softmax: Instruction
    product: Instruction

    @property
    def inner(self) -> frozenset[Instruction]:
        """All but the last product: what no reader outside needs."""
        return self.steps | {self.scores, self.softmax}


class _Rows:
    """The rows of weights that a product has, one for each query, and how many keys they have."""

    def __init__(self, product: Instruction) -> None:
        weights, values = product.operands
        dims = [operand.shape for operand in (weights, values) if operand is not None]
        self._count = shapes.product(dims[0][:-1])
        # The product demands that both be equal, whether or not that is certain.
        self._keys = (dims[0][-1], dims[1][-2])

    def are_those_of(self, instruction: Instruction) -> bool:
        """Whether the result of an instruction, in row-major order, has as many rows of as many keys."""
        kind = instruction.types[0]
        if len(instruction.types) != 1 or not isinstance(kind, TensorType) or not kind.dims:
            return False
        keys = any(equal(kind.dims[-1], size) for size in self._keys)
        return keys and bool(equal(shapes.product(kind.dims[:-1]), self._count))


def find_attentions(module: Module, *, short: bool = False) -> Sequence[Attention]:
    """All of them with float32 sums, a softmax along the last axis, and heads of a fixed size.

    What lies inside is read there alone. With `short`, those whose scores, weights and results are short floats too.
    """
    readers: dict[Instruction, list[Instruction]] = {}
    for instruction in module.instructions:
        for operand in instruction.operands:
            if operand is not None:
                readers.setdefault(operand.instruction, []).append(instruction)
    results = {value.instruction for value in module.results}
    places = {instruction: place for place, instruction in enumerate(module.instructions)}
    found = (
        _attention(instruction, module.instructions, places, readers, results, short=short)
        for instruction in module.instructions
        if instruction.op.name == "dot"
    )
    return [attention for attention in found if attention is not None]


def placed_values(module: Module) -> frozenset[Instruction]:
    """What is computed from places, or from tensors that have one row or one key for all, and short floats in float32.

    So are masks. It is less to compute such a matrix again than to store and load it.
    """
    found: set[Instruction] = set()
    for instruction in module.instructions:
        op = instruction.op
        cheap = isinstance(op, Pointwise) and all(step.primitive in _CHEAP for step in op.formula.steps)
        if not cheap and op.name not in ("range", "triangle", "dims", *_VIEWS):
            continue
        operands = [operand for operand in instruction.operands if operand is not None]
        if not all(isinstance(kind, TensorType) and kind.dims is not None for kind in instruction.types):
            continue
        if _widens(instruction) or all(
            operand.instruction in found or _is_splat(operand) or (cheap and _has_one(operand, instruction))
            for operand in operands
        ):
            found.add(instruction)
    return frozenset(found)


def _widens(instruction: Instruction) -> bool:
    op, operand = instruction.op, instruction.operands[0] if instruction.operands else None
    if operand is None or not isinstance(op, Pointwise) or op.formula.primitive != "convert":
        return False
    if not isinstance(operand.type, TensorType):
        return False
    return operand.dtype.is_float and operand.dtype.bits < instruction.result().dtype.bits <= FLOAT32.bits


def _is_splat(value: Value) -> bool:
    literal = value.constant
    return literal is not None and (literal.size == 1 or literal.is_splat)


def _has_one(value: Value, instruction: Instruction) -> bool:
    """Whether a value has one row or one key, for many of what is made of it."""
    if not isinstance(value.type, TensorType) or value.type.dims is None:
        return False
    mine, made = (1, 1, *value.shape)[-2:], (1, 1, *instruction.result().shape)[-2:]
    return any(equal(size, 1) and not equal(whole, 1) for size, whole in zip(mine, made, strict=True))


def is_scaled(instruction: Instruction) -> bool:
    """Whether it is a value times a number: as good to compute wherever it is read."""
    if not isinstance(instruction.op, Pointwise) or instruction.op.formula.primitive != "mul":
        return False
    constants = [operand is None or operand.constant is None for operand in instruction.operands]
    sizes = [operand.constant.size for operand in instruction.operands if operand and operand.constant is not None]
    return sum(constants) == 1 and all(size == 1 for size in sizes)


def _attention(
    product: Instruction,
    order: Sequence[Instruction],
    places: Mapping[Instruction, int],
    readers: Mapping[Instruction, Sequence[Instruction]],
    results: set[Instruction],
    *,
    short: bool,
) -> Attention | None:
    weights = product.operands[0]
    if (
        weights is None
        or not _is_product(product, short=short)
        or not weights.dtype.is_float
        or weights.dtype.bits > FLOAT32.bits
    ):
        return None
    rows = _Rows(product)
    softmax, inside, reader = weights.instruction, set[Instruction](), product
    while softmax not in results and list(readers[softmax]) == [reader] and softmax.op.name in ("pointwise", "reshape"):
        scaled = softmax.operands[0] if softmax.op.name == "reshape" else _scaled_rows(softmax)
        if scaled is None or not rows.are_those_of(softmax):
            return None
        inside.add(softmax)
        reader, softmax = softmax, scaled.instruction
    if softmax in results or list(readers[softmax]) != [reader]:
        return None
    if not isinstance(softmax.op, Softmax) or softmax.op.log or not rows.are_those_of(softmax):
        return None
    rank = softmax.result().rank
    if not _is_wide(softmax.result().dtype, short=short) or shapes.normalize_axis(softmax.op.axis, rank) != rank - 1:
        return None
    scores: Instruction | None = None
    inside.add(softmax)
    # Later instructions first, so that all readers of one have been judged before it.
    pending: list[int] = []
    seen: set[Instruction] = set()

    def enter(reader: Instruction) -> None:
        for operand in reader.operands:
            if operand is not None and operand.instruction in places and operand.instruction not in seen:
                seen.add(operand.instruction)
                heapq.heappush(pending, -places[operand.instruction])

    enter(softmax)
    while pending:
        instruction = order[-heapq.heappop(pending)]
        if instruction in results or any(reader not in inside for reader in readers[instruction]):
            continue
        if not rows.are_those_of(instruction):
            continue
        if instruction.op.name in ("pointwise", "reshape"):
            inside.add(instruction)
            enter(instruction)
        elif scores is None and _is_product(instruction, short=short):
            scores = instruction
            inside.add(instruction)
    if scores is None or not _same_batch(product, scores):
        return None
    return Attention(scores, frozenset(inside - {softmax, scores}), softmax, product)


def _scaled_rows(step: Instruction) -> Value | None:
    """The operand whose rows a formula scales, each by one number of its own, or 0; None where it does other things."""
    if not isinstance(step.op, Pointwise) or len(step.op.formula.steps) != 1:
        return None
    operands = [operand for operand in step.operands if operand is not None]
    rows = [
        place for place, operand in enumerate(operands) if operand.rank == step.result().rank and not _is_one(operand)
    ]
    rows = [place for place in rows if not equal(operands[place].shape[-1], 1)]
    others = [operand for place, operand in enumerate(operands) if place not in rows]
    if len(rows) != 1 or len(operands) != len(step.operands):
        return None
    if any(operand.rank and not equal(operand.shape[-1], 1) for operand in others):
        return None
    (place,), (formula,) = rows, step.op.formula.steps

    def is_zero(arg: int | Constant) -> bool:
        if isinstance(arg, Constant):
            return bool(arg.value == 0)
        literal = operands[arg].constant
        return literal is not None and literal.size == 1 and literal.item() == 0

    args = formula.args
    linear = {
        "mul": args.count(place) == 1,
        "div": args[0] == place and args.count(place) == 1,
        "convert": True,  # to a short float, in which products take them
        "select": args[0] != place and any(args[i] == place and is_zero(args[3 - i]) for i in (1, 2) if len(args) == 3),
    }
    return operands[place] if linear.get(formula.primitive, False) else None


def _is_one(value: Value) -> bool:
    """Whether it is a constant of one element."""
    return value.constant is not None and value.constant.size == 1


def _is_wide(kind: DType, *, short: bool) -> bool:
    """Whether a type is float32 or, with `short`, a float that is computed as such."""
    return kind is FLOAT32 or (short and kind.is_float and kind.bits > 8 and kind.compute is FLOAT32)


def _is_product(instruction: Instruction, *, short: bool) -> bool:
    """Whether it is a product of matrices, or of as many matrices each, with float32 sums."""
    if instruction.op.name != "dot" or any(operand is None for operand in instruction.operands):
        return False
    left, right = (operand for operand in instruction.operands if operand is not None)
    result = instruction.types[0]
    if not isinstance(result, TensorType) or result.dims is None or not _is_wide(result.dtype, short=short):
        return False
    return left.rank == right.rank >= 2


def _same_batch(product: Instruction, scores: Instruction) -> bool:
    """Whether both products have the same batch and rows, and the size of a head is fixed in both."""
    left, right = scores.operands
    values = product.operands[1]
    if left is None or right is None or values is None:
        return False
    batch, own = product.result().shape[:-1], scores.result().shape[:-1]
    same = len(batch) == len(own) and all(bool(equal(a, b)) for a, b in zip(batch, own, strict=True))
    depth = left.shape[-1] if isinstance(left.shape[-1], int) else right.shape[-2]
    sizes = (depth, values.shape[-1])
    return same and all(isinstance(size, int) and size <= _LARGEST_HEAD for size in sizes)
