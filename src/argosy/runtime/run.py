"""One run of a body: the values of its buffers, and the nodes carried out one after the other.

A buffer's value is a numpy tensor or another Python object. That of a buffer in memory is a tensor over the memory;
where shape or place depend on data, or elements are packed, it is None until it is asked for, and again after a
kernel wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np

from argosy.artifact.plan import (
    CallStep,
    CarriedRecord,
    CheckStep,
    CollectedRecord,
    CopyStep,
    LaunchStep,
    RunStep,
    ScalarArgument,
    ShapeStep,
)
from argosy.errors import ArgosyError, ArtifactError, InternalError
from argosy.ir import dim as dims
from argosy.ir.dim import Symbol
from argosy.ir.interpreter import Observer, Watcher, evaluate
from argosy.ir.op import Env
from argosy.ir.philox import draw_number
from argosy.ir.types import TensorType, map_dims
from argosy.runtime.buffers import Buffer, BufferTable, read_tensor, write_tensor
from argosy.runtime.demands import check_demands
from argosy.runtime.host_abi import STEP_WORDS, RunRecord, fault_error
from argosy.runtime.layout import Code, Frame, chunk_number, write_block
from argosy.runtime.memory import Bytes, MemoryPool, address_of
from argosy.runtime.nodes import Branch, Call, Calls, Evaluation, Launches, Loop, Node

__all__ = ["Run", "Written", "fault_in"]


def fault_in(
    step: CallStep | LaunchStep, fault: int, value: int, table: BufferTable, symbols: Mapping[str, int]
) -> ArgosyError:
    """The error for what a kernel reported; it tells what the kernel read, tensors or sizes alone."""
    reads = [_told(table[number], symbols) for number in step.reads] or [
        f"{argument.value} = {table.sizes.number(argument.value, symbols)}"
        for argument in step.arguments
        if isinstance(argument, ScalarArgument) and isinstance(argument.value, str)
    ]
    error = fault_error(fault, value, step.source or step.entry)
    return error.advise(f"it read {', '.join(reads)}") if reads else error


def _told(buffer: Buffer, symbols: Mapping[str, int]) -> str:
    """The type of a buffer with the sizes that it has now."""
    kind = buffer.type
    return str(map_dims(kind, lambda dim: dims.substitute(dim, symbols)))


class Written(Sequence[Any]):
    """What a call wrote, copied when it is asked for: who only watches the clock pays nothing."""

    def __init__(self, run: Run, numbers: Sequence[int]) -> None:
        self._run = run
        self._numbers = numbers

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self._run.written(number) for number in self._numbers[index]]
        return self._run.written(self._numbers[index])

    def __len__(self) -> int:
        return len(self._numbers)


class Run:
    """The state of a run. `values` are of buffers, by number."""

    def __init__(
        self,
        table: BufferTable,
        frame: Frame,
        env: Env,
        code: Code | None,
        pool: MemoryPool,
        declared: Mapping[str, Symbol],
        observe: Observer | None,
        where: str,
    ) -> None:
        self._start(table, frame.values.copy(), env, declared, observe, where)
        self.frame = frame
        self._code = code
        self._pool = pool
        self._pooled: dict[int, Bytes] = {}
        self._taken: list[Bytes] = []

    def _start(
        self,
        table: BufferTable,
        values: list[Any],
        env: Env,
        declared: Mapping[str, Symbol],
        observe: Observer | None,
        where: str,
    ) -> None:
        """What runs on any device begin with."""
        self.values = values
        self._table = table
        self._env = env
        self._declared = declared
        self._observe = observe
        self._watcher = observe if isinstance(observe, Watcher) else Watcher()
        self._where = where

    def end(self) -> None:
        """Give pooled memory back."""
        for block in self._taken:
            self._pool.give(block)
        self._taken.clear()

    def read(self, number: int) -> Any:
        """The value of a buffer. Tensors in memory are good until that is written again."""
        value = self.values[number]
        if value is None and self._table[number].in_memory:
            buffer = self._table[number]
            shape = buffer.shape(self._env.symbols)
            value = self.values[number] = read_tensor(self._memory(number), buffer.dtype, shape)
        return value

    def kept(self, number: int) -> Any:
        """The value of a buffer for good: tensors in the memory of the run are copied."""
        value = self.read(number)
        return np.array(value) if self._table.is_reused(number) else value

    def write(self, number: int, value: Any) -> None:
        """Make a buffer hold a value; one that is no buffer in memory takes it as it is."""
        table = self._table
        buffer = table[number]
        if not buffer.in_memory or (buffer.kind == "prepared" and not self.frame.holds(number)):
            self.values[number] = value
            return
        for other in table.unsettled(buffer.root):
            self.values[other] = None
        if not table.is_settled(number):
            memory = self._memory(number, buffer.dtype.byte_size(np.size(value)))
            self.values[number] = write_tensor(memory, buffer.dtype, value)
            return
        place = self.values[number]
        if np.shape(value) != place.shape or value.dtype != place.dtype:
            found = f"{np.asarray(value).dtype}{list(np.shape(value))}"
            raise InternalError(f"a value {found} goes to a buffer of {buffer.type}, {list(place.shape)}")
        np.copyto(place, value)

    def nodes(self, nodes: Sequence[Node]) -> None:
        """Carry out nodes in order."""
        for node in nodes:
            match node:
                case Calls():
                    self._calls(node)
                case Launches():
                    self._launches(node)
                case Evaluation():
                    self._evaluation(node)
                case CopyStep():
                    self.write(node.destination, self._moved(node.origin, node.destination))
                case ShapeStep():
                    self._bind(node)
                case CheckStep():
                    check_demands(node, self._table.sizes, self._env.symbols)
                case RunStep():
                    number = draw_number(self._env.run, self._env.iterations)
                    self.write(node.buffer, np.asarray(number, np.uint64).view(np.int64))
                case Branch():
                    condition = bool(np.reshape(self.read(node.condition), ()))
                    self.nodes(node.then if condition else node.otherwise)
                case Loop():
                    self._loop(node)

    # ------------------------------------------------------------------------------------- memory

    def _memory(self, number: int, least: int = 0) -> Bytes:
        """The bytes from a buffer's start to the end of its root; a pooled one gets at least `least`."""
        buffer, symbols = self._table[number], self._env.symbols
        if buffer.kind != "pooled":
            return self.frame.memory(number, symbols)
        shift = self._table.shift(number, symbols)
        return self._allocate(buffer.root, shift + least)[shift:]

    def _allocate(self, root: int, least: int = 0) -> Bytes:
        """The block of a pooled buffer: the one that it has where that is large enough."""
        size = least
        if self._table.room_symbols(root) <= self._env.symbols.keys():
            size = max(size, self._table.bytes(root, self._env.symbols))
        block = self._pooled.get(root)
        if block is None or block.size < size:
            block = self._pooled[root] = self._pool.take(size)
            self._taken.append(block)
        return block

    def _locate(self, number: int) -> tuple[int, bool]:
        buffer, symbols = self._table[number], self._env.symbols
        if buffer.kind != "pooled":
            return self.frame.locate(number, symbols), False
        return address_of(self._allocate(buffer.root)) + self._table.shift(number, symbols), False

    # -------------------------------------------------------------------------------------- nodes

    def _calls(self, node: Calls) -> None:
        for root in node.pooled:
            self._allocate(root)
        for number in node.stale:
            self.values[number] = None
        if self._observe is not None:
            self._observed_calls(node, self._observe)
        elif node.number is not None:
            self.frame.runs[node.number]()
            self._check(node, self.frame.records[node.number])
        else:
            self._check(node, self._call_now(node.calls))

    def _launches(self, node: Launches) -> None:
        raise InternalError(f"{len(node.launches)} launches on a host", where=self._where)

    def _check(self, calls: Calls, record: RunRecord) -> None:
        if record.fault:
            step = calls.calls[record.step].step
            raise fault_in(step, record.fault, record.value, self._table, self._env.symbols)

    def _observed_calls(self, node: Calls, observe: Observer) -> None:
        """Each call on its own, so that whoever watches sees when it ends and what it wrote."""
        for index, call in enumerate(node.calls):
            written = Written(self, call.step.writes)
            if node.number is not None:
                record = self.frame.step_record(node.number, index)
                work = self._code_at_hand().bind(record)
                self._watcher.begins(call.instruction)
                work()
            else:
                self._watcher.begins(call.instruction)
                record = self._call_now((call,))
            record.step = index
            self._check(node, record)
            observe(call.instruction, written)

    def written(self, number: int) -> Any:
        """What a kernel wrote, its axes in their own order, as far as it is a dense tensor; None elsewhere."""
        table, symbols = self._table, self._env.symbols
        buffer = table[number]
        dense = isinstance(buffer.type, TensorType) and buffer.type.dims is not None
        if not dense or buffer.order is None or not (buffer.size == 0 or table.is_dense(number, symbols)):
            return None
        value = self.kept(number)
        if not buffer.order:
            return value
        return value.reshape([value.shape[axis] for axis in buffer.order]).transpose(np.argsort(buffer.order))

    def _code_at_hand(self) -> Code:
        if self._code is None:
            raise InternalError("calls without code", where=self._where)
        return self._code

    def _call_now(self, calls: Sequence[Call]) -> RunRecord:
        """Make calls whose sizes or places depend on data: their parameter blocks are written now."""
        code, symbols, sizes = self._code_at_hand(), self._env.symbols, self._table.sizes
        blocks = bytearray()
        rows = []
        for call in calls:
            begin = len(blocks)
            write_block(blocks, call, self._table, symbols, self._locate)
            rows.append((code.address(call.step.code, call.step.entry), begin, call.step.chunks))
        room = self._pool.take(len(blocks) + 8 * STEP_WORDS * len(rows))
        room[: len(blocks)] = np.frombuffer(blocks, np.uint8)
        base = address_of(room)
        steps = [
            (kernel, base + begin, chunk_number(sizes.number(chunks, symbols), code.threads))
            for kernel, begin, chunks in rows
        ]
        table = np.asarray(steps, np.int64).view(np.uint8).reshape(-1)
        room[len(blocks) : len(blocks) + table.size] = table
        record = self.frame.record(base + len(blocks), len(rows))
        code.bind(record)()
        self._pool.give(room)
        return record

    def _evaluation(self, node: Evaluation) -> None:
        self._watcher.begins(node.instruction)
        take = self.kept if node.owned else self.read
        inputs = [None if number is None else take(number) for number in node.operands]
        results = evaluate(node.instruction, self._env, inputs)
        for number, result in zip(node.results, results, strict=True):
            self.write(number, result)
        if self._observe is not None:
            self._observe(node.instruction, results)

    def _bind(self, step: ShapeStep) -> None:
        value = self.read(step.buffer)
        size = np.shape(value)[step.axis] if step.axis is not None else int(np.reshape(value, -1)[step.element])
        symbol = self._declared.get(step.symbol)
        if symbol is not None and (size < symbol.lower or (symbol.upper is not None and size > symbol.upper)):
            raise ArtifactError(f"{step.symbol} = {size} is out of its bounds", where=self._where)
        self._env.symbols[step.symbol] = size

    def _scalar(self, number: int | None) -> Any:
        return None if number is None else np.reshape(self.read(number), ()).item()

    def _loop(self, node: Loop) -> None:
        block = node.block
        limit, go = self._scalar(block.trip_count), self._scalar(block.condition)
        for carried in block.carried:
            self.write(carried.current, self._moved(carried.initial, carried.current))
        collected: list[list[Any]] = [[] for _ in block.collected]
        outer = self._env
        iteration = 0
        while go is not False and (limit is None or iteration < limit):
            if block.iteration is not None:
                self.write(block.iteration, self._iteration(block.iteration, iteration))
            self._env = Env(outer.symbols, outer.run, (*outer.iterations, iteration))  # a plan's symbols are of the run
            self.nodes(node.body)
            for store, entry in zip(collected, block.collected, strict=True):
                store.append(self.kept(entry.element))
            go = self._scalar(block.next_condition)
            self._advance(block.carried)
            iteration += 1
        self._env = outer
        for carried in block.carried:
            self.write(carried.final, self._moved(carried.current, carried.final))
        for store, entry in zip(collected, block.collected, strict=True):
            self.write(entry.result, self._stacked(store[::-1] if entry.reverse else store, entry))

    def _advance(self, carried: Sequence[CarriedRecord]) -> None:
        """Every `next` becomes `current`, as if at once."""
        roots = {self._table[entry.current].root for entry in carried}
        following = [
            self.kept(entry.next) if self._table[entry.next].root in roots else self._moved(entry.next, entry.current)
            for entry in carried
        ]
        for entry, value in zip(carried, following, strict=True):
            self.write(entry.current, value)

    def _moved(self, origin: int, destination: int) -> Any:
        """The value of `origin` for `destination`, which copies it where it is in memory."""
        return self.kept(origin) if self._table.is_kept(destination) else self.read(origin)

    def _iteration(self, number: int, iteration: int) -> Any:
        kind = self._table[number].type
        dtype = kind.dtype.numpy if isinstance(kind, TensorType) else np.int64
        value = np.asarray(iteration, dtype)
        return value if not isinstance(kind, TensorType) or kind.dims is None else value.reshape((1,) * len(kind.dims))

    def _stacked(self, elements: list[Any], entry: CollectedRecord) -> Any:
        if elements:
            return np.stack(elements, entry.axis)
        kind = self._table[entry.result].tensor
        # What only an iteration could tell counts as empty.
        bound = [dims.substitute(size, self._env.symbols) for size in kind.shape]
        shape = [size if isinstance(size, int) else 0 for size in bound]
        shape[entry.axis] = 0
        return np.empty(shape, kind.dtype.numpy)
