"""A device of no GPU: memory of this process, and kernels emulated from their assembly text."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from argosy.artifact.plan import TensorMapArgument
from argosy.drivers.discovery import DeviceInfo
from argosy.emulation.kernel import Kernel, make_kernel
from argosy.emulation.memory import Memory
from argosy.errors import ArtifactError, DeviceError
from argosy.runtime.memory import address_of

__all__ = ["EmulatedDevice"]

_STREAM: Final = 1


class EmulatedDevice:
    """See `Device`. `texts` gives the assembly of each code object by the sha256 of its bytes.

    `looks` looks for what kernels read before it is written, and for races between workgroups.
    """

    def __init__(self, info: DeviceInfo, texts: Mapping[str, str], *, looks: bool = False) -> None:
        self._info, self._texts, self._looks = info, texts, looks
        self._memory = Memory()
        self._kernels: dict[int, Kernel] = {}
        self._modules: dict[int, str] = {}
        self._graphs: dict[int, list[tuple[Callable[..., Any], tuple[Any, ...]]]] = {}
        self._capturing: list[tuple[Callable[..., Any], tuple[Any, ...]]] | None = None
        self._numbers = 0

    @property
    def info(self) -> DeviceInfo:
        """See `Device`."""
        return self._info

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _do(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Do work, or remember it where a queue is captured."""
        if self._capturing is not None:
            self._capturing.append((work, arguments))
        else:
            work(*arguments)

    @property
    def reaches_host(self) -> bool:
        """See `Device`: as on AMD's devices."""
        return False

    def enter(self) -> int:
        """See `Device`."""
        return 0

    def leave(self, before: int) -> None:
        """See `Device`."""

    def allocate(self, size: int) -> int:
        """See `Device`."""
        return self._memory.allocate(size)

    def free(self, address: int) -> None:
        """See `Device`."""
        self._memory.free(address)

    def allocate_host(self, size: int) -> NDArray[np.uint8]:
        """See `Device`."""
        return np.empty(size, np.uint8)

    def free_host(self, memory: NDArray[np.uint8]) -> None:
        """See `Device`."""

    def create_stream(self) -> int:
        """See `Device`."""
        return _STREAM

    def destroy_stream(self, stream: int) -> None:
        """See `Device`."""

    def upload(self, address: int, source: NDArray[Any], stream: int) -> None:
        """See `Device`."""
        self._do(lambda: ctypes.memmove(address, address_of(source), source.nbytes))

    def download(self, target: NDArray[Any], address: int, stream: int) -> None:
        """See `Device`."""
        self._do(lambda: ctypes.memmove(address_of(target), address, target.nbytes))

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        """See `Device`."""
        self._do(ctypes.memmove, target, source, size)

    def fill(self, address: int, size: int, stream: int) -> None:
        """See `Device`."""
        self._do(ctypes.memset, address, 0, size)

    def synchronize(self, stream: int) -> None:
        """See `Device`."""

    def create_event(self, *, timed: bool = False) -> int:
        """See `Device`."""
        return self._number()

    def elapsed(self, first: int, last: int) -> float:
        """See `Device`. Raises DeviceError: what emulation takes says nothing of a device."""
        raise DeviceError(f"{self._info.name} has no clock", hint="measure on a GPU")

    def tensor_map(
        self, argument: TensorMapArgument, address: int, dims: Sequence[int], strides: Sequence[int]
    ) -> bytes:
        """See `Device`. Raises DeviceError: only NVIDIA's code, which is not emulated, has them."""
        raise DeviceError(f"{self._info.name} has no tensor maps", hint="run the artifact on a GPU of NVIDIA's")

    def destroy_event(self, event: int) -> None:
        """See `Device`."""

    def record(self, event: int, stream: int) -> None:
        """See `Device`."""

    def wait(self, stream: int, event: int) -> None:
        """See `Device`."""

    def load(self, code: bytes) -> int:
        """See `Device`."""
        text = self._texts.get(hashlib.sha256(code).hexdigest())
        if text is None:
            raise ArtifactError(
                "a code object comes without its assembly text, which emulation reads",
                hint="compile the artifact without --slim",
            )
        number = self._number()
        self._modules[number] = text
        return number

    def unload(self, module: int) -> None:
        """See `Device`."""
        self._modules.pop(module, None)

    def function(self, module: int, entry: str, shared: int) -> int:
        """See `Device`."""
        del shared
        kernel = make_kernel(self._modules[module])
        if kernel.program.listing.name != entry:
            raise ArtifactError(f"an assembly text is that of {kernel.program.listing.name}, not of {entry}")
        number = self._number()
        self._kernels[number] = kernel
        return number

    def launch(
        self,
        function: int,
        grid: Sequence[int],
        block: Sequence[int],
        shared: int,
        stream: int,
        parameters: bytes,
        *,
        programmatic: bool = False,
    ) -> None:
        """See `Device`."""
        self._do(self._run, function, tuple(grid), block[0] * block[1] * block[2], shared, parameters)

    def _run(self, function: int, grid: Sequence[int], threads: int, shared: int, parameters: bytes) -> None:
        kernel = self._kernels[function]
        kernarg = self._memory.allocate(max(len(parameters), kernel.program.listing.kernarg_size) + 64)
        try:
            ctypes.memmove(kernarg, parameters, len(parameters))
            kernel.run(self._memory, kernarg, grid, threads, shared, looks=self._looks)
        finally:
            self._memory.free(kernarg)

    def begin_capture(self, stream: int) -> None:
        """See `Device`."""
        self._capturing = []

    def end_capture(self, stream: int) -> int:
        """See `Device`."""
        number = self._number()
        self._graphs[number], self._capturing = self._capturing or [], None
        return number

    def launch_graph(self, graph: int, stream: int) -> None:
        """See `Device`."""
        for work, arguments in self._graphs[graph]:
            self._do(work, *arguments)

    def destroy_graph(self, graph: int) -> None:
        """See `Device`."""
        self._graphs.pop(graph, None)
