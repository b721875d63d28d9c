"""Runs of nothing but fixed launches on arrays of the device: a frame works out once what such a run does.

The launches are one graph. It is captured for the addresses of the inputs, where kernels only read them, and of the
results. A few sets of addresses that come again have graphs of their own, else one that reads the caller's inputs has
its results copied, and for new inputs those are copied to where one graph reads them. Parameters of a graph's nodes are
not changed: that takes a call for each node, a copy of an input one for all.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from argosy.artifact.plan import LaunchStep
from argosy.errors import DeviceError
from argosy.runtime.gpu.array import DeviceArray
from argosy.runtime.gpu.layout import DeviceFrame
from argosy.runtime.gpu.results import ResultMemory
from argosy.runtime.gpu.staged import dense_bytes
from argosy.runtime.nodes import Launches

__all__ = ["Replay", "replay_of"]

_GRAPHS: Final = 8
"""Sets of addresses with a graph of their own; each graph takes about 100 KB."""
_SEEN: Final = 4
"""Sets of addresses that are remembered, to know one that comes again."""
_RECENT: Final = 64
"""Runs for which a graph that was used keeps its place: many sets of addresses by turns are not worth graphs."""
_ALIGNMENT: Final = 256
"""Of buffers in the arena: what kernels may count on."""


@dataclass(frozen=True, slots=True)
class _Input:
    """An input that kernels read: its place among the inputs, its root, where it is copied to, its bytes and shape."""

    place: int
    root: int
    address: int
    size: int
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Output:
    """An output: its root, where kernels write it, its bytes, its shape and element type."""

    root: int
    address: int
    size: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Replay:
    """The work of a frame's runs on arrays of its device."""

    def __init__(
        self, frame: DeviceFrame, steps: Sequence[LaunchStep], inputs: Sequence[int | None], outputs: Sequence[int]
    ) -> None:
        """`inputs` are buffers by place, None where no kernel reads one."""
        symbols, table = frame.layout.symbols, frame.table
        self._frame = frame
        self._steps = steps
        self._inputs = tuple(
            _Input(
                place, table[number].root, frame.locate(number, symbols), dense_bytes(table, number, symbols),
                table[number].shape(symbols),
            )
            for place, number in enumerate(inputs)
            if number is not None
        )  # fmt: skip
        self._outputs = tuple(
            _Output(
                table[number].root, frame.locate(number, symbols), dense_bytes(table, number, symbols),
                table[number].shape(symbols), table[number].dtype.numpy,
            )
            for number in outputs
        )  # fmt: skip
        results = [each.root for each in self._outputs]
        kept = {*results, *(table[number].root for step in steps for number in step.writes)}
        parts = {table[number].root for number in range(len(table)) if table[number].root != number}
        self._direct = tuple(
            each
            for each in self._inputs
            if each.root not in kept and each.root not in parts and each.size == table.bytes(each.root, symbols)
        )
        """Inputs that kernels may read where the caller has them: nothing else lies there or is written there."""
        self._copied = tuple(each for each in self._inputs if each not in self._direct)
        read = {each.root for each in self._inputs}
        self._written = tuple(
            place
            for place, each in enumerate(self._outputs)
            if table[each.root].kind == "planned" and each.root not in read and results.count(each.root) == 1
            if each.size == table.bytes(each.root, symbols)
        )
        """Outputs that kernels may write where a result lies: that is all they are."""
        self._moved = tuple(place for place in range(len(self._outputs)) if place not in self._written)
        self._graphs: OrderedDict[tuple[int, ...], int] = OrderedDict()
        self._used: dict[tuple[int, ...], int] = {}
        """The number of the run that used a graph last."""
        self._runs = 0
        self._seen: deque[tuple[int, ...]] = deque(maxlen=_SEEN)
        self._copying: int | None = None
        self._mark = frame.device.create_event()

    def takes(self, arguments: Sequence[Any]) -> bool:
        """Whether all that kernels read lies on the device, in the shapes of the frame."""
        info = self._frame.device.info
        for each in self._inputs:
            array = arguments[each.place]
            if type(array) is not DeviceArray or array.shape != each.shape:
                return False
            if array.device.info is not info and array.device.info != info:
                return False
        return True

    def run(self, arguments: Sequence[Any], stream: int | None, memory: ResultMemory) -> tuple[Any, ...]:
        """Do a run; its results. It is waited for where there is no `stream`, or where kernels may report faults.

        It comes behind what is in the default stream and in `stream`, whose later work comes behind it.
        """
        frame = self._frame
        device, own = frame.device, frame.stream
        rooms: list[int] = []
        self._runs += 1
        try:
            self._follow(own, 0)
            if stream:
                self._follow(own, stream)
            for other in {arguments[each.place].stream for each in self._inputs} - {None, 0, stream}:
                self._follow(own, other)
            rooms.extend(memory.take(output.size, own, stream) for output in self._outputs)
            read = tuple([arguments[each.place].address for each in self._direct])
            written = tuple([rooms[place] for place in self._written])
            copied, moved = self._copied, self._moved
            graph = self._graph(read, written)
            if graph is None:
                graph, moved = self._graph(read, ()), tuple(range(len(rooms)))
            if graph is None:
                graph, copied = self._copying_graph(), self._inputs
            for each in copied:
                if each.size:
                    device.copy(each.address, arguments[each.place].address, each.size, own)
            device.launch_graph(graph, own)
            for place in moved:
                output = self._outputs[place]
                if output.size:
                    device.copy(rooms[place], output.address, output.size, own)
            results = tuple(
                memory.filled(room, output.shape, output.dtype, stream)
                for room, output in zip(rooms, self._outputs, strict=True)
            )
            rooms.clear()
            if stream is not None:
                self._follow(stream, own)
            if stream is None or frame.faults.steps:
                device.synchronize(own)
        except BaseException:
            with suppress(DeviceError):  # the first error counts
                device.synchronize(own)
            for room, output in zip(rooms, self._outputs, strict=False):
                memory.give(room, output.size)
            raise
        return results

    @contextmanager
    def copies(self, arguments: Sequence[Any]) -> Iterator[dict[int, int]]:
        """Copies of inputs by root, for work that is done again: their own places hold other values in the end."""
        device, stream, made = self._frame.device, self._frame.stream, dict[int, int]()
        try:
            for each in self._direct:
                made[each.root] = device.allocate(each.size)
                argument = arguments[each.place]
                if not each.size:
                    continue
                if isinstance(argument, DeviceArray):
                    device.copy(made[each.root], argument.address, each.size, stream)
                else:
                    held = np.ascontiguousarray(argument).reshape(-1).view(np.uint8)
                    device.upload(made[each.root], held, stream)
                    device.synchronize(stream)
            yield made
        finally:
            for address in made.values():
                device.free(address)

    def _follow(self, stream: int, other: int) -> None:
        """Let later work of a stream wait for what is in another now."""
        device = self._frame.device
        device.record(self._mark, other)
        device.wait(stream, self._mark)

    def _graph(self, read: tuple[int, ...], written: tuple[int, ...]) -> int | None:
        """The graph that reads inputs and writes results there; None for addresses that are new, or not aligned."""
        addresses = read + written
        found = self._graphs.get(addresses)
        if found is not None:
            self._graphs.move_to_end(addresses)
            self._used[addresses] = self._runs
            return found
        if not addresses or any(address % _ALIGNMENT for address in read):
            return None
        if addresses not in self._seen:
            self._seen.append(addresses)
            return None
        if len(self._graphs) >= _GRAPHS:
            oldest = next(iter(self._graphs))
            if self._runs - self._used[oldest] < _RECENT:
                return None
            self._frame.device.synchronize(self._frame.stream)  # it may be running
            self._frame.device.destroy_graph(self._graphs.pop(oldest))
            del self._used[oldest]
        places = {each.root: address for each, address in zip(self._direct, read, strict=True)}
        places.update({self._outputs[place].root: room for place, room in zip(self._written, written, strict=False)})
        made = self._graphs[addresses] = self._captured(places)
        self._used[addresses] = self._runs
        return made

    def _copying_graph(self) -> int:
        if self._copying is None:
            self._copying = self._captured({})
        return self._copying

    def _captured(self, places: Mapping[int, int]) -> int:
        frame = self._frame
        bound = frame.bind(self._steps, places)

        def work() -> None:
            frame.start(bound)
            frame.faults.fetch(frame.stream)

        return frame.captured(work)

    def end(self) -> None:
        """Give graphs back."""
        device = self._frame.device
        for graph in (*self._graphs.values(), *(() if self._copying is None else (self._copying,))):
            device.destroy_graph(graph)
        device.destroy_event(self._mark)


def replay_of(
    frame: DeviceFrame, launches: Launches, inputs: Sequence[int | None], outputs: Sequence[int]
) -> Replay | None:
    """The work of runs on arrays of the device, from a frame's second run on; None before."""
    if frame.replay is None and launches.number in frame.warm:
        frame.replay = Replay(frame, [launch.step for launch in launches.launches], inputs, outputs)
    found: Replay | None = frame.replay
    return found
