"""What the kernels of an op do, as their steps tell those who measure: operations, and how much of buffers they touch.

An op may take several kernels, which pack operands, or put together what others have computed. A product's operations
are those of the first kernel that has all its operands at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import msgspec

from argosy.artifact.plan import CallStep, LaunchStep, Size, Step
from argosy.ir.dim import DimLike, dim_min, equal, floordiv
from argosy.ir.module import Instruction, Module, Value
from argosy.ops.arithmetic import Product, products_of
from argosy.ops.convolution import Conv
from argosy.ops.fused import Fused
from argosy.ops.joining import Concat
from argosy.ops.pointwise import Pointwise
from argosy.ops.reading import Count, elements, module_reads
from argosy.ops.slicing import Pad

__all__ = ["Places", "with_parts", "with_work"]

Kernel: TypeAlias = CallStep | LaunchStep

_UNKNOWN: Final = -1
"""A number of elements that is not known."""


@dataclass(frozen=True, slots=True)
class Places:
    """The buffers in which the operands of an op lie, each in any layout, and those of its results by their index."""

    operands: Sequence[Collection[int]]
    results: Mapping[int, int]


def with_work(
    module: Module,
    operands: Sequence[Value],
    places: Places,
    before: Sequence[Step],
    body: Sequence[Step],
    size: Callable[[DimLike], Size],
) -> list[Step]:
    """The steps `body` of an op, saying what they do; `before` are those at load.

    `module` is the op as a module, `operands` are the values of its parameters.
    """
    kernels = {index: step for index, step in enumerate(body) if isinstance(step, CallStep | LaunchStep)}
    given = _given(places.operands, before, body)
    found: dict[int, dict[str, DimLike]] = {}
    for product, needs in _products(module, operands):
        kind = product.operands[0].dtype.name
        for index, operations in _shared_out(product, needs, given, kernels):
            counts = found.setdefault(index, {})
            counts[kind] = counts.get(kind, 0) + operations
    made = list(body)
    for index, step in kernels.items():
        counted = {kind: size(count) for kind, count in found.get(index, {}).items()}
        beside = [other for other, each in kernels.items() if set(each.writes) & set(step.writes)]
        is_alone = beside == [index] or all(other in found and _may_be_idle(kernels[other]) for other in beside)
        parts = [
            *_read_parts(step, module, operands, places),
            *([None] * len(step.writes) if is_alone else _written_parts(step, module, given[index], places)),
        ]
        told = msgspec.structs.replace(step, operations=counted, whole=_UNKNOWN not in parts)
        made[index] = with_parts(told, parts, size) if told.whole else told
    return made


def _may_be_idle(step: Kernel) -> bool:
    """Whether calls may be alternatives, of which a run does one."""
    return isinstance(step, CallStep) and isinstance(step.chunks, str)


def with_parts(step: Step, parts: Sequence[DimLike | None], size: Callable[[DimLike], Size]) -> Step:
    """A kernel's step that says how many elements it touches of each buffer that it reads and writes; None: all."""
    if all(part is None for part in parts):
        return step
    return msgspec.structs.replace(step, parts=tuple(None if part is None else size(part) for part in parts))


def _read_parts(step: Kernel, module: Module, operands: Sequence[Value], places: Places) -> Iterator[DimLike | None]:
    """How many elements a kernel touches of each buffer that it reads.

    That is all of what another kernel of the op has made, and of an operand that this one packs for another.
    """
    written = [index for index, number in places.results.items() if number in step.writes]
    reads = module_reads(module, written or range(len(module.results)))
    for number in step.reads:
        of = [index for index, numbers in enumerate(places.operands) if number in numbers]
        counts = [reads[index] for index in of]
        if not of or any(set(step.writes) & set(places.operands[index]) for index in of):
            yield None
        else:
            yield _part(elements(operands[of[0]]), counts)


def _written_parts(step: Kernel, module: Module, given: Collection[int], places: Places) -> Iterator[DimLike | None]:
    """How many elements a kernel touches of each buffer that it writes, where others do too: pieces of a whole."""
    results = {number: module.results[index] for index, number in places.results.items()}
    for number in step.writes:
        result = results.get(number)
        if result is None or not isinstance(result.instruction.op, Concat):
            yield _UNKNOWN
            continue
        pieces = [module.parameters[index].result() for index in given]
        counts = [elements(piece) for piece in pieces if piece in result.instruction.operands]
        yield _part(elements(result), counts)


def _part(whole: Count, counts: Sequence[Count]) -> DimLike | None:
    """The sum of counts of a `whole`; None for all of it."""
    known = [count for count in counts if count is not None]
    if whole is None or len(known) < len(counts):
        return _UNKNOWN
    count = dim_min(whole, sum(known))
    return None if equal(whole, count) else count


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
        if step is not first and _may_be_idle(step) and set(step.writes) & set(first.writes):
            yield index, product.operations
