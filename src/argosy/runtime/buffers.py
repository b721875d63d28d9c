"""The buffers of a plan, decoded: types, sizes, what is a part of what, and tensors as bytes and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from argosy.artifact.decode import Decoder
from argosy.artifact.lifetimes import root_of
from argosy.artifact.plan import PlanRecord, ShapeStep, Size, steps_in
from argosy.errors import ArgosyError, ArtifactError, InternalError
from argosy.ir import dim as dims
from argosy.ir.dim import DimLike
from argosy.ir.dtype import Array, DType
from argosy.ir.literal import pack_bits, unpack_bits
from argosy.ir.types import TensorType, Type, type_symbols
from argosy.runtime.memory import Bytes

__all__ = ["Buffer", "BufferTable", "Sizes", "read_tensor", "write_tensor"]


class Sizes:
    """Numbers from the sizes of a plan; each text is parsed once."""

    def __init__(self, decoder: Decoder, where: str) -> None:
        self._decoder = decoder
        self._where = where
        self._parsed: dict[str, DimLike] = {}
        self._symbols: dict[str, frozenset[str]] = {}

    def dim(self, size: Size) -> DimLike:
        """The dim that a size is."""
        if isinstance(size, int):
            return size
        found = self._parsed.get(size)
        if found is None:
            found = self._parsed[size] = self._decoder.dim(size)
        return found

    def symbols(self, size: Size) -> frozenset[str]:
        """Names of the symbols in a size."""
        if isinstance(size, int):
            return frozenset()
        found = self._symbols.get(size)
        if found is None:
            names = frozenset(symbol.name for symbol in dims.symbols_in(self.dim(size)))
            found = self._symbols[size] = names
        return found

    def number(self, size: Size, symbols: Mapping[str, int]) -> int:
        """The number that a size is under these values of the symbols. Raises ArtifactError where it is none."""
        if isinstance(size, int):
            return size
        try:
            number = dims.evaluate(self.dim(size), symbols)
        except ArgosyError as error:
            raise ArtifactError(f"the size {size}: {error.what}", where=self._where) from None
        if number < 0:
            raise ArtifactError(f"the size {size} is {number}", where=self._where)
        return number


class Buffer(msgspec.Struct, frozen=True):
    """A buffer of a plan. `root` is the buffer that it is a part of, itself where it is no view.

    `order` is that of its axes, outermost first; None where they lie as its root's do, which are not row-major.

    `kind` is the root's. A buffer in memory is anything but a Python object.
    """

    number: int
    kind: str
    type: Type
    root: int
    base: int | None
    size: Size
    shift: Size
    order: tuple[int, ...] | None

    @property
    def in_memory(self) -> bool:
        """Whether kernels may take its address. An input that is no tensor of known rank is a Python object too."""
        return self.kind != "value" and isinstance(self.type, TensorType) and self.type.dims is not None

    @property
    def tensor(self) -> TensorType:
        """Its type, where that is a tensor of known rank; raises ArtifactError elsewhere."""
        if not isinstance(self.type, TensorType) or self.type.dims is None:
            raise ArtifactError(f"buffer {self.number} has the type {self.type}, which has no layout in memory")
        return self.type

    @property
    def dtype(self) -> DType:
        """Its element type."""
        return self.tensor.dtype

    def shape(self, symbols: Mapping[str, int]) -> tuple[int, ...]:
        """Its shape under these values of the symbols.

        Where sizes don't fit each other a dim may come out negative; it counts as 0 until a step refuses the sizes.
        """
        return tuple(dim if isinstance(dim, int) else max(dims.evaluate(dim, symbols), 0) for dim in self.tensor.shape)


class BufferTable:
    """All buffers of a plan by number.

    `late` are the symbols that steps bind: what depends on them is not known when a run begins. A buffer is
    *settled* where its place and shape are known then and its memory holds its elements one by one.
    """

    def __init__(self, plan: PlanRecord, decoder: Decoder, sizes: Sizes, where: str) -> None:
        self.sizes = sizes
        bodies = (plan.body, *(module.body for module in plan.prepare))
        self.late = frozenset(step.symbol for body in bodies for step in steps_in(body) if isinstance(step, ShapeStep))
        self._buffers: list[Buffer] = []
        for number, record in enumerate(plan.buffers):
            root = root_of(plan.buffers, number)
            kind, type_ = plan.buffers[root].kind, decoder.type(record.type)
            order = None if record.base is not None and plan.buffers[root].order else record.order
            self._buffers.append(Buffer(number, kind, type_, root, record.base, record.size, record.shift, order))
        named: dict[Type, frozenset[str]] = {}
        for buffer in self._buffers:
            if buffer.type not in named:
                named[buffer.type] = frozenset(symbol.name for symbol in type_symbols(buffer.type))
        self._named = [named[buffer.type] for buffer in self._buffers]
        self._settled = [self._is_settled(buffer) for buffer in self._buffers]
        self._unsettled: dict[int, tuple[int, ...]] = {}
        for buffer in self._buffers:
            if buffer.in_memory and not self._settled[buffer.number]:
                self._unsettled[buffer.root] = (*self._unsettled.get(buffer.root, ()), buffer.number)
            if (
                buffer.kind == "planned"
                and buffer.number == buffer.root
                and self.room_symbols(buffer.number) & self.late
            ):
                raise ArtifactError(f"buffer {buffer.number} is planned, but its size depends on data", where=where)

    def _is_settled(self, buffer: Buffer) -> bool:
        if not buffer.in_memory or buffer.kind == "pooled" or not isinstance(buffer.type, TensorType):
            return False
        return not (
            buffer.dtype.is_packed or (self.place_symbols(buffer.number) | self._named[buffer.number]) & self.late
        )

    def __getitem__(self, number: int) -> Buffer:
        return self._buffers[number]

    def __len__(self) -> int:
        return len(self._buffers)

    def is_settled(self, number: int) -> bool:
        """Whether one tensor over the buffer's memory serves for the whole run."""
        return self._settled[number]

    def is_reused(self, number: int) -> bool:
        """Whether its memory may hold something else later in the run, or in another run."""
        buffer = self._buffers[number]
        return buffer.kind in ("planned", "pooled") or (buffer.number != buffer.root and buffer.in_memory)

    def is_kept(self, number: int) -> bool:
        """Whether it may hold a value as it is given, so that the value must outlive the memory of the run."""
        return self._buffers[number].kind in ("value", "prepared")

    def unsettled(self, root: int) -> tuple[int, ...]:
        """The buffers in `root` whose tensors must be made anew when it is written."""
        return self._unsettled.get(root, ())

    def bytes(self, number: int, symbols: Mapping[str, int]) -> int:
        """Bytes of a buffer: as stated, else of the dense tensor."""
        buffer = self._buffers[number]
        if buffer.size != 0:
            return self.sizes.number(buffer.size, symbols)
        return buffer.dtype.byte_size(_product(buffer.shape(symbols)))

    def is_dense(self, number: int, symbols: Mapping[str, int]) -> bool:
        """Whether a buffer takes just the bytes of its dense tensor."""
        buffer = self._buffers[number]
        return self.bytes(number, symbols) == buffer.dtype.byte_size(_product(buffer.shape(symbols)))

    def shift(self, number: int, symbols: Mapping[str, int]) -> int:
        """Bytes from the start of its root to its own. Raises ArtifactError where a view leaves its base."""
        total = 0
        buffer = self._buffers[number]
        while buffer.base is not None:
            shift = self.sizes.number(buffer.shift, symbols)
            room = self.bytes(buffer.base, symbols)
            if shift + self.bytes(buffer.number, symbols) > room:
                raise ArtifactError(f"buffer {buffer.number} ends after buffer {buffer.base}, which holds {room} bytes")
            total += shift
            buffer = self._buffers[buffer.base]
        return total

    def room_symbols(self, number: int) -> frozenset[str]:
        """Names of the symbols on which the bytes of a buffer depend."""
        size = self._buffers[number].size
        return self._named[number] if size == 0 else self.sizes.symbols(size)

    def type_symbols(self, number: int) -> frozenset[str]:
        """Names of the symbols in the type of a buffer."""
        return self._named[number]

    def place_symbols(self, number: int) -> frozenset[str]:
        """Names of the symbols on which the place of a buffer within its root depends."""
        found: frozenset[str] = frozenset()
        buffer = self._buffers[number]
        while buffer.base is not None:
            found |= self.sizes.symbols(buffer.shift)
            buffer = self._buffers[buffer.base]
        return found


def _product(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def read_tensor(memory: Bytes, dtype: DType, shape: tuple[int, ...]) -> Array:
    """The tensor at the start of `memory`: a view of it, but for sub-byte elements, which are unpacked."""
    count = _product(shape)
    size = dtype.byte_size(count)
    if size > memory.size:
        raise InternalError(f"a tensor {dtype}{list(shape)} of {size} bytes is read from {memory.size}")
    if dtype.is_packed:
        return unpack_bits(memory[:size], dtype, count).reshape(shape)
    return memory[:size].view(dtype.numpy).reshape(shape)


def write_tensor(memory: Bytes, dtype: DType, value: Any) -> Array:
    """Put a tensor at the start of `memory`, dense; the tensor as it lies there (sub-byte elements: unpacked)."""
    array: Array = np.asarray(value)
    if array.dtype != dtype.numpy:
        raise InternalError(f"computed as {array.dtype}, declared {dtype}")
    size = dtype.byte_size(array.size)
    if size > memory.size:
        raise InternalError(f"a tensor {dtype}{list(array.shape)} of {size} bytes is written to {memory.size}")
    if dtype.is_packed:
        memory[:size] = pack_bits(np.ascontiguousarray(array), dtype.bits)
        return array
    place = memory[:size].view(dtype.numpy).reshape(array.shape)
    np.copyto(place, array)
    return place
