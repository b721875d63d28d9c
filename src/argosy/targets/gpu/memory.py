"""The device memory that a plan takes at least, and whether the device that it is compiled for has it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Final

from argosy.artifact.arena import place
from argosy.artifact.decode import decode_symbols
from argosy.artifact.lifetimes import lifetimes, root_of
from argosy.artifact.plan import Block, LaunchStep, PlanRecord, ScratchArgument, Size, steps_in
from argosy.errors import CompileError
from argosy.ir import dim as dims
from argosy.ir.dim import Symbol
from argosy.ir.parser import parse_dim, parse_type
from argosy.ir.types import TensorType
from argosy.targets.gpu.arches.row import GpuArch

__all__ = ["check_memory", "device_memory"]

log = logging.getLogger("argosy.gpu")

_ALIGNMENT: Final = 256
"""Of a buffer in the arena, as the runtime packs it."""


def check_memory(needed: int, arch: GpuArch, *, strict: bool) -> None:
    """Warn where a device of an arch has less memory than is needed; under `strict` raise CompileError."""
    has = arch.product.memory
    if has is None or needed <= has:
        return
    said = f"the model needs {needed} bytes of device memory, {arch.product.name or arch.name} has {has}"
    if strict:
        raise CompileError(said, where=arch.name, hint="name a product that has more, or compile for smaller sizes")
    log.warning("%s: %s", arch.name, said)


def device_memory(plan: PlanRecord) -> int:
    """Bytes of one run at a time: weights and prepared buffers, the arena, scratch memory.

    Sizes that the run tells count as the least that they may be, so that no device is refused that can do some run.
    """
    sizes = _Sizes(plan)
    modules = [(plan.body, [binding.buffer for binding in plan.inputs], [binding.buffer for binding in plan.outputs])]
    modules += [(module.body, [], list(module.results)) for module in plan.prepare]
    launches = [step for body, _, _ in modules for step in steps_in(body) if isinstance(step, LaunchStep)]
    touched = {root_of(plan.buffers, number) for step in launches for number in (*step.reads, *step.writes)}
    resident = sum(sizes.buffer(root) for root in touched if plan.buffers[root].kind in ("weight", "prepared"))
    return resident + max(_arena(plan, sizes, touched, *module) for module in modules)


class _Sizes:
    """Sizes of a plan with its symbols at their least."""

    def __init__(self, plan: PlanRecord) -> None:
        self._plan = plan
        self._symbols: Mapping[str, Symbol] = decode_symbols(plan.symbols)
        self._least = {name: symbol.lower for name, symbol in self._symbols.items()}

    def number(self, size: Size) -> int:
        return size if isinstance(size, int) else max(dims.evaluate(parse_dim(size, self._symbols), self._least), 0)

    def buffer(self, number: int) -> int:
        record = self._plan.buffers[number]
        if record.size != 0:
            return self.number(record.size)
        kind = parse_type(record.type, self._symbols)
        if not isinstance(kind, TensorType) or kind.dims is None:
            return 0
        return kind.dtype.byte_size(prod(max(dims.evaluate(dim, self._least), 0) for dim in kind.dims))


def _arena(
    plan: PlanRecord,
    sizes: _Sizes,
    touched: Iterable[int],
    body: Sequence[Block],
    given: Sequence[int],
    kept: Sequence[int],
) -> int:
    """The arena of a body, and the scratch memory of its launches."""
    on_device = set(touched)
    staged = [number for number in given if number in on_device]
    lives = {
        root: life
        for root, life in lifetimes(plan.buffers, body, staged, kept).items()
        if root in on_device and (plan.buffers[root].kind == "planned" or root in staged)
    }
    placed = place(
        [sizes.buffer(root) for root in lives],
        [life.start for life in lives.values()],
        [life.end for life in lives.values()],
        _ALIGNMENT,
    )
    scratch = (
        sizes.number(argument.bytes)
        for step in steps_in(body)
        if isinstance(step, LaunchStep)
        for argument in step.arguments
        if isinstance(argument, ScratchArgument)
    )
    return placed.size + sum(scratch)
