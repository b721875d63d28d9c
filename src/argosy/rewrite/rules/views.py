"""Views that undo, repeat or absorb each other: reshape, transpose, broadcast, squeeze, pad.

Elements move and none changes, so every rule is exact; what has to be right is where they go. The rules
read ops in the form that `attributes` leaves; squeezing and unsqueezing become reshapes.
"""

from __future__ import annotations

from collections.abc import Sequence

from argosy.ir.builder import Builder
from argosy.ir.dim import DimLike, equal
from argosy.ir.module import Value
from argosy.ir.types import Dims
from argosy.ops.pointwise import Pointwise
from argosy.ops.shapes import broadcast
from argosy.ops.slicing import Pad
from argosy.ops.view import Broadcast, Reshape, Squeeze, Tile, Transpose, Unsqueeze
from argosy.rewrite.pattern import any_, op, op_of
from argosy.rewrite.rule import Rewritten, RuleSet, rule

__all__ = ["RULES"]

_UNRANKED = "the rank is not known"


def _ranked(*values: Value) -> bool:
    return all(value.tensor.dims is not None for value in values)


def _is(dim: DimLike, number: int) -> bool:
    return isinstance(dim, int) and dim == number


def _same(left: Dims, right: Dims) -> bool:
    return len(left) == len(right) and all(equal(a, b) for a, b in zip(left, right, strict=True))


def _reshape(dims: Dims) -> Reshape:
    """A reshape to exactly these dims."""
    return Reshape(dims, allow_zero=True)


@rule(op(Reshape, any_("x")).bind("root"))
def reshape_to_same(root: Value, x: Value) -> Rewritten:
    """reshape(x) to the dims of x = x"""
    if not _ranked(root, x):
        return _UNRANKED
    return x if _same(root.shape, x.shape) else None


@rule(op(Reshape, op(Reshape, any_("x"))).bind("root"))
def reshape_once(build: Builder, root: Value, x: Value) -> Rewritten:
    """reshape(reshape(x)) = reshape(x)

    The order of elements is row-major throughout.
    """
    dims = op_of(root, Reshape).dims
    if dims is None or any(_is(dim, -1) for dim in dims):
        return "not all dims are known"
    return build.add(_reshape(root.shape), x)


@rule(op(Squeeze, any_("x")).bind("root"))
def reshape_for_squeeze(build: Builder, root: Value, x: Value) -> Rewritten:
    """squeeze(x) = reshape(x), where the squeezed axes are certain to have size 1"""
    axes = op_of(root, Squeeze).axes
    if axes is None or not _ranked(root, x):
        return "the squeezed axes are not known"
    if any(not _is(x.shape[axis], 1) for axis in axes):
        return "a squeezed axis may have another size"
    return build.add(_reshape(root.shape), x)


@rule(op(Unsqueeze, any_("x")).bind("root"))
def reshape_for_unsqueeze(build: Builder, root: Value, x: Value) -> Rewritten:
    """unsqueeze(x) = reshape(x)"""
    return build.add(_reshape(root.shape), x) if _ranked(root, x) else _UNRANKED


@rule(op(Transpose, any_("x")).bind("root"))
def transpose_nothing(build: Builder, root: Value, x: Value) -> Rewritten:
    """transpose(x) = x, where every axis stays; = reshape(x), where only axes of size 1 move"""
    order = op_of(root, Transpose).permutation
    if order is None or not _ranked(x):
        return _UNRANKED
    if order == tuple(range(len(order))):
        return x
    moving = [axis for axis in order if not _is(x.shape[axis], 1)]
    return build.add(_reshape(root.shape), x) if moving == sorted(moving) else None


@rule(op(Transpose, op(Transpose, any_("x")).bind("inner")).bind("root"))
def transpose_once(build: Builder, root: Value, inner: Value, x: Value) -> Rewritten:
    """transpose(transpose(x, p), q) = transpose(x, p[q])"""
    first, second = op_of(inner, Transpose).permutation, op_of(root, Transpose).permutation
    if first is None or second is None:
        return _UNRANKED
    return build.add(Transpose(tuple(first[axis] for axis in second)), x)


@rule(op(Broadcast, any_("x")).bind("root"))
def broadcast_to_same(root: Value, x: Value) -> Rewritten:
    """broadcast(x) to the dims of x = x"""
    if not _ranked(root, x):
        return _UNRANKED
    return x if _same(root.shape, x.shape) else None


@rule(op(Broadcast, op(Broadcast, any_("x"))).bind("root"))
def broadcast_once(build: Builder, root: Value, x: Value) -> Rewritten:
    """broadcast(broadcast(x, d), e) = broadcast(x, e), where e includes d"""
    return build.add(Broadcast(root.shape), x) if _ranked(root, x) else _UNRANKED


@rule(op(Broadcast, op(Reshape, any_("x")).bind("inner")).bind("root"))
def broadcast_leading_axes(build: Builder, root: Value, inner: Value, x: Value) -> Rewritten:
    """broadcast(reshape(x, 1 × dims)) = broadcast(x)

    Broadcasting puts axes of size 1 in front by itself.
    """
    if not _ranked(root, inner, x):
        return _UNRANKED
    added = inner.rank - x.rank
    if added < 0 or not _same(inner.shape, (1,) * added + x.shape):
        return "the reshape does more than put axes of size 1 in front"
    return build.add(Broadcast(root.shape), x)


@rule(op(Tile, any_("x")).bind("root"))
def tile_once(build: Builder, root: Value, x: Value) -> Rewritten:
    """tile(x, 1, …) = x; = broadcast(x), where only axes of size 1 are repeated"""
    repeats = op_of(root, Tile).repeats
    if repeats is None or not _ranked(root, x):
        return _UNRANKED
    if all(_is(repeat, 1) for repeat in repeats):
        return x
    if all(_is(repeat, 1) or _is(dim, 1) for repeat, dim in zip(repeats, x.shape, strict=True)):
        return build.add(Broadcast(root.shape), x)
    return None


@rule(op(Pad).bind("root"))
def pad_nothing(root: Value) -> Rewritten:
    """pad(x, 0, …) = x"""
    pads, x = op_of(root, Pad).pads, root.instruction.operands[0]
    if x is None or pads is None or any(operand is not None for operand in root.instruction.operands[3:]):
        return "the pads are not known"
    return x if all(_is(amount, 0) for amount in pads) else None


@rule(op(Pad, op(Pad, any_("x")).bind("inner")).bind("root"))
def pad_once(build: Builder, root: Value, inner: Value, x: Value) -> Rewritten:
    """pad(pad(x, p), q) = pad(x, p + q), where both add zeros"""
    first, second = op_of(inner, Pad), op_of(root, Pad)
    if first.mode != "constant" or second.mode != "constant":
        return "only constant pads add up"
    if first.pads is None or second.pads is None or first.axes is not None or second.axes is not None:
        return "the pads are not known"
    if any(not isinstance(amount, int) or amount < 0 for amount in (*first.pads, *second.pads)):
        return "a pad takes elements away, or may"
    return build.add(Pad("constant", tuple(b + a for a, b in zip(first.pads, second.pads, strict=True))), x)


@rule(op(Transpose, op(Pointwise).bind("inner").used_once()).bind("root"))
def cancel_transposes_around_pointwise(build: Builder, root: Value, inner: Value) -> Rewritten:
    """transpose(f(transpose(x, p), …), q) = f(x, …), where q undoes p for every operand that has axes

    A scalar or one-element constant is the same from everywhere.
    """
    order = op_of(root, Transpose).permutation
    if order is None:
        return _UNRANKED
    if not any(isinstance(operand.instruction.op, Transpose) for operand in _present(inner)):
        return None
    operands = []
    for operand in _present(inner):
        source = _untransposed(operand, order, inner)
        if source is None:
            return "an operand is not transposed the other way"
        operands.append(source)
    return build.add(op_of(inner, Pointwise), *operands, source=inner.instruction.source)


def _untransposed(operand: Value, order: Sequence[int], inner: Value) -> Value | None:
    """What `transpose(operand, order)` is, where that needs no work; `inner` is the result of the formula."""
    if not _ranked(operand) or not _ranked(inner) or operand.rank > inner.rank:
        return None
    if all(_is(dim, 1) for dim in operand.shape):
        return operand
    maker = operand.instruction
    if isinstance(maker.op, Transpose) and maker.op.permutation is not None and len(order) == operand.rank:
        first = maker.op.permutation
        if tuple(first[axis] for axis in order) == tuple(range(len(order))):
            return maker.operands[0]
    return None


@rule(op(Reshape, op(Pointwise).bind("inner").used_once()).bind("root"))
def cancel_reshapes_around_pointwise(build: Builder, root: Value, inner: Value) -> Rewritten:
    """reshape(f(reshape(x), …)) = f(x, …), where the dims are those of x and all operands have them or are scalars

    Row-major order is kept, so f meets the same elements.
    """
    if not any(isinstance(operand.instruction.op, Reshape) for operand in _present(inner)):
        return None
    operands = []
    changed = False
    for operand in _present(inner):
        if not _ranked(operand, inner):
            return _UNRANKED
        maker = operand.instruction
        source = maker.operands[0] if isinstance(maker.op, Reshape) and len(maker.operands) == 1 else None
        if (
            source is not None
            and _ranked(source)
            and _same(source.shape, root.shape)
            and _same(operand.shape, inner.shape)
        ):
            operands.append(source)
            changed = True
        elif operand.rank == 0:
            operands.append(operand)
        else:
            return "an operand does not have these dims before its reshape"
    if not changed:
        return "no operand is reshaped"
    return build.add(op_of(inner, Pointwise), *operands, source=inner.instruction.source)


@rule(op(Pointwise).bind("root"))
def absorb_broadcast(build: Builder, root: Value) -> Rewritten:
    """f(broadcast(x), y) = f(x, y), where f broadcasts x by itself to the same dims"""
    operands = _present(root)
    if not any(isinstance(operand.instruction.op, Broadcast) for operand in operands):
        return None
    if not _ranked(root, *operands):
        return _UNRANKED
    absorbed = False
    for place, operand in enumerate(operands):
        source = operand.instruction.operands[0] if isinstance(operand.instruction.op, Broadcast) else None
        if source is not None and _ranked(source):
            others = [other.shape for other in (*operands[:place], *operands[place + 1 :])]
            if _same(broadcast(source.shape, *others), root.shape):
                operands[place] = source
                absorbed = True
    return build.add(op_of(root, Pointwise), *operands) if absorbed else "every broadcast is needed"


@rule(op(Pointwise).bind("root"))
def broadcast_result(build: Builder, root: Value) -> Rewritten:
    """f(broadcast(x)) = broadcast(f(x)), for operands that are all one broadcast x, or scalars

    f is then computed on fewer elements.
    """
    if not any(isinstance(operand.instruction.op, Broadcast) for operand in _present(root)):
        return None
    sources = {}
    for operand in _present(root):
        maker = operand.instruction
        if isinstance(maker.op, Broadcast) and maker.operands[0] is not None:
            sources[operand] = maker.operands[0]
        elif not _ranked(operand) or operand.rank:
            return "an operand is not broadcast"
    if len(set(sources.values())) != 1 or not _ranked(root, *sources.values()):
        return "several operands are broadcast"
    if any(not _same(operand.shape, root.shape) for operand in sources):
        return "the formula itself broadcasts"
    computed = build.add(op_of(root, Pointwise), *(sources.get(operand, operand) for operand in _present(root)))
    return build.add(Broadcast(root.shape), computed)


def _present(value: Value) -> list[Value]:
    return [operand for operand in value.instruction.operands if operand is not None]


RULES = RuleSet.collect(vars())
