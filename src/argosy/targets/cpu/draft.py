"""The steps of one instruction in the making: what a solution writes into. Nothing counts before it is committed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from argosy.artifact.plan import BufferRecord, CallStep, PointerArgument, RunStep, ScalarArgument, ShapeStep, Step
from argosy.ir.dim import DimLike
from argosy.ir.dtype import INT64
from argosy.ir.module import Instruction, Value
from argosy.ir.types import TensorType, Type, type_symbols
from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.cpu.codegen.reorder import from_blocked, image_shape, to_blocked, whole
from argosy.targets.cpu.faults import may_fail
from argosy.targets.cpu.layout import Blocked

__all__ = ["Buffers", "Draft", "Image"]


@dataclass(frozen=True, slots=True)
class Image:
    """A blocked form of a value: axis i of the image is axis `axes[i]` of the value."""

    axes: tuple[int | None, ...]
    layout: Blocked
    number: int


class Buffers(Protocol):
    """What a draft asks of the lowering: buffers, and where values lie so far."""

    buffers: list[BufferRecord]

    def buffer(self, kind: str, of: Type) -> int:
        """A new buffer; its number."""
        ...

    def forget(self, first: int) -> None:
        """Take back the buffers from number `first` on."""
        ...

    def memory(self, of: Type) -> int:
        """A buffer for kernels to write."""
        ...

    def kept(self, of: Type) -> int:
        """A buffer for kernels to write once, when the artifact is loaded."""
        ...

    def held(self, value: Value, made: Mapping[Value, int]) -> int | None:
        """The buffer of a value in row-major order, where there is one, here or in what the draft `made`."""
        ...

    def images(self, value: Value, made: Mapping[Value, list[Image]]) -> list[Image]:
        """The blocked forms of a value, here and in what the draft `made`."""
        ...

    def wanted(self, value: Value) -> Blocked | None:
        """The blocked layout that the readers of a value would like."""
        ...

    def is_weight(self, value: Value) -> bool:
        """Whether a value is the same in every run."""
        ...

    def undefined(self, kind: Type) -> list[tuple[str, int]]:
        """The symbols in a type that have no value yet, and their axes."""
        ...

    def size(self, dim: DimLike) -> int | str:
        """A dim as the plan writes it."""
        ...

    def symbol_text(self, name: str) -> str:
        """A symbol as the plan writes it."""
        ...


class Draft:
    """What the steps of one instruction are written into; nothing counts before `commit`."""

    def __init__(
        self,
        lowering: Buffers,
        instruction: Instruction,
        label: str = "",
        *,
        flushes: bool = False,
        at_load: bool = False,
    ) -> None:
        self.lowering = lowering
        self.instruction = instruction
        self.label = label
        self._flushes = flushes  # whether the kernels of this op take subnormal numbers as zero
        self.at_load = at_load  # whether the op is done once, when the artifact is loaded
        self.body: list[Step] = []
        self.before: list[Step] = []
        self.made: list[int] = []
        self.kernels: list[Kernel] = []
        self.results: dict[int, int] = {}
        self.layouts: dict[int, Blocked] = {}
        self.numbers: dict[Value, int] = {}
        self.images: dict[Value, list[Image]] = {}

    def operand(self, index: int) -> int:
        """The buffer of parameter `index` of the problem's module."""
        return self.row_major(self._present()[index])

    def row_major(self, value: Value) -> int:
        """The buffer of a value in row-major order; a blocked image is taken back."""
        number = self.lowering.held(value, self.numbers)
        if number is None:
            image = self.lowering.images(value, self.images)[0]
            number = self.numbers[value] = self.temporary(value.tensor)
            kernel = from_blocked(value.tensor, image.layout).labelled("from_blocked")
            self._append(kernel, [image.number], [number])
        return number

    def blocked(self, index: int, need: Blocked, axes: tuple[int | None, ...] | None = None) -> tuple[int, Blocked]:
        """Parameter `index` as a blocked image that covers `need`."""
        value = self._present()[index]
        axes = tuple(range(value.rank)) if axes is None else axes
        for image in self.lowering.images(value, self.images):
            if image.axes == axes and image.layout.covers(need):
                return image.number, image.layout
        kernel = to_blocked(whole(value.tensor), need, axes).labelled("to_blocked")
        reads = [self.row_major(value)]
        kind = need.kind(image_shape(value.shape, axes))
        if self.is_weight(index):
            number = self.prepared(kernel, reads, kind)
        else:
            number = self.temporary(kind)
            self._append(kernel, reads, [number])
        self.images.setdefault(value, []).append(Image(axes, need, number))
        return number, need

    def blocked_result(self, layout: Blocked, index: int = 0) -> int:
        """The buffer of a result that is written in a blocked layout."""
        if index not in self.results:
            value = self.instruction.result(index)
            self.results[index] = self._memory(layout.kind(value.shape))
            self.layouts[index] = layout
        return self.results[index]

    def wanted(self, index: int = 0) -> Blocked | None:
        """The blocked layout that the readers of a result would like."""
        return self.lowering.wanted(self.instruction.result(index))

    def _present(self) -> list[Value]:
        return [operand for operand in self.instruction.operands if operand is not None]

    def result(self, index: int = 0) -> int:
        """The buffer of a result."""
        if index not in self.results:
            self.results[index] = self._memory(self.instruction.types[index])
        return self.results[index]

    def is_weight(self, index: int) -> bool:
        """Whether a parameter is a weight, in a body one of the outside too."""
        return self.lowering.is_weight(self._present()[index])

    def temporary(self, kind: TensorType) -> int:
        """A buffer for the steps of this op."""
        return self._memory(kind)

    def _memory(self, kind: Type) -> int:
        if not self.at_load:
            return self.lowering.memory(kind)
        self.made.append(self.lowering.kept(kind))
        return self.made[-1]

    def draw_number(self) -> int:
        """A buffer with the number of the draw: of the run and the iterations that it is in."""
        number = self.temporary(TensorType(INT64, ()))
        self.body.append(RunStep(number))
        return number

    @property
    def belongs_to_runs(self) -> bool:
        """Whether some of it must be done in every run: it tells sizes, or may fail."""
        return bool(self.body) or any(map(may_fail, self.kernels))

    def undefined(self, index: int = 0) -> Sequence[tuple[str, int]]:
        """Symbols that only this op gives a value: their names and axes in a result."""
        return self.lowering.undefined(self.instruction.types[index])

    def prepared(self, kernel: Kernel, reads: Sequence[int], kind: TensorType) -> int:
        """A buffer made from weights, once at load; in every run where its size depends on the run's."""
        kernel = kernel.labelled("prepare")
        if kernel.symbols or type_symbols(kind):
            number = self.temporary(kind)
            self._append(kernel, reads, [number])
            return number
        number = self.lowering.buffer("prepared", kind)
        self.before.append(self._step(kernel, reads, [number]))
        self.made.append(number)
        return number

    def call(self, kernel: Kernel, reads: Sequence[int], writes: Sequence[int]) -> None:
        """Append a call."""
        self._append(kernel.flushing() if self._flushes else kernel, reads, writes)

    def define(self, symbol: str, buffer: int, axis: int | None = None, element: int = 0) -> None:
        """Bind a data-dependent symbol."""
        self.body.append(ShapeStep(symbol, buffer, axis, element))

    def _append(self, kernel: Kernel, reads: Sequence[int], writes: Sequence[int]) -> None:
        (self.before if self.at_load else self.body).append(self._step(kernel, reads, writes))

    def _step(self, kernel: Kernel, reads: Sequence[int], writes: Sequence[int]) -> CallStep:
        kernel = kernel.labelled(self.label)
        self.kernels.append(kernel)
        pointers = [PointerArgument(8 * slot, number) for slot, number in enumerate((*reads, *writes))]
        scalars = [
            ScalarArgument(8 * (len(pointers) + slot), "int64", self.lowering.symbol_text(name))
            for slot, name in enumerate(kernel.symbols)
        ]
        return CallStep(
            0,
            kernel.entry,
            self.lowering.size(kernel.chunks),
            8 * (len(pointers) + len(scalars)),
            (*pointers, *scalars),
            tuple(reads),
            tuple(writes),
            kernel.scratch,
            self.instruction.source,
            whole=True,
        )
