"""Where everything lies on a device for one set of sizes, and the frames that fix it to one arena.

A *layout* packs the planned buffers; a *frame* is a layout in the arena of one workspace, with the launches of each run
of fixed launches ready: done one by one the first time, and as a captured graph from then on.
"""

from __future__ import annotations

import math
import struct
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from argosy.artifact.plan import (
    HiddenArgument,
    LaunchStep,
    PointerArgument,
    ScalarArgument,
    ScratchArgument,
    TensorMapArgument,
)
from argosy.drivers.api import DriverError
from argosy.errors import ArtifactError, DeviceError
from argosy.runtime.buffers import BufferTable
from argosy.runtime.gpu.faults import FaultWords
from argosy.runtime.gpu.staged import Staging
from argosy.runtime.gpu.store import DeviceStore
from argosy.runtime.memory import Bytes

__all__ = ["Bound", "DeviceFrame", "DeviceHoldings", "DeviceLayout", "DeviceWorkspace", "bind_launch"]

_FRAMES: Final = 16
_FORMATS: Final = {"int32": "i", "int64": "q", "uint32": "I", "uint64": "Q", "float32": "f", "float64": "d"}
_LONGEST: Final = 2**31 - 1
_WIDEST: Final = 65535
_USUAL_THREADS: Final = 128
_NOTHING: Final[Bytes] = np.empty(0, np.uint8)


@dataclass(frozen=True, slots=True)
class DeviceHoldings:
    """What stays for the life of a session: the device, kernels by code object, addresses of weights by root."""

    device: DeviceStore
    functions: dict[tuple[int, str], int] = field(default_factory=dict)
    resident: dict[int, int] = field(default_factory=dict)
    initial: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceLayout:
    """One set of sizes: offsets of planned buffers in the arena by root, and the arena's bytes.

    `staging` is there where a run on these sizes can be one graph.
    """

    symbols: Mapping[str, int]
    offsets: Mapping[int, int]
    arena: int
    staging: Staging | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """A launch with all that the driver needs, and the place in the model that it is for."""

    source: str
    function: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    parameters: bytes
    programmatic: bool = False


def bind_launch(
    step: LaunchStep,
    function: int,
    table: BufferTable,
    symbols: Mapping[str, int],
    locate: Callable[[int], int],
    scratch: Callable[[ScratchArgument, int], int],
    faults: FaultWords,
    device: DeviceStore,
) -> Bound | None:
    """A launch on these sizes; None where there is nothing to do. `locate` gives addresses, `scratch` memory."""
    sizes = table.sizes
    x, y, z = (sizes.number(size, symbols) for size in step.grid)
    if x == 0 or y == 0 or z == 0:
        return None
    if x > _LONGEST or y > _WIDEST or z > _WIDEST:
        raise DeviceError(
            f"a grid of {x} x {y} x {z} programs is more than a device takes, {_LONGEST} x {_WIDEST} x {_WIDEST}",
            where=step.source or step.entry,
            hint="run with smaller sizes",
        )
    block = bytearray(step.parameter_bytes)
    for argument in step.arguments:
        match argument:
            case PointerArgument():
                address = locate(argument.buffer) + sizes.number(argument.shift, symbols)
                struct.pack_into("<Q", block, argument.offset, address)
            case ScalarArgument():
                form = _FORMATS.get(argument.dtype)
                if form is None:
                    raise ArtifactError(f"a size is passed as {argument.dtype}", where=step.source or step.entry)
                struct.pack_into(f"<{form}", block, argument.offset, sizes.number(argument.value, symbols))
            case ScratchArgument():
                address = scratch(argument, sizes.number(argument.bytes, symbols))
                struct.pack_into("<Q", block, argument.offset, address)
            case TensorMapArgument():
                dims = [sizes.number(size, symbols) for size in argument.dims]
                strides = [sizes.number(size, symbols) for size in argument.strides]
                made = device.tensor_map(argument, locate(argument.buffer), dims, strides)
                block[argument.offset : argument.offset + len(made)] = made
            case HiddenArgument(name="fault"):
                struct.pack_into("<Q", block, argument.offset, faults.address(step))
            case _:
                raise ArtifactError(f"a launch takes a {type(argument).__name__}", where=step.source or step.entry)
    where = step.source or step.entry
    return Bound(where, function, (x, y, z), step.block, step.shared, bytes(block), step.programmatic)


class DeviceWorkspace:
    """The memory and the queue of one run at a time."""

    def __init__(self, device: DeviceStore, may_fail: Sequence[LaunchStep] = ()) -> None:
        self.device = device
        self.stream = device.create_stream()
        try:
            self.faults = FaultWords(device, may_fail, self.stream)
        except DeviceError:
            device.destroy_stream(self.stream)
            raise
        self.arena = 0
        self.staging = _NOTHING
        self._room = 0
        self._frames: OrderedDict[int, DeviceFrame] = OrderedDict()

    def frame(self, layout: DeviceLayout, build: Callable[[DeviceLayout, DeviceWorkspace], DeviceFrame]) -> DeviceFrame:
        """The frame of a layout in this memory, made where it is new."""
        found = self._frames.get(id(layout))
        if found is not None:
            self._frames.move_to_end(id(layout))
            return found
        staged = layout.staging.size if layout.staging else 0
        if layout.arena > self._room or staged > self.staging.size:
            self._drop(list(self._frames))  # they point into the memory that goes
        if layout.arena > self._room:
            self._free_arena()
            self.arena = self.device.allocate(layout.arena)
            self._room = layout.arena
        if staged > self.staging.size:
            self._free_staging()
            self.staging = self.device.allocate_host(staged)
        frame = self._frames[id(layout)] = build(layout, self)
        if len(self._frames) > _FRAMES:
            self._drop([next(iter(self._frames))])
        return frame

    def _drop(self, keys: Sequence[int]) -> None:
        if keys:
            self.device.synchronize(self.stream)  # nobody may have waited for the last run
        for key in keys:
            self._frames.pop(key).end()

    def _free_arena(self) -> None:
        if self._room:
            arena, self.arena, self._room = self.arena, 0, 0
            self.device.free(arena)

    def _free_staging(self) -> None:
        if self.staging.size:
            staging, self.staging = self.staging, _NOTHING
            self.device.free_host(staging)

    def end(self) -> None:
        """Give everything back."""
        self._drop(list(self._frames))
        self._free_arena()
        self._free_staging()
        self.faults.end()
        self.device.destroy_stream(self.stream)


class DeviceFrame:
    """A layout in the arena of a workspace. `values` are those that a run begins with, by buffer.

    `warm` are the rows of launches that have been done, for what is captured must have been loaded before; `whole` is
    the graph of a whole run, `replay` the work of runs on arrays of the device.
    """

    def __init__(
        self, layout: DeviceLayout, workspace: DeviceWorkspace, table: BufferTable, holdings: DeviceHoldings
    ) -> None:
        self.layout = layout
        self.device = workspace.device
        self.stream = workspace.stream
        self.faults = workspace.faults
        self.staging = workspace.staging
        self.values = list(holdings.initial)
        self.table = table
        self._holdings = holdings
        self._arena = workspace.arena
        self._graphs: dict[int, int] = {}
        self.whole: int | None = None
        self.replay: Any = None
        self._scratch: dict[int, int] = {}
        self.warm: set[int] = set()

    def locate(self, number: int, symbols: Mapping[str, int]) -> int:
        """The address of a buffer that is planned or stays."""
        root = self.table[number].root
        held = self._holdings.resident.get(root)
        start = held if held is not None else self._arena + self.layout.offsets[root]
        return start + (self.table.shift(number, symbols) if number != root else 0)

    def _memory(self, argument: ScratchArgument, size: int) -> int:
        """Memory of a launch that lives as long as this frame, zero but for what the launch itself leaves there."""
        address = self._scratch.get(id(argument))
        if address is None:
            address = self._scratch[id(argument)] = self.device.allocate(size)
            self.device.fill(address, size, self.stream)
        return address

    def bind(self, steps: Sequence[LaunchStep], places: Mapping[int, int] = MappingProxyType({})) -> list[Bound]:
        """Fixed launches with their places in this frame, but for roots in `places`, which lie there."""
        symbols = self.layout.symbols
        bound = [
            bind_launch(
                step, self._holdings.functions[step.code, step.entry], self.table, symbols,
                lambda buffer: places.get(buffer) or self.locate(buffer, symbols), self._memory, self.faults,
                self.device,
            )
            for step in steps
        ]  # fmt: skip
        return [each for each in bound if each is not None]

    def _is_small(self, bound: Bound) -> bool:
        """Whether a launch leaves room for another: programs that wait take it from ones that work (H200: 6 % lost).

        It has a program for each unit, or no more threads than such programs of usual size.
        """
        programs, units = math.prod(bound.grid), self.device.info.units
        return programs <= units or programs * math.prod(bound.block) <= units * _USUAL_THREADS

    def start(self, bound: Sequence[Bound]) -> None:
        """Start launches. Raises DeviceError with the place in the model of one that the driver or emulator refuses."""
        before: Bound | None = None  # in front of the first is a copy, which has ended when a kernel behind it begins
        for each in bound:
            early = each.programmatic and before is not None and self._is_small(each) and self._is_small(before)
            before = each
            try:
                self.device.launch(
                    each.function, each.grid, each.block, each.shared, self.stream, each.parameters,
                    programmatic=early,
                )  # fmt: skip
            except DeviceError as error:
                raise error.at(each.source) from None

    def launch(self, number: int, steps: Sequence[LaunchStep]) -> None:
        """Do the fixed launches that are number `number` of the plan: as one graph from the second time on."""
        graph = self._graphs.get(number)
        if graph is None and number in self.warm and len(steps) > 1:
            bound = self.bind(steps)
            graph = self._graphs[number] = self.captured(lambda: self.start(bound))
        if graph is not None:
            self.device.launch_graph(graph, self.stream)
            return
        self.start(self.bind(steps))
        self.warm.add(number)

    def captured(self, work: Callable[[], None]) -> int:
        """The graph of what `work` puts into the queue."""
        self.device.begin_capture(self.stream)
        try:
            work()
        except BaseException:
            with suppress(DriverError):  # the first error counts
                self.device.destroy_graph(self.device.end_capture(self.stream))
            raise
        return self.device.end_capture(self.stream)

    def end(self) -> None:
        """Give graphs and scratch memory back."""
        if self.replay is not None:
            self.replay.end()
        for graph in (*self._graphs.values(), *(() if self.whole is None else (self.whole,))):
            self.device.destroy_graph(graph)
        for address in self._scratch.values():
            self.device.free(address)
