"""Where everything lies for one set of sizes, and the frames that fix it to one piece of memory.

A *layout* belongs to the values of the symbols: it packs the planned buffers into one arena and writes the parameter
blocks with addresses counted from the arena's start. A *frame* is a layout in a workspace, the memory of one run:
blocks with real addresses, tables of steps, tensors over the buffers. Both are made once and kept, so that a run with
sizes met before allocates nothing.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
import numpy as np

from argosy.artifact.arena import Placement
from argosy.errors import ArtifactError
from argosy.ir.dtype import Array
from argosy.runtime.buffers import BufferTable, read_tensor
from argosy.runtime.host_abi import SCRATCH_HEADER, STEP_WORDS, RunRecord
from argosy.runtime.memory import ALIGNMENT, Bytes, address_of, aligned
from argosy.runtime.nodes import Call, Calls

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Code", "Frame", "Holdings", "Layout", "Resident", "Workspace", "chunk_number", "make_layout", "write_block"]

_FRAMES: Final = 32
"""Layouts that a workspace keeps frames of; the least recently used goes."""
_CHUNKS_PER_WORKER: Final = 4
_FORMATS: Final = {
    "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q",
    "bool": "?", "float32": "f", "float64": "d",
}  # fmt: skip


class Code(Protocol):
    """The code objects of a variant, loaded."""

    @property
    def threads(self) -> int:
        """Workers that a run may have, the caller included."""
        ...

    @property
    def sees_everything(self) -> bool:
        """Whether kernels can read any memory of this process, not only what `allocate` and `adopt` gave."""
        ...

    def address(self, code: int, entry: str) -> int:
        """Where a function of code object number `code` lies. Raises ArtifactError where there is none."""
        ...

    def bind(self, record: RunRecord) -> Callable[[], None]:
        """A function that runs what `record` describes: one foreign call."""
        ...

    def allocate(self, size: int) -> Bytes:
        """Zeroed memory at a multiple of `ALIGNMENT` that kernels can see."""
        ...

    def adopt(self, memory: Bytes) -> Bytes:
        """The same bytes where kernels can see them: `memory` itself, or a copy."""
        ...


class Resident(msgspec.Struct, frozen=True):
    """Memory that stays for the life of a session: a weight or a prepared buffer."""

    memory: Bytes
    address: int


class Holdings(msgspec.Struct, frozen=True):
    """What stays for the life of a session: the code, memory of weights and prepared buffers, values runs begin with.

    `resident` is by number of a root, `initial` by number of a buffer; both are filled while a session is made.
    """

    code: Code | None
    resident: dict[int, Resident]
    initial: list[Any]

    @property
    def threads(self) -> int:
        """Workers that a run may have."""
        return 1 if self.code is None else self.code.threads

    def allocate(self, size: int) -> Bytes:
        """Memory that kernels can see."""
        return aligned(size) if self.code is None else self.code.allocate(size)


class Layout(msgspec.Struct, frozen=True, eq=False):
    """One set of sizes. `offsets` are those of buffers in the arena, by root; `arena` and `live` are bytes.

    `blocks` holds the parameter blocks of all fixed calls, `relocations` the words in it that the arena's address is
    added to, `inputs` those of them that point to an input, by its number, `steps` a row for each call (kernel, offset
    of its block, chunks), `runs` first and last row of each foreign call.
    """

    symbols: Mapping[str, int]
    offsets: Mapping[int, int]
    arena: int
    live: int
    blocks: NDArray[np.int64]
    relocations: NDArray[np.int64]
    inputs: Mapping[int, NDArray[np.int64]]
    steps: NDArray[np.int64]
    runs: tuple[tuple[int, int], ...]


def make_layout(
    symbols: Mapping[str, int],
    table: BufferTable,
    offsets: Mapping[int, int],
    placed: Placement,
    runs: Sequence[Calls],
    holdings: Holdings,
) -> Layout:
    """The layout for these values of the symbols. `offsets` are those of `placed`, by root."""
    blocks = bytearray()
    relocations: list[int] = []
    inputs: dict[int, list[int]] = {}
    steps: list[tuple[int, int, int]] = []
    ranges: list[tuple[int, int]] = []

    def locate(number: int) -> tuple[int, bool]:
        root = table[number].root
        held = holdings.resident.get(root)
        shift = table.shift(number, symbols) if number != root else 0
        if held is not None:
            return held.address + shift, False
        return offsets[root] + shift, True

    for calls in runs:
        first = len(steps)
        for call in calls.calls:
            begin = len(blocks)
            for word, number in write_block(blocks, call, table, symbols, locate):
                relocations.append(begin // 8 + word)
                if table[number].kind == "input":
                    inputs.setdefault(table[number].root, []).append(begin // 8 + word)
            chunks = chunk_number(table.sizes.number(call.step.chunks, symbols), holdings.threads)
            entry = holdings.code.address(call.step.code, call.step.entry) if holdings.code is not None else 0
            steps.append((entry, begin, chunks))
        ranges.append((first, len(steps)))
    return Layout(
        dict(symbols),
        offsets,
        placed.size,
        placed.live,
        np.frombuffer(bytes(blocks), np.int64),
        np.asarray(relocations, np.int64),
        {number: np.asarray(words, np.int64) for number, words in inputs.items()},
        np.asarray(steps, np.int64).reshape(-1, STEP_WORDS),
        tuple(ranges),
    )


def chunk_number(most: int, threads: int) -> int:
    """Into how many chunks a call is cut that may be cut into `most`.

    One worker does all in one; of several, each may be late, so there are some for each. More would cost what
    neighbours share: a panel of weights is then fetched again.
    """
    return min(most, 1 if threads == 1 else _CHUNKS_PER_WORKER * threads)


def write_block(
    blocks: bytearray,
    call: Call,
    table: BufferTable,
    symbols: Mapping[str, int],
    locate: Callable[[int], tuple[int, bool]],
) -> list[tuple[int, int]]:
    """Append the parameter block of a call; the words in it that are counted from the arena's start, with the buffers.

    `locate` gives the address of a buffer, and whether it is counted from there.
    """
    begin = len(blocks)
    blocks.extend(bytes(-(-call.step.parameter_bytes // 8) * 8))
    words: list[tuple[int, int]] = []
    for pointer in call.pointers:
        address, counted = locate(pointer.buffer)
        if pointer.shift != 0:
            address += table.sizes.number(pointer.shift, symbols)
        struct.pack_into("<q", blocks, begin + pointer.offset, address)
        if counted:
            words.append((pointer.offset // 8, pointer.buffer))
    for scalar in call.scalars:
        form = _FORMATS.get(scalar.dtype)
        if form is None:
            raise ArtifactError(f"a size is passed as {scalar.dtype}", where=call.step.source or call.step.entry)
        struct.pack_into(f"<{form}", blocks, begin + scalar.offset, table.sizes.number(scalar.value, symbols))
    return words


class Workspace:
    """The memory of one run at a time: an arena that grows with what is asked, and scratch for every worker."""

    def __init__(self, scratch: int, holdings: Holdings) -> None:
        self._holdings = holdings
        self._stride = SCRATCH_HEADER + -(-scratch // ALIGNMENT) * ALIGNMENT
        self._scratch = holdings.allocate(self._stride * holdings.threads)
        self._arena = holdings.allocate(0)
        self._frames: OrderedDict[int, Frame] = OrderedDict()

    def frame(self, layout: Layout, build: Callable[[Layout, Workspace], Frame]) -> Frame:
        """The frame of a layout in this memory, made where it is new."""
        found = self._frames.get(id(layout))
        if found is not None:
            self._frames.move_to_end(id(layout))
            return found
        if layout.arena > self._arena.size:
            self._frames.clear()  # they point into the arena that goes
            self._arena = self._holdings.allocate(layout.arena)
        frame = self._frames[id(layout)] = build(layout, self)
        if len(self._frames) > _FRAMES:
            self._frames.popitem(last=False)
        return frame

    @property
    def arena(self) -> Bytes:
        """The arena as it is now."""
        return self._arena

    def record(self, steps: int, count: int) -> RunRecord:
        """A run of `count` steps whose table lies at `steps`, with this workspace's scratch."""
        return RunRecord(
            steps=steps,
            count=count,
            scratch=address_of(self._scratch),
            stride=self._stride,
            threads=self._holdings.threads,
        )


class Frame:
    """A layout in the memory of a workspace. `values` are those that a run begins with, by buffer."""

    def __init__(
        self,
        layout: Layout,
        workspace: Workspace,
        table: BufferTable,
        touched: Sequence[int],
        holdings: Holdings,
    ) -> None:
        self.layout = layout  # also keeps its id from being used again while this frame is known by it
        self._table = table
        self._arena = workspace.arena
        self._base = address_of(self._arena)
        self._resident = holdings.resident
        self._blocks = _copied(layout.blocks, holdings)
        self._blocks[layout.relocations] += self._base
        self._elsewhere: dict[int, int] = {}
        self._steps = _copied(layout.steps, holdings)
        self._steps[:, 1] += address_of(self._blocks)
        self._workspace = workspace
        self.records = tuple(self.record(self._step_address(first), last - first) for first, last in layout.runs)
        code = holdings.code
        self.runs = tuple(code.bind(record) for record in self.records) if code is not None else ()
        self.values = list(holdings.initial)
        for number in touched:
            if table.is_settled(number) and self.values[number] is None and self.holds(number):
                self.values[number] = self.tensor(number, layout.symbols)

    def record(self, steps: int, count: int) -> RunRecord:
        """A run of `count` steps whose table lies at `steps`."""
        return self._workspace.record(steps, count)

    def step_record(self, run: int, index: int) -> RunRecord:
        """A run of one step: number `index` of those in foreign call number `run`."""
        return self.record(self._step_address(self.layout.runs[run][0] + index), 1)

    def _step_address(self, row: int) -> int:
        return address_of(self._steps) + 8 * STEP_WORDS * row

    def holds(self, number: int) -> bool:
        """Whether a buffer lies in the arena or among what stays."""
        root = self._table[number].root
        return root in self.layout.offsets or root in self._resident

    def memory(self, number: int, symbols: Mapping[str, int]) -> Bytes:
        """The bytes from a buffer's start to the end of its root."""
        root = self._table[number].root
        shift = self._table.shift(number, symbols)
        held = self._resident.get(root)
        if held is not None:
            return held.memory[shift:]
        offset = self.layout.offsets[root]
        return self._arena[offset + shift : offset + self._table.bytes(root, self.layout.symbols)]

    def point(self, number: int, address: int | None) -> None:
        """Let kernels read an input at an address, until told otherwise; None is its place in the arena."""
        if address == self._elsewhere.get(number):
            return
        offset = self.layout.offsets[number]
        words = self.layout.inputs.get(number)
        if words is not None:
            self._blocks[words] = self.layout.blocks[words] + (self._base if address is None else address - offset)
        if address is None:
            del self._elsewhere[number]
        else:
            self._elsewhere[number] = address

    def tensor(self, number: int, symbols: Mapping[str, int]) -> Array:
        """The tensor that a buffer holds."""
        buffer = self._table[number]
        return read_tensor(self.memory(number, symbols), buffer.dtype, buffer.shape(symbols))

    def locate(self, number: int, symbols: Mapping[str, int]) -> int:
        """The address of a buffer."""
        root = self._table[number].root
        held, start = self._resident.get(root), self._elsewhere.get(root)
        if start is None:
            start = held.address if held is not None else self._base + self.layout.offsets[root]
        return start + (self._table.shift(number, symbols) if number != root else 0)


def _copied(words: NDArray[np.int64], holdings: Holdings) -> NDArray[np.int64]:
    """The same words in memory that kernels can see."""
    place = holdings.allocate(words.nbytes).view(np.int64).reshape(words.shape)
    np.copyto(place, words)
    return place
