"""The steps of one instruction in the making: what a solution writes into. Nothing counts before it is committed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from argosy.artifact.plan import (
    HiddenArgument,
    LaunchStep,
    PointerArgument,
    RunStep,
    ScalarArgument,
    ScratchArgument,
    ShapeStep,
    Step,
)
from argosy.errors import InternalError
from argosy.ir.dim import DimLike
from argosy.ir.dtype import INT64
from argosy.ir.module import Instruction, Module, Parameter, Value
from argosy.ir.types import TensorType, Type, type_symbols
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.loops import elementwise_kernel
from argosy.targets.gpu.codegen.tensor_map import map_arguments
from argosy.targets.gpu.solution import Order
from argosy.targets.gpu.words import words_type
from argosy.targets.lowering.accesses import DeclinedError

__all__ = ["Draft", "Lowering", "Place", "copy_kernel"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value lies: the buffer, and the order of its axes there."""

    number: int
    order: Order = None


class Lowering(Protocol):
    """What a draft asks of the lowering: buffers, and where values lie so far."""

    def places(self, value: Value) -> Sequence[Place]:
        """Where a value lies, the place in which it was made first."""
        ...

    def buffer(self, kind: str, of: Type) -> int:
        """A new buffer; its number."""
        ...

    def memory(self, of: Type, order: Order = None) -> int:
        """A buffer for kernels to write, the axes in an order."""
        ...

    def kept(self, of: Type, order: Order = None) -> int:
        """A buffer for kernels to write once, when the artifact is loaded."""
        ...

    def is_weight(self, value: Value) -> bool:
        """Whether a value is the same in every run."""
        ...

    @property
    def programmatic(self) -> bool:
        """Whether the device lets a kernel start before the one before it has ended."""
        ...

    def is_refused(self, kernel: Kernel) -> str:
        """Why the toolchain refused a kernel before; empty where it did not."""
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


@dataclass(frozen=True, slots=True)
class Draft:
    """What the steps of one instruction are written into. `at_load` says that they run once, at load.

    `config` is the configuration of the solution that writes, in words.
    """

    lowering: Lowering
    instruction: Instruction
    label: str = ""
    at_load: bool = False
    config: str = ""
    body: list[Step] = field(default_factory=list)
    before: list[Step] = field(default_factory=list)
    made: list[int] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    results: dict[int, Place] = field(default_factory=dict)
    found: dict[Value, list[Place]] = field(default_factory=dict)

    @property
    def belongs_to_runs(self) -> bool:
        """Whether some of it must be done in every run: it tells sizes, or may fail in a run that never comes to it."""
        return bool(self.body) or any(kernel.may_fail for kernel in self.kernels)

    def _present(self) -> list[Value]:
        return [operand for operand in self.instruction.operands if operand is not None]

    def operand(self, index: int) -> int:
        """The buffer of parameter `index`, as it lies."""
        return self.lowering.places(self._present()[index])[0].number

    def ordered(self, index: int, order: Order) -> int:
        """Parameter `index` in another order of its axes."""
        return self.in_order(self._present()[index], order)

    def in_order(self, value: Value, order: Order) -> int:
        """The buffer of a value whose axes lie in an order; a copy where there is none."""
        places = (*self.lowering.places(value), *self.found.get(value, ()))
        for place in places:
            if place.order == order:
                return place.number
        source = places[0]
        kernel = copy_kernel(value.tensor, source.order, order).labelled("reorder")
        if self.lowering.is_weight(value) and not kernel.symbols and not type_symbols(value.type):
            number = self.lowering.kept(value.type, order)
            self.made.append(number)
            self.before.append(self._step(kernel, [source.number], [number]))
        else:
            number = self.lowering.memory(value.type, order)
            self.body.append(self._step(kernel, [source.number], [number], overlaps=True))
        self.found.setdefault(value, []).append(Place(number, order))
        return number

    def prepared(self, kernel: Kernel, reads: Sequence[int], kind: TensorType) -> int:
        """A buffer that a kernel makes from weights alone, once, at load."""
        number = self.lowering.kept(kind)
        self.made.append(number)
        self.before.append(self._step(kernel, reads, [number]))
        return number

    def result(self, index: int = 0, order: Order = None) -> int:
        """The buffer of a result."""
        if index not in self.results:
            self.results[index] = Place(self._memory(self.instruction.types[index], order), order)
        return self.results[index].number

    def is_weight(self, index: int) -> bool:
        """Whether a parameter is a weight."""
        return self.lowering.is_weight(self._present()[index])

    def temporary(self, kind: TensorType) -> int:
        """A buffer for the steps of this op."""
        return self._memory(kind)

    def draw_number(self) -> int:
        """A buffer with the number of the draw: of the run and the iterations that it is in."""
        number = self.temporary(TensorType(INT64, ()))
        self.body.append(RunStep(number))
        return number

    def _memory(self, kind: Type, order: Order = None) -> int:
        if not self.at_load:
            return self.lowering.memory(kind, order)
        self.made.append(self.lowering.kept(kind, order))
        return self.made[-1]

    def undefined(self, index: int = 0) -> Sequence[tuple[str, int]]:
        """Symbols that only this op gives a value, but for those that it has defined already."""
        defined = {step.symbol for step in self.body if isinstance(step, ShapeStep)}
        found = self.lowering.undefined(self.instruction.types[index])
        return [(name, axis) for name, axis in found if name not in defined]

    def define(self, symbol: str, buffer: int, element: int = 0) -> None:
        """Bind a data-dependent symbol."""
        self.body.append(ShapeStep(symbol, buffer, None, element))

    def launch(self, kernel: Kernel, reads: Sequence[int], writes: Sequence[int], numbers: Sequence[int] = ()) -> None:
        """Append a launch. Raises DeclinedError where the toolchain refused the kernel before."""
        if self.at_load:
            self.before.append(self._step(kernel, reads, writes, numbers))
        else:
            self.body.append(self._step(kernel, reads, writes, numbers, overlaps=True))

    def _step(
        self,
        kernel: Kernel,
        reads: Sequence[int],
        writes: Sequence[int],
        numbers: Sequence[int] = (),
        *,
        overlaps: bool = False,
    ) -> LaunchStep:
        """A launch; one that `overlaps` may start early. At load nothing does: kernels read weights without waiting."""
        kernel = kernel.labelled(self.label)
        if not self.lowering.programmatic:
            kernel = kernel.serial()
        if why := self.lowering.is_refused(kernel):
            raise DeclinedError(why)
        self.kernels.append(kernel)
        maps, first = map_arguments(kernel.maps, (*reads, *writes))
        pointers = [PointerArgument(first + 8 * slot, number) for slot, number in enumerate((*reads, *writes))]
        first += 8 * len(pointers)
        fault = (HiddenArgument(first, 8, "fault"),) if kernel.may_fail else ()
        first += 8 * len(fault)
        counters = (ScratchArgument(first, 4 * kernel.counters),) if kernel.counters else ()
        first += 8 * len(counters)
        width, kind = (8, "int64") if kernel.symbol_type == "i64" else (4, "int32")
        scalars = [
            ScalarArgument(first + width * slot, kind, self.lowering.symbol_text(name))
            for slot, name in enumerate(kernel.symbols)
        ]
        if len(numbers) != kernel.numbers:
            raise InternalError(f"the kernel {kernel.entry} takes {kernel.numbers} numbers, found {len(numbers)}")
        scalars += [
            ScalarArgument(first + width * slot, kind, value) for slot, value in enumerate(numbers, len(scalars))
        ]
        grid = tuple(self.lowering.size(size) for size in kernel.launch.grid)
        return LaunchStep(
            0, kernel.entry, (grid[0], grid[1], grid[2]), (0, 1, 1), first + width * len(scalars),
            (*maps, *pointers, *fault, *counters, *scalars), tuple(reads), tuple(writes),
            programmatic=overlaps and kernel.is_programmatic, source=self.instruction.source, whole=True,
        )  # fmt: skip


def copy_kernel(kind: TensorType, source: Order, order: Order) -> Kernel:
    """Copies a tensor from one order of its axes to another."""
    words = words_type(kind)
    if (words.dims or ()) != (kind.dims or ()):
        source, order = (None if each is None else (*each, len(each)) for each in (source, order))
    kind = words
    parameter = Instruction(Parameter(kind), (), (kind,), (None,), ("x",))
    module = Module("copy", (parameter,), (), (parameter.result(),), ("y",))
    return elementwise_kernel(module, (source,), order)
