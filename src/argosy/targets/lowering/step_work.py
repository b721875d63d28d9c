"""What the kernels of an op do, as their steps tell those who measure: operations, and whether they touch everything.

An op may take several kernels, which pack operands, or put together what others have computed. A product's operations
are those of the first kernel that has all its operands at hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import msgspec

from argosy.artifact.plan import CallStep, LaunchStep, Size, Step
from argosy.ir.dim import DimLike, floordiv
from argosy.ir.module import Instruction, Module, Value
from argosy.ops.arithmetic import Product, products_of
from argosy.ops.convolution import Conv
from argosy.ops.fused import Fused
from argosy.ops.joining import Split
from argosy.ops.pointwise import Pointwise
from argosy.ops.pooling import Pool
from argosy.ops.slicing import Pad

__all__ = ["with_work"]

Kernel: TypeAlias = CallStep | LaunchStep

_WHOLE: Final = frozenset({
    "arg_reduce", "bit_cast", "broadcast", "concat", "constant", "conv_transpose", "cumulative", "dequantize", "dft",
    "dot", "einsum", "pointwise", "quantize", "reduce", "reshape", "reverse_sequence", "rnn", "softmax", "squeeze",
    "tile", "topk", "transpose", "unsqueeze",
})  # fmt: skip
"""Ops that need every element of their operands, and store every one of their results; windows are looked at."""


def with_work(
    module: Module,
    operands: Sequence[Value],
    holders: Sequence[Collection[int]],
    before: Sequence[Step],
    body: Sequence[Step],
    size: Callable[[DimLike], Size],
) -> list[Step]:
    """The steps `body` of an op, saying what they do; `before` are those at load.

    `module` is the op as a module, `operands` are the values of its parameters, `holders` the buffers in which each of
    them lies, in any layout.
    """
    kernels = {index: step for index, step in enumerate(body) if isinstance(step, CallStep | LaunchStep)}
    written = Counter(number for step in kernels.values() for number in step.writes)
    whole = _is_whole(module) and all(count == 1 for count in written.values())  # else each writes a part
    given = _given(holders, before, body)
    found: dict[int, dict[str, DimLike]] = {}
    for product, needs in _products(module, operands):
        kind = product.operands[0].dtype.name
        for index, operations in _shared_out(product, needs, given, kernels):
            counts = found.setdefault(index, {})
            counts[kind] = counts.get(kind, 0) + operations
    made = list(body)
    for index, step in kernels.items():
        counted = {kind: size(count) for kind, count in found.get(index, {}).items()}
        made[index] = msgspec.structs.replace(step, operations=counted, whole=whole)
    return made


def _products(module: Module, operands: Sequence[Value]) -> Iterator[tuple[Product, frozenset[int]]]:
    """The products in a module, each with the parameters that its operands are made of."""
    outer = dict(zip((parameter.result() for parameter in module.parameters), operands, strict=True))
    made: dict[Value, frozenset[int]] = {p.result(): frozenset([i]) for i, p in enumerate(module.parameters)}

    def needs(values: Iterable[Value | None]) -> frozenset[int]:
        return frozenset().union(*(made.get(value, frozenset()) for value in values if value is not None))

    for instruction in module.instructions:
        reached = needs(instruction.operands)
        made.update(dict.fromkeys(instruction.results, reached))
        if isinstance(instruction.op, Fused):
            present = [value for value in instruction.operands if value is not None]
            yield from ((product, reached) for product, _ in _products(instruction.op.module, present))
        for product in products_of(instruction) or ():
            yield _without_zeros(instruction, product, outer), needs(product.operands)


def _without_zeros(instruction: Instruction, product: Product, outer: Mapping[Value, Value]) -> Product:
    """A product without the channels of zeros that the passes gave to a convolution: they are not the model's."""
    weight = product.operands[1]
    if not isinstance(instruction.op, Conv):
        return product
    channels, zeros = weight.shape[1], _zeros(outer.get(weight, weight))
    if not zeros:
        return product
    return replace(product, operations=floordiv(product.operations, channels) * (channels - zeros))


def _zeros(weight: Value) -> int:
    """How many channels of zeros are behind those of a weight."""
    op = weight.instruction.op
    match op:
        case Fused():
            return _zeros(op.module.results[weight.index])
        case Pad(mode="constant", pads=(0, int(count)), axes=(1,)):
            return count
        case Pointwise() if len(weight.instruction.operands) == 1 and weight.instruction.operands[0] is not None:
            return _zeros(weight.instruction.operands[0])
    return 0


def _given(
    holders: Sequence[Collection[int]], before: Sequence[Step], body: Sequence[Step]
) -> Mapping[int, frozenset[int]]:
    """The parameters from which each kernel of `body` computes, by its place: what it reads is made of them."""
    made: dict[int, frozenset[int]] = {}
    for index, numbers in enumerate(holders):
        for number in numbers:
            made[number] = made.get(number, frozenset()) | {index}
    found = {}
    for place, step in enumerate((*before, *body), -len(before)):
        if not isinstance(step, CallStep | LaunchStep):
            continue
        found[place] = frozenset().union(*(made.get(number, frozenset()) for number in step.reads))
        for number in step.writes:
            made[number] = made.get(number, frozenset()) | found[place]
    return {place: parameters for place, parameters in found.items() if place >= 0}


def _shared_out(
    product: Product, needs: frozenset[int], given: Mapping[int, frozenset[int]], kernels: Mapping[int, Kernel]
) -> Iterator[tuple[int, DimLike]]:
    """Which kernels do a product, and how many of its operations: the first that has all of its operands at hand.

    One that reads a single buffer packs it. Calls may be alternatives, of which a run does one: both write the result.
    A product that is done step by step is shared by all that have its operands.
    """
    every = [index for index, parameters in given.items() if parameters >= needs]
    able = [index for index in every if len(set(kernels[index].reads)) > 1] or every
    if not able:
        return
    if product.is_stepwise:
        each = floordiv(product.operations, len(able))
        yield able[0], product.operations - each * (len(able) - 1)
        yield from ((index, each) for index in able[1:])
        return
    first = kernels[able[0]]
    yield able[0], product.operations
    for index in every:
        step = kernels[index]
        is_other = isinstance(step, CallStep) and isinstance(step.chunks, str) and step is not first
        if is_other and set(step.writes) & set(first.writes):
            yield index, product.operations


def _is_whole(module: Module) -> bool:
    """Whether all elements of the operands are needed (borders that no window covers aside), and all results stored."""
    used = {operand for instruction in module.instructions for operand in instruction.operands}
    used.update(module.results)
    return all(_needs_all(instruction, used) for instruction in module.instructions)


def _needs_all(instruction: Instruction, used: Collection[Value | None]) -> bool:
    op = instruction.op
    match op:
        case Split():
            return all(value in used for value in instruction.results)
        case Fused():
            return _is_whole(op.module)
        case Pad():
            return op.pads is not None and all(isinstance(pad, int) and pad >= 0 for pad in op.pads)
        case Pool():
            return all(stride <= width for stride, width in zip(op.strides, op.kernel, strict=True))
        case Conv():
            widths = instruction.operands[1].shape[2:] if instruction.operands[1] is not None else ()
            return all(isinstance(n, int) and stride <= n for stride, n in zip(op.strides, widths, strict=True))
    return op.name in _WHOLE
