"""Where everything lies on a device for one set of sizes, and the frames that fix it to one arena.

A *layout* packs the planned buffers; a *frame* is a layout in the arena of one workspace, with the launches of each run
of fixed launches ready: done one by one the first time, and as a captured graph from then on.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.artifact.plan import HiddenArgument, LaunchStep, PointerArgument, ScalarArgument, ScratchArgument
from argosy.errors import ArtifactError
from argosy.runtime.buffers import BufferTable
from argosy.runtime.gpu.device import Device
from argosy.runtime.gpu.faults import FaultWords

__all__ = ["Bound", "DeviceFrame", "DeviceHoldings", "DeviceLayout", "DeviceWorkspace", "bind_launch"]

_FRAMES: Final = 16
_FORMATS: Final = {"int32": "i", "int64": "q", "uint32": "I", "uint64": "Q", "float32": "f", "float64": "d"}
_LONGEST: Final = 2**31 - 1
_WIDEST: Final = 65535


@dataclass(frozen=True, slots=True)
class DeviceHoldings:
    """What stays for the life of a session: the device, kernels by code object, addresses of weights by root."""

    device: Device
    functions: dict[tuple[int, str], int] = field(default_factory=dict)
    resident: dict[int, int] = field(default_factory=dict)
    initial: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceLayout:
    """One set of sizes: offsets of planned buffers in the arena by root, and the arena's bytes."""

    symbols: Mapping[str, int]
    offsets: Mapping[int, int]
    arena: int


@dataclass(frozen=True, slots=True)
class Bound:
    """A launch with all that the driver needs."""

    function: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    parameters: bytes


def bind_launch(
    step: LaunchStep,
    function: int,
    table: BufferTable,
    symbols: Mapping[str, int],
    locate: Callable[[int], int],
    scratch: Callable[[int], int],
    faults: FaultWords,
) -> Bound | None:
    """A launch on these sizes; None where there is nothing to do. `locate` gives addresses, `scratch` memory."""
    sizes = table.sizes
    x, y, z = (sizes.number(size, symbols) for size in step.grid)
    if x == 0 or y == 0 or z == 0:
        return None
    if x > _LONGEST or y > _WIDEST or z > _WIDEST:
        raise ArtifactError(f"a grid of {x} x {y} x {z} programs is more than a device takes", where=step.source)
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
                address = scratch(sizes.number(argument.bytes, symbols))
                struct.pack_into("<Q", block, argument.offset, address)
            case HiddenArgument(name="fault"):
                struct.pack_into("<Q", block, argument.offset, faults.address(step))
            case _:
                raise ArtifactError(f"a launch takes a {type(argument).__name__}", where=step.source or step.entry)
    return Bound(function, (x, y, z), step.block, step.shared, bytes(block))


class DeviceWorkspace:
    """The memory and the queue of one run at a time."""

    def __init__(self, device: Device, may_fail: Sequence[LaunchStep] = ()) -> None:
        self.device = device
        self.stream = device.create_stream()
        self.faults = FaultWords(device, may_fail, self.stream)
        self._arena = 0
        self._room = 0
        self._frames: OrderedDict[int, DeviceFrame] = OrderedDict()

    def frame(self, layout: DeviceLayout, build: Callable[[DeviceLayout, DeviceWorkspace], DeviceFrame]) -> DeviceFrame:
        """The frame of a layout in this memory, made where it is new."""
        found = self._frames.get(id(layout))
        if found is not None:
            self._frames.move_to_end(id(layout))
            return found
        if layout.arena > self._room:
            self._drop(list(self._frames))  # they point into the arena that goes
            if self._room:
                self.device.free(self._arena)
                self._arena, self._room = 0, 0
            self._arena = self.device.allocate(layout.arena)
            self._room = layout.arena
        frame = self._frames[id(layout)] = build(layout, self)
        if len(self._frames) > _FRAMES:
            self._drop([next(iter(self._frames))])
        return frame

    def _drop(self, keys: Sequence[int]) -> None:
        for key in keys:
            self._frames.pop(key).end()

    @property
    def arena(self) -> int:
        """Where the arena is."""
        return self._arena

    def end(self) -> None:
        """Give everything back."""
        self._drop(list(self._frames))
        if self._room:
            self.device.free(self._arena)
        self.faults.end()
        self.device.destroy_stream(self.stream)


class DeviceFrame:
    """A layout in the arena of a workspace. `values` are those that a run begins with, by buffer."""

    def __init__(
        self, layout: DeviceLayout, workspace: DeviceWorkspace, table: BufferTable, holdings: DeviceHoldings
    ) -> None:
        self.layout = layout
        self.device = workspace.device
        self.stream = workspace.stream
        self.faults = workspace.faults
        self.values = list(holdings.initial)
        self._table = table
        self._holdings = holdings
        self._arena = workspace.arena
        self._graphs: dict[int, int] = {}
        self._scratch: list[int] = []
        self._warm: set[int] = set()

    def locate(self, number: int, symbols: Mapping[str, int]) -> int:
        """The address of a buffer that is planned or stays."""
        root = self._table[number].root
        held = self._holdings.resident.get(root)
        start = held if held is not None else self._arena + self.layout.offsets[root]
        return start + (self._table.shift(number, symbols) if number != root else 0)

    def scratch(self, size: int) -> int:
        """Memory that lives as long as this frame."""
        self._scratch.append(self.device.allocate(size))
        self.device.fill(self._scratch[-1], size, self.stream)
        return self._scratch[-1]

    def launch(self, number: int, steps: Sequence[LaunchStep]) -> None:
        """Do the fixed launches that are number `number` of the plan: as one graph from the second time on."""
        graph = self._graphs.get(number)
        if graph is not None:
            self.device.launch_graph(graph, self.stream)
            return
        symbols = self.layout.symbols
        bound = [
            bind_launch(
                step, self._holdings.functions[step.code, step.entry], self._table, symbols,
                lambda buffer: self.locate(buffer, symbols), self.scratch, self.faults,
            )
            for step in steps
        ]  # fmt: skip
        capture = number in self._warm and len(steps) > 1
        if capture:
            self.device.begin_capture(self.stream)
        for each in bound:
            if each is not None:
                self.device.launch(each.function, each.grid, each.block, each.shared, self.stream, each.parameters)
        if capture:
            self._graphs[number] = self.device.end_capture(self.stream)
            self.device.launch_graph(self._graphs[number], self.stream)
        self._warm.add(number)

    def end(self) -> None:
        """Give graphs and scratch memory back."""
        for graph in self._graphs.values():
            self.device.destroy_graph(graph)
        for address in self._scratch:
            self.device.free(address)
