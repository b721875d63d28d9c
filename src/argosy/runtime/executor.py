"""Runs a Plan: its blocks of steps over a table of buffers.

What a plan needs is decoded once; a run holds its values in a list of its own and its memory in a workspace of its
own, so that runs may go on side by side. Steps that follow each other and call kernels are one foreign call; between
such runs of calls, `evaluate` steps see tensors over the same memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final, Protocol

import numpy as np

from argosy.artifact.decode import Decoder, decode_symbols
from argosy.artifact.plan import Block, PlanRecord
from argosy.errors import ArtifactError, UsageError
from argosy.ir.interpreter import Observer, Watcher, bind_symbols
from argosy.ir.literal import Literal
from argosy.ir.op import Env
from argosy.ir.types import type_symbols
from argosy.runtime.body import Body
from argosy.runtime.buffers import BufferTable, Sizes, write_tensor
from argosy.runtime.layout import Code, Frame, Holdings, Resident
from argosy.runtime.memory import ALIGNMENT, MemoryPool, address_of
from argosy.runtime.run import Run, fault_in
from argosy.runtime.shapes import bind_shapes
from argosy.runtime.shared_weights import Prepared, SharedWeights, missing_steps

__all__ = ["Executor", "Runnable"]


_WORTH_POINTING: Final = 4096
"""Bytes of an input from which on it is not copied."""


class Runnable(Protocol):
    """What a session runs: the program itself, or a variant's plan."""

    def run(self, arguments: Sequence[Any], env: Env, observe: Observer | None = None) -> tuple[Any, ...]:
        """Results in the order of the model's outputs."""
        ...


class Executor:
    """A plan prepared for running: ops decoded, weights at hand, prepare modules run. Holds no run's values."""

    def __init__(
        self,
        plan: PlanRecord,
        decoder: Decoder,
        where: str,
        code: Code | None = None,
        *,
        shared: SharedWeights | None = None,
        names: Mapping[int, str] | None = None,
    ) -> None:
        """`shared` are prepared buffers of other variants, `names` the recipes of those that this one prepares."""
        if any(arena.space != "host" for arena in plan.arenas):
            raise ArtifactError("its plan needs device memory", where=where)
        self._plan = plan
        self._where = where
        self._sizes = Sizes(decoder, where)
        self._table = BufferTable(plan, decoder, self._sizes, where)
        self._declared = decode_symbols(plan.symbols)
        self._holdings = Holdings(code, {}, [None] * len(plan.buffers))
        self._pool = MemoryPool(self._holdings.allocate)
        self._inputs = tuple(binding.buffer for binding in plan.inputs)
        self._outputs = tuple(binding.buffer for binding in plan.outputs)
        self._body = self._made_body(plan.body, decoder, given=self._inputs, kept=self._outputs)
        shared, names = shared or SharedWeights(), names or {}
        at_hand = shared.find(names)
        missing = [tuple(number for number in entry.results if number not in at_hand) for entry in plan.prepare]
        blocks = [
            missing_steps(entry.body, results, at_hand) if at_hand else entry.body
            for entry, results in zip(plan.prepare, missing, strict=True)
        ]
        prepare = [self._made_body(made, decoder, kept=kept) for made, kept in zip(blocks, missing, strict=True)]
        for number, prepared in at_hand.items():
            self._holdings.resident[number] = prepared.memory
            self._holdings.initial[number] = prepared.value
        self._hold(decoder, self._body.called.union(*(body.called for body in prepare)))
        for body, results in zip(prepare, missing, strict=True):
            self._prepare(body, results)
        for number in names.keys() - at_hand.keys():
            shared.add(names[number], Prepared(self._holdings.resident[number], self._holdings.initial[number]))
        # Inputs that kernels read, and those that give symbols values; others were checked against their type before.
        self._staged = [(place, self._inputs[place]) for place in range(len(self._inputs)) if self._is_staged(place)]
        self._binding = tuple(
            (place, self._table[binding.buffer].type, binding.name)
            for place, binding in enumerate(plan.inputs)
            if type_symbols(self._table[binding.buffer].type)
        )

    def _made_body(
        self, blocks: Sequence[Block], decoder: Decoder, *, given: Sequence[int] = (), kept: Sequence[int] = ()
    ) -> Body:
        buffers, holdings = self._plan.buffers, self._holdings
        return Body(blocks, buffers, self._table, decoder, holdings, self._where, given=given, kept=kept)

    def _is_staged(self, place: int) -> bool:
        return self._inputs[place] in self._body.staged

    @property
    def memory(self) -> int:
        """Bytes of weights and prepared buffers that kernels read."""
        return sum(held.memory.size for held in self._holdings.resident.values())

    def run(self, arguments: Sequence[Any], env: Env, observe: Observer | None = None) -> tuple[Any, ...]:
        """Results for the arguments, both in the order of the model's inputs and outputs."""
        for place, kind, name in self._binding:
            bind_symbols(kind, arguments[place], env, name)
        if self._plan.shapes:
            bind_shapes(self._plan, arguments, env, self._sizes)
        body = self._body
        workspace = body.take()
        try:
            frame = body.frame(workspace, env.symbols)
            copied = 0
            for place, number in self._staged:
                copied += self._stage(frame, place, number, arguments[place])
            if body.is_plain and observe is None:
                return self._run_plain(frame)
            run = self._start(frame, env, observe)
            for number, argument in zip(self._inputs, arguments, strict=True):
                run.values[number] = argument
            with np.errstate(all="ignore") if body.evaluates else nullcontext():
                run.nodes(body.nodes)
            results = tuple([run.kept(number) for number in self._outputs])
            if isinstance(observe, Watcher):
                observe.copies(copied, inwards=True)
                observe.copies(self._bytes_out(results), inwards=False)
            run.end()
            return results
        finally:
            body.give(workspace)

    def _bytes_out(self, results: Sequence[Any]) -> int:
        """Bytes of the results that were copied out of the memory of a run."""
        reused = [self._table.is_reused(number) for number in self._outputs]
        return sum(result.nbytes for result, copied in zip(results, reused, strict=True) if copied)

    def _stage(self, frame: Frame, place: int, number: int, argument: Any) -> int:
        """Let kernels read an input where it is, or copy it into the arena: the bytes that are copied."""
        tensor = frame.values[number]
        if number in self._body.in_place:
            stays = argument.shape == tensor.shape and _is_readable(argument)
            frame.point(number, address_of(argument) if stays else None)
            if stays:
                return 0
        if tensor is None:  # its elements are packed
            symbols, buffer = frame.layout.symbols, self._table[number]
            shape = buffer.shape(symbols)
            if argument.shape == shape:
                write_tensor(frame.memory(number, symbols), buffer.dtype, argument)
        else:
            shape = tensor.shape
            if argument.shape == shape:  # assignment would broadcast
                tensor[...] = argument
        if argument.shape != shape:
            raise UsageError(
                f"expected the shape {list(shape)} with these sizes of the other inputs, found {list(argument.shape)}",
                where=f"input {self._plan.inputs[place].name!r}",
            )
        return int(argument.nbytes)

    def _run_plain(self, frame: Frame) -> tuple[Any, ...]:
        """A run of nothing but calls."""
        for number, call in enumerate(frame.runs):
            call()
            record = frame.records[number]
            if record.fault:
                step = self._body.fixed[number].calls[record.step].step
                raise fault_in(step, record.fault, record.value, self._table, frame.layout.symbols)
        values = frame.values
        return tuple([values[number].copy() for number in self._outputs])

    def _start(self, frame: Frame, env: Env, observe: Observer | None) -> Run:
        code = self._holdings.code
        return Run(self._table, frame, env, code, self._pool, self._declared, observe, self._where)

    def _hold(self, decoder: Decoder, called: frozenset[int]) -> None:
        """Get weights, and room for prepared buffers: as memory where kernels touch them, as arrays for the others."""
        resident, initial = self._holdings.resident, self._holdings.initial
        for number, buffer in enumerate(self._plan.buffers):
            if buffer.kind == "weight" and buffer.literal is not None:
                literal = decoder.literal(buffer.literal)
                initial[number] = literal.array()
                if number in called:
                    resident[number] = _resident(literal, self._holdings)
            elif buffer.kind == "prepared" and number in called and number not in resident:
                memory = self._holdings.allocate(self._table.bytes(number, {}))
                resident[number] = Resident(memory, address_of(memory))

    def _prepare(self, body: Body, results: Sequence[int]) -> None:
        """Run a prepare module; its results are the same for every run, and read-only."""
        run = self._start(body.frame(body.take(), {}), Env(), None)
        with np.errstate(all="ignore"):
            run.nodes(body.nodes)
        for number in results:
            if self._table.is_settled(number) or number not in self._holdings.resident:
                self._holdings.initial[number] = _frozen(run.read(number))
        run.end()


def _is_readable(argument: Any) -> bool:
    """Whether kernels can read an array as it lies, and copying it takes longer than to tell them where it is."""
    flags = argument.flags
    return bool(argument.nbytes >= _WORTH_POINTING and flags.c_contiguous and flags.aligned and argument.dtype.isnative)


def _resident(literal: Literal, holdings: Holdings) -> Resident:
    """The bytes of a weight as kernels read them: as they are stored, where that is dense and aligned."""
    if not literal.is_splat:
        memory = literal.stored.view(np.uint8)
        if address_of(memory) % ALIGNMENT == 0:
            memory = memory if holdings.code is None else holdings.code.adopt(memory)
            return Resident(memory, address_of(memory))
    copied = holdings.allocate(literal.dtype.byte_size(literal.size))
    if literal.is_splat:
        write_tensor(copied, literal.dtype, literal.array())
    else:
        np.copyto(copied, literal.stored.view(np.uint8))
    return Resident(copied, address_of(copied))


def _frozen(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value
