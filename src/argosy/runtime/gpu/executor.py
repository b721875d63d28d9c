"""Runs a Plan on a device: launches on device memory, evaluate steps on the host with copies between.

Values that kernels touch lie on the device; `Run` reads and writes them through copies. All else is as on the host:
blocks, symbols, loops and branches are those of `runtime.run`.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from threading import Lock
from typing import Any, Final
from weakref import finalize

import numpy as np

from argosy.artifact.arena import place
from argosy.artifact.decode import Decoder, decode_symbols
from argosy.artifact.lifetimes import lifetimes
from argosy.artifact.plan import Block, CheckStep, LaunchStep, PlanRecord, steps_in
from argosy.drivers.api import DriverError
from argosy.errors import DeviceError, UsageError
from argosy.ir.interpreter import Observer, bind_symbols
from argosy.ir.op import Env
from argosy.ir.types import type_symbols
from argosy.runtime.buffers import BufferTable, Sizes
from argosy.runtime.demands import check_demands
from argosy.runtime.gpu.array import DeviceArray, follow
from argosy.runtime.gpu.device import Device, DeviceMemoryError
from argosy.runtime.gpu.faults import may_fail
from argosy.runtime.gpu.layout import DeviceFrame, DeviceHoldings, DeviceLayout, DeviceWorkspace
from argosy.runtime.gpu.replay import Replay, replay_of
from argosy.runtime.gpu.results import ResultMemory
from argosy.runtime.gpu.run import DeviceRun
from argosy.runtime.gpu.staged import Staging, staged_launches
from argosy.runtime.gpu.store import DeviceStore
from argosy.runtime.gpu.timing import FixedLaunches, fixed_launches
from argosy.runtime.nodes import build_nodes
from argosy.runtime.run import fault_in
from argosy.runtime.shapes import bind_shapes

__all__ = ["DeviceExecutor"]

_ALIGNMENT: Final = 256
_LAYOUTS: Final = 64


class _Body:
    """The blocks of a plan, or of a prepare module, with what lies in the arena and for how long."""

    def __init__(
        self,
        blocks: Sequence[Block],
        plan: PlanRecord,
        table: BufferTable,
        decoder: Decoder,
        where: str,
        on_device: frozenset[int],
        kept: Sequence[int],
        given: Sequence[int] = (),
    ) -> None:
        self.nodes = build_nodes(blocks, table, decoder, where, launches=True)
        self.staged_launches = staged_launches(self.nodes, table, given, kept, on_device) if given else None
        self._given, self._kept, self._on_device = given, kept, on_device
        self.staged = tuple(number for number in given if number in on_device)
        self.checks = [node for node in self.nodes if isinstance(node, CheckStep)]
        self._read = [number if table[number].root in on_device else None for number in given]
        lives = lifetimes(plan.buffers, blocks, self.staged, kept)
        self._table = table
        self._lives = {
            root: life
            for root, life in lives.items()
            if root in on_device and (table[root].kind == "planned" or root in self.staged)
        }
        self._symbols = sorted(set().union(*(table.room_symbols(root) for root in self._lives)) - table.late)
        self._layouts: OrderedDict[tuple[int | None, ...], DeviceLayout] = OrderedDict()
        self._lock = Lock()
        every = {
            name
            for step in steps_in(blocks)
            if isinstance(step, LaunchStep)
            for size in (*step.grid, *(getattr(argument, "value", 0) for argument in step.arguments))
            for name in table.sizes.symbols(size)
        }
        shown = frozenset[str]().union(*(table.type_symbols(number) for number in kept))
        self._key = sorted((every | shown | set(self._symbols)) - table.late)

    def replay(self, frame: DeviceFrame) -> Replay | None:
        """The work of a frame's runs on arrays of the device, where it is known."""
        if frame.replay is not None or self.staged_launches is None:
            known: Replay | None = frame.replay
            return known
        return replay_of(frame, self.staged_launches, self._read, self._kept)

    def layout(self, symbols: Mapping[str, int]) -> DeviceLayout:
        """The layout for these values of the symbols."""
        key = tuple(symbols.get(name) for name in self._key)
        found = self._layouts.get(key)
        if found is None:
            placed = place(
                [self._table.bytes(root, symbols) for root in self._lives],
                [life.start for life in self._lives.values()],
                [life.end for life in self._lives.values()],
                _ALIGNMENT,
            )
            staging = (
                Staging.of(self._table, symbols, self._given, self._kept, self._on_device)
                if self.staged_launches
                else None
            )
            offsets = dict(zip(self._lives, placed.offsets, strict=True))
            found = DeviceLayout(dict(symbols), offsets, placed.size, staging)
            with self._lock:
                self._layouts[key] = found
                if len(self._layouts) > _LAYOUTS:
                    self._layouts.popitem(last=False)
        return found


class DeviceExecutor:
    """A plan made ready on a device. Safe to share between threads: each run has a workspace of its own."""

    def __init__(self, plan: PlanRecord, decoder: Decoder, where: str, device: Device, code: Sequence[bytes]) -> None:
        self._plan = plan
        self._where = where
        self._sizes = Sizes(decoder, where)
        self._table = table = BufferTable(plan, decoder, self._sizes, where)
        self._declared = decode_symbols(plan.symbols)
        self._inputs = tuple(binding.buffer for binding in plan.inputs)
        self._outputs = tuple(binding.buffer for binding in plan.outputs)
        steps = [step for blocks in (plan.body, *(module.body for module in plan.prepare)) for step in steps_in(blocks)]
        launches = [step for step in steps if isinstance(step, LaunchStep)]
        self._on_device = frozenset(table[number].root for step in launches for number in (*step.reads, *step.writes))
        self._may_fail = [step for step in launches if may_fail(step)]
        self._workspaces: deque[DeviceWorkspace] = deque()
        store = self._device = DeviceStore(device)
        self._results = ResultMemory(device)
        store.on_shortage = partial(_end_all, self._workspaces)
        self._holdings = DeviceHoldings(store, initial=[None] * len(plan.buffers))
        before = store.enter()
        try:
            self._load(launches, code)
            self._body = self._made(plan.body, decoder, self._outputs, self._inputs)
            self._hold(decoder)
            for entry in plan.prepare:
                self._prepare(self._made(entry.body, decoder, entry.results), entry.results)
        except DeviceError as error:
            store.release()
            raise error.at(where) from None
        except BaseException:
            store.release()
            raise
        finally:
            store.leave(before)
        finalize(self, store.release)
        self._binding = tuple(
            (number, table[binding.buffer].type, binding.name)
            for number, binding in enumerate(plan.inputs)
            if type_symbols(table[binding.buffer].type)
        )

    def _load(self, launches: Sequence[LaunchStep], code: Sequence[bytes]) -> None:
        modules: dict[int, int] = {}
        functions = self._holdings.functions
        for step in launches:
            if step.code not in modules:
                modules[step.code] = self._device.load(code[step.code])
            if (step.code, step.entry) in functions:
                continue
            try:
                functions[step.code, step.entry] = self._device.function(modules[step.code], step.entry, step.shared)
            except DeviceError as error:
                raise error.at(step.source) from None

    def _made(self, blocks: Sequence[Block], decoder: Decoder, kept: Sequence[int], given: Sequence[int] = ()) -> _Body:
        return _Body(blocks, self._plan, self._table, decoder, self._where, self._on_device, kept, given)

    @property
    def memory(self) -> int:
        """Bytes of device memory that are held now: weights, prepared buffers, arenas, scratch memory."""
        return self._device.memory

    has_streams = True
    """Whether runs can be put into the order of a stream, and take what lies on the device."""

    def run(
        self, arguments: Sequence[Any], env: Env, observe: Observer | None = None, stream: int | None = None
    ) -> tuple[Any, ...]:
        """Results for the arguments, both in the order of the model's inputs and outputs.

        Where an argument lies on the device, or a `stream` is given, results stay there. The run comes behind what is
        in the stream, and later work of that behind the run, which may not have ended when this returns.
        """
        self._bind(arguments, env)
        before = self._device.enter()
        try:
            workspace = self._taken()
            try:
                results = self._run(workspace, arguments, env, observe, stream)
            except DriverError as error:
                with suppress(DriverError):
                    workspace.end()  # what it was doing may not have ended
                raise error.at(self._where) from None
            except DeviceMemoryError as error:
                self._workspaces.append(workspace)
                raise error.at(self._where) from None
            except BaseException:
                self._workspaces.append(workspace)
                raise
            self._workspaces.append(workspace)
            return results
        finally:
            self._device.leave(before)

    @contextmanager
    def fixed_launches(self, arguments: Sequence[Any]) -> Iterator[FixedLaunches]:
        """The launches of a run on these arguments, to be timed or done again, without the copies.

        Raises UsageError where launches depend on what a run computes, or the host takes part.
        """
        launches = self._body.staged_launches
        if launches is None:
            raise UsageError("its runs are not one row of launches known beforehand", where=self._where)
        env = Env()
        self._bind(arguments, env)
        before = self._device.enter()
        try:
            workspace = self._taken()
            try:
                self._run(workspace, arguments, env, None, None)  # gives the launches what they read
                frame = workspace.frame(self._body.layout(env.symbols), self._frame)
                replay = self._body.replay(frame)
                steps = [launch.step for launch in launches.launches]
                try:
                    with ExitStack() as stack:
                        places = stack.enter_context(replay.copies(arguments)) if replay else {}
                        yield stack.enter_context(fixed_launches(frame, steps, places))
                finally:
                    workspace.faults.clear(workspace.stream)
            finally:
                self._workspaces.append(workspace)
        finally:
            self._device.leave(before)

    def _bind(self, arguments: Sequence[Any], env: Env) -> None:
        """Give the symbols of `env` the values that these arguments have."""
        for number, kind, name in self._binding:
            bind_symbols(kind, arguments[number], env, name)
        bind_shapes(self._plan, arguments, env, self._sizes)

    def _run(
        self,
        workspace: DeviceWorkspace,
        arguments: Sequence[Any],
        env: Env,
        observe: Observer | None,
        stream: int | None,
    ) -> tuple[Any, ...]:
        body = self._body
        on_host = stream is None and not any(type(argument) is DeviceArray for argument in arguments)
        if not on_host and observe is None:
            frame = workspace.frame(body.layout(env.symbols), self._frame)
            replay = body.replay(frame)
            if replay is not None and replay.takes(arguments):
                return self._replayed(replay, frame, arguments, env, stream)
        run = self._start(body, workspace, env, observe)
        for number, argument in zip(self._inputs, arguments, strict=True):
            if self._table[number].root in self._on_device:
                self._check(number, argument, env)
        if on_host:
            return self._on_host(run, arguments, observe)
        follow(self._device, workspace.stream, 0)
        if stream:
            follow(self._device, workspace.stream, stream)
        ended = False
        try:
            self._carry_out(run, arguments)
            results = tuple(run.array(number, self._results, stream) for number in self._outputs)
            if stream is not None:
                follow(self._device, stream, workspace.stream)
            ended = stream is None or bool(self._may_fail) or self._body.staged_launches is None
        except BaseException:
            ended = True
            raise
        finally:
            if ended:  # else there is nothing of the run's own that must be given back
                run.end()
        run.check()
        return results

    def _replayed(
        self, replay: Replay, frame: DeviceFrame, arguments: Sequence[Any], env: Env, stream: int | None
    ) -> tuple[Any, ...]:
        """A run of fixed launches whose arguments lie on the device."""
        for check in self._body.checks:
            check_demands(check, self._sizes, env.symbols)
        results = replay.run(arguments, stream, self._results)
        fault = frame.faults.take(frame.stream)
        if fault is not None:
            raise fault_in(*fault, self._table, env.symbols)
        return results

    def _on_host(self, run: DeviceRun, arguments: Sequence[Any], observe: Observer | None) -> tuple[Any, ...]:
        """A run of arguments on the host; its results there."""
        body = self._body
        if body.staged_launches is not None and observe is None:
            results = run.whole(body.nodes, body.staged_launches, arguments)
            if results is not None:
                return results
        try:
            self._carry_out(run, arguments)
            results = tuple(run.kept(number) for number in self._outputs)
        finally:
            run.end()
        run.check()
        return results

    def _carry_out(self, run: DeviceRun, arguments: Sequence[Any]) -> None:
        for number, argument in zip(self._inputs, arguments, strict=True):
            run.write(number, argument)
        with np.errstate(all="ignore"):
            run.nodes(self._body.nodes)

    def _check(self, number: int, argument: Any, env: Env) -> None:
        shape = self._table[number].shape(env.symbols)
        if np.shape(argument) != shape:
            raise UsageError(
                f"expected the shape {list(shape)} with these sizes of the other inputs, "
                f"found {list(np.shape(argument))}",
                where=f"input {self._plan.inputs[self._inputs.index(number)].name!r}",
            )

    def _taken(self) -> DeviceWorkspace:
        try:
            return self._workspaces.pop()
        except IndexError:
            return DeviceWorkspace(self._device, self._may_fail)

    def _start(self, body: _Body, workspace: DeviceWorkspace, env: Env, observe: Observer | None) -> DeviceRun:
        frame = workspace.frame(body.layout(env.symbols), self._frame)
        return DeviceRun(self._table, frame, env, self._holdings, self._on_device, self._declared, observe, self._where)

    def _frame(self, layout: DeviceLayout, workspace: DeviceWorkspace) -> DeviceFrame:
        return DeviceFrame(layout, workspace, self._table, self._holdings)

    def _hold(self, decoder: Decoder) -> None:
        """Get weights, and room for prepared buffers: on the device where kernels touch them, as arrays for others."""
        table, device = self._table, self._device
        stream = device.create_stream()
        waiting: list[Any] = []  # what is copied must stay until it is
        for number, buffer in enumerate(self._plan.buffers):
            root = table[number].root
            if buffer.kind == "weight" and buffer.literal is not None:
                literal = decoder.literal(buffer.literal)
                if root in self._on_device:
                    stored = np.ascontiguousarray(literal.array() if literal.is_splat else literal.stored)
                    held = stored.reshape(-1).view(np.uint8)
                    address = self._holdings.resident[root] = device.allocate(held.nbytes)
                    if held.nbytes:
                        device.upload(address, held, stream)
                    waiting.append(held)
                self._holdings.initial[number] = literal.array()
            elif buffer.kind == "prepared" and root in self._on_device:
                self._holdings.resident[root] = device.allocate(table.bytes(number, {}))
        device.synchronize(stream)
        device.destroy_stream(stream)

    def _prepare(self, body: _Body, results: Sequence[int]) -> None:
        """Run a prepare module; its results are the same for every run."""
        workspace = DeviceWorkspace(self._device, self._may_fail)
        run = self._start(body, workspace, Env(), None)
        run.nodes(body.nodes)
        self._device.synchronize(workspace.stream)
        for number in results:
            if self._table[number].root not in self._on_device:
                self._holdings.initial[number] = run.read(number)
        run.end()
        run.check()
        workspace.end()


def _end_all(workspaces: deque[DeviceWorkspace]) -> bool:
    """Give back what waits for the next run; whether there was anything."""
    ended = False
    while workspaces:
        with suppress(IndexError):
            workspaces.pop().end()
            ended = True
    return ended
