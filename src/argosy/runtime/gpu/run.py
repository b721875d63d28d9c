"""One run on a device: values that kernels touch are read and written through copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from argosy.artifact.plan import CheckStep, LaunchStep, ScratchArgument
from argosy.errors import InternalError, UsageError
from argosy.ir.dim import Symbol
from argosy.ir.interpreter import Observer
from argosy.ir.literal import pack_bits, unpack_bits
from argosy.ir.op import Env
from argosy.runtime.buffers import BufferTable
from argosy.runtime.demands import check_demands
from argosy.runtime.gpu.array import DeviceArray, follow
from argosy.runtime.gpu.layout import DeviceFrame, DeviceHoldings, bind_launch
from argosy.runtime.gpu.results import ResultMemory
from argosy.runtime.gpu.whole import run_whole, whole_graph
from argosy.runtime.nodes import Launches, Node
from argosy.runtime.run import Run, Written, fault_in

__all__ = ["DeviceRun"]


class DeviceRun(Run):
    """The state of a run on a device."""

    def __init__(
        self,
        table: BufferTable,
        frame: DeviceFrame,
        env: Env,
        holdings: DeviceHoldings,
        on_device: frozenset[int],
        declared: Mapping[str, Symbol],
        observe: Observer | None,
        where: str,
    ) -> None:
        self._start(table, list(frame.values), env, declared, observe, where)
        self._device_frame = frame
        self._holdings = holdings
        self._on_device = on_device
        self._shapes: dict[int, tuple[int, ...]] = {}
        """Shapes of tensors that came from the host: they may tell the symbols of the buffer's type."""
        self._pools: dict[int, tuple[int, int]] = {}
        self._freed: list[int] = []
        self._fault: tuple[LaunchStep, int, int] | None = None

    def end(self) -> None:
        """Wait for the device, and give pooled memory back."""
        frame = self._device_frame
        try:
            frame.faults.fetch(frame.stream)
            frame.device.synchronize(frame.stream)
        finally:
            for address in (*self._freed, *(address for address, _ in self._pools.values())):
                frame.device.free(address)
            self._freed.clear()
            self._pools.clear()
        self._fault = self._fault or frame.faults.take(frame.stream)

    def whole(self, nodes: Sequence[Node], launches: Launches, arguments: Sequence[Any]) -> tuple[Any, ...] | None:
        """Do the run as one graph; its results. None where there is no such graph yet."""
        frame, staging = self._device_frame, self._device_frame.layout.staging
        graph = whole_graph(frame, launches)
        if graph is None or staging is None:
            return None
        for node in nodes:
            if isinstance(node, CheckStep):
                check_demands(node, self._table.sizes, self._env.symbols)
        results = run_whole(frame, staging, graph, arguments)
        self._fault = frame.faults.take(frame.stream)
        self.check()
        return results

    def check(self) -> None:
        """Raise what a kernel reported, as far as it is known."""
        if self._fault is not None:
            raise fault_in(*self._fault, self._table, self._env.symbols)

    def _scalar(self, number: int | None) -> Any:
        """What a loop goes on by: a fault must not make it go on for ever."""
        if number is None:
            return None
        frame = self._device_frame
        frame.faults.fetch(frame.stream)
        value = super()._scalar(number)
        frame.device.synchronize(frame.stream)
        self._fault = frame.faults.take(frame.stream)
        self.check()
        return value

    def read(self, number: int) -> Any:
        """The value of a buffer; from the device it is a copy."""
        buffer = self._table[number]
        if buffer.root not in self._on_device:
            value = self.values[buffer.root]
            return value if number == buffer.root else np.reshape(value, buffer.shape(self._env.symbols))
        symbols, frame = self._env.symbols, self._device_frame
        shape = self._shapes.get(number) or buffer.shape(symbols)
        count = prod(shape)
        memory = np.empty(buffer.dtype.byte_size(count), np.uint8)
        if memory.size:
            frame.device.download(memory, self._place(number), frame.stream)
            self._watcher.copies(memory.size, inwards=False)
        frame.device.synchronize(frame.stream)
        if buffer.dtype.is_packed:
            return unpack_bits(memory, buffer.dtype, count).reshape(shape)
        return memory.view(buffer.dtype.numpy).reshape(shape)

    def kept(self, number: int) -> Any:
        """The value of a buffer for good."""
        return self.read(number)

    def write(self, number: int, value: Any) -> None:
        """Make a buffer hold a value."""
        buffer = self._table[number]
        if buffer.root not in self._on_device:
            self.values[buffer.root] = value.numpy() if isinstance(value, DeviceArray) else value
            return
        if isinstance(value, DeviceArray):
            self._copy_in(number, value)
            return
        self._shapes[number] = np.shape(value)
        frame = self._device_frame
        array = np.ascontiguousarray(value)
        if array.dtype != buffer.dtype.numpy:
            raise InternalError(f"a value of {array.dtype} goes to a buffer of {buffer.type}")
        packed = buffer.dtype.is_packed
        held = pack_bits(array, buffer.dtype.bits) if packed else array.reshape(-1).view(np.uint8)
        if held.nbytes:
            self._watcher.copies(held.nbytes, inwards=True)
            frame.device.upload(self._place(number, held.nbytes), held, frame.stream)
            frame.device.synchronize(frame.stream)  # the caller's memory may change after this

    def _copy_in(self, number: int, array: DeviceArray) -> None:
        """Make a buffer hold an array of this device."""
        buffer, frame = self._table[number], self._device_frame
        if array.device.info != frame.device.info:
            raise UsageError(f"{array} is not on {frame.device.info.name}, where the session runs")
        if buffer.dtype.is_packed:
            self.write(number, array.numpy())
            return
        self._shapes[number] = array.shape
        if array.stream is not None:
            follow(frame.device, frame.stream, array.stream)
        if array.nbytes:
            frame.device.copy(self._place(number, array.nbytes), array.address, array.nbytes, frame.stream)

    def array(self, number: int, memory: ResultMemory, stream: int | None) -> Any:
        """The value of a buffer for good, on the device where that is its place."""
        buffer, frame = self._table[number], self._device_frame
        if buffer.root not in self._on_device or buffer.dtype.is_packed:
            return self.kept(number)
        shape = self._shapes.get(number) or buffer.shape(self._env.symbols)
        made = memory.array(shape, buffer.dtype.numpy, frame.stream, stream)
        if made.nbytes:
            frame.device.copy(made.address, self._place(number), made.nbytes, frame.stream)
        return made

    def _moved(self, origin: int, destination: int) -> Any:
        return self.read(origin)

    def _place(self, number: int, least: int = 0) -> int:
        """The address of a buffer; a pooled one gets room for `least` bytes or what its size asks for."""
        buffer, symbols = self._table[number], self._env.symbols
        if buffer.kind != "pooled":
            return self._device_frame.locate(number, symbols)
        shift = self._table.shift(number, symbols)
        return self._room(buffer.root, shift + least) + shift

    def _room(self, root: int, least: int = 0) -> int:
        size = least
        if self._table.room_symbols(root) <= self._env.symbols.keys():
            size = max(size, self._table.bytes(root, self._env.symbols))
        address, room = self._pools.get(root, (0, -1))
        if room < size:
            if room >= 0:
                self._freed.append(address)
            address = self._device_frame.device.allocate(size)
            self._pools[root] = (address, size)
        return address

    def _launches(self, node: Launches) -> None:
        steps = [launch.step for launch in node.launches]
        for root in node.pooled:
            self._room(root)
        if self._observe is not None:
            for launch in node.launches:
                self._watcher.begins(launch.instruction)
                self._now([launch.step])
                self._device_frame.device.synchronize(self._device_frame.stream)
                self._observe(launch.instruction, Written(self, launch.step.writes))
        elif node.number is not None:
            self._device_frame.launch(node.number, steps)
        else:
            self._now(steps)

    def _now(self, steps: Sequence[LaunchStep]) -> None:
        """Do launches whose sizes or places depend on data."""
        frame, symbols = self._device_frame, self._env.symbols
        for step in steps:
            function = self._holdings.functions[step.code, step.entry]
            bound = bind_launch(
                step, function, self._table, symbols, self._place, self._scratch, frame.faults, frame.device
            )
            if bound is not None:
                frame.start([bound])

    def _scratch(self, _: ScratchArgument, size: int) -> int:
        frame = self._device_frame
        self._freed.append(frame.device.allocate(size))
        frame.device.fill(self._freed[-1], size, frame.stream)
        return self._freed[-1]
