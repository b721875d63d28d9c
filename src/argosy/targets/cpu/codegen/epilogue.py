"""What takes a tile of sums behind a product: sixteen columns at a time where there are vectors, else one by one."""

from __future__ import annotations

from dataclasses import dataclass

from argosy.ir import access as maps
from argosy.ir.access import Access
from argosy.ir.dtype import FLOAT32, INT32
from argosy.ir.module import Module, Value
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.kernel import KernelWriter
from argosy.targets.cpu.codegen.tile import BLOCK
from argosy.targets.cpu.codegen.vector_elements import VectorElements, position, store_lanes
from argosy.targets.cpu.codegen.walking import coefficient, merged_extents
from argosy.targets.lowering.accesses import DeclinedError
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["Epilogue"]


@dataclass(frozen=True, slots=True)
class Epilogue:
    """The way from `anchor`, whose elements the kernel has, to the root of `module`, which has its shape."""

    module: Module
    anchor: Value

    @property
    def root(self) -> Value:
        """The value that is stored."""
        return self.module.results[0]

    @property
    def place(self) -> Access:
        """Where an element of the root lies."""
        return maps.identity(self.root.shape)

    def vectorises(self, axis: int) -> bool:
        """Whether vectors along an axis of the result can be computed."""
        try:
            self._store_vector(KernelWriter(self.module, [self.root.dtype]), "sums", axis)
        except DeclinedError:
            return False
        return True

    def walks_as_one(self, axes: int) -> bool:
        """Whether every access can walk the first `axes` axes of the result as one."""
        writer = KernelWriter(self.module, [self.root.dtype])
        self._store_one(writer, "sum")
        if writer.elements.positional:
            return False
        merged = merged_extents(self.root.shape[:axes], writer.elements.offsets)
        return all(isinstance(size, int) and size == 1 for size in merged[:-1])

    def store(self, writer: KernelWriter, sums: str, first: str, *, vectors: bool) -> None:
        """Store what becomes of the 16 numbers at pointer `sums`, which begin at place `first` of the last axis.

        The places of the other axes are variables already. What lies beyond the end of the axis is left out.
        """
        text = writer.text
        axis = self.root.rank - 1
        size, name = text.dim(self.root.shape[axis]), axis_name(axis)
        if vectors:
            with text.block(f"if ({first} + {BLOCK} <= {size})"):
                text.line(f"const int64 {name} = {first};")
                self._store_vector(writer, sums, axis)
            text.line("else")
        with text.loop(name, first, f"min_int64({first} + {BLOCK}, {size})"), writer.elements.scope():
            kind = scalar.compute_type(self.anchor.dtype)
            self._store_one(writer, text.let(kind, f"({kind})({sums})[{name} - ({first})]"))

    def _store_vector(self, writer: KernelWriter, sums: str, axis: int) -> None:
        root = self.root
        if self.anchor.dtype is not INT32 and self.anchor.dtype.compute is not FLOAT32:
            raise DeclinedError(f"vectors of {self.anchor.dtype}")
        kind = f"{self.anchor.dtype.compute}x16"
        elements = VectorElements(writer.text, writer.pointers, axis)
        elements.given[self.anchor] = writer.text.let(kind, f"*(const {kind} *)({sums})")
        value = elements.of(root, self.place)
        if coefficient(position(self.place), axis) != 1:
            raise DeclinedError("a result whose elements do not lie side by side")
        writer.text.line(store_lanes(root.dtype, f"{writer.result()} + {writer.text.dim(position(self.place))}", value))

    def _store_one(self, writer: KernelWriter, given: str) -> None:
        writer.elements.given[self.anchor] = given
        value = writer.elements.of(self.root, self.place)
        at = writer.elements.offset(self.place)
        writer.text.line(f"{scalar.store(self.root.dtype, writer.result(), at, value)};")
