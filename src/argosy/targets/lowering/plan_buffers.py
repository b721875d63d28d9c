"""The buffers of a plan in the making, and which symbols have their values."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.artifact.encode import Encoder
from argosy.artifact.plan import BufferRecord
from argosy.ir.dim import DimLike, lone_symbol
from argosy.ir.literal import Literal
from argosy.ir.types import TensorType, Type, type_symbols
from argosy.targets.lowering.values import in_bytes, is_numeric

__all__ = ["PlanBuffers"]


class PlanBuffers:
    """Base of the lowering. `bound` symbols have values by now, `early` ones have them when a run begins."""

    def __init__(self) -> None:
        self.encoder = Encoder()
        self.buffers: list[BufferRecord] = []
        self.kinds: list[Type] = []
        """The types of the buffers."""
        self.shifts: dict[int, DimLike] = {}
        """How many bytes after the start of its base a view begins."""
        self.bound: set[str] = set()
        self.early: frozenset[str] = frozenset()

    def buffer(self, kind: str, of: Type, **fields: object) -> int:
        """A new buffer; its number."""
        self.buffers.append(BufferRecord(kind, self.encoder.type(of), **fields))  # type: ignore[arg-type]
        self.kinds.append(of)
        return len(self.buffers) - 1

    def view(self, of: Type, base: int, shift: DimLike) -> int:
        """A part of buffer `base`, `shift` bytes after its start; its number."""
        number = self.buffer("view", of, base=base, shift=self.size(shift))
        self.shifts[number] = shift
        return number

    def forget(self, first: int) -> None:
        """Take back the buffers from number `first` on."""
        del self.buffers[first:], self.kinds[first:]

    def memory(self, of: Type, order: Sequence[int] | None = None) -> int:
        """A buffer for kernels to write: in the arena where its size is known when a run begins.

        Its axes lie in `order`, outermost first; row-major without one. Elements below a byte lie one to a byte, but
        for inputs, outputs, weights and what host steps read or write.
        """
        return self.raw_memory(in_bytes(of), order)

    def kept(self, of: Type, order: Sequence[int] | None = None) -> int:
        """A buffer for kernels to write once, when the artifact is loaded."""
        return self.buffer("prepared", in_bytes(of), order=tuple(order or ()))

    def raw_memory(self, of: Type, order: Sequence[int] | None = None) -> int:
        """Like `memory`, elements below a byte packed."""
        if all(symbol.name in self.early for symbol in type_symbols(of)):
            return self.buffer("planned", of, arena=0, order=tuple(order or ()))
        return self.buffer("pooled", of, order=tuple(order or ()))

    def undefined(self, kind: Type) -> list[tuple[str, int]]:
        """The symbols in a type that have no value yet, and their axes."""
        dims = kind.dims if isinstance(kind, TensorType) and kind.dims is not None else ()
        lone = ((lone_symbol(dim), axis) for axis, dim in enumerate(dims))
        return [(symbol.name, axis) for symbol, axis in lone if symbol is not None and symbol.name not in self.bound]

    def size(self, dim: DimLike) -> int | str:
        """A dim as the plan writes it."""
        return dim if isinstance(dim, int) else str(dim)

    def symbol_text(self, name: str) -> str:
        """A symbol as the plan writes it."""
        return str(self.encoder.symbols[name])

    def new_symbols(self, kind: Type) -> list[tuple[str, int]]:
        """The `undefined` symbols of a type, which count as bound from now on."""
        found = dict(reversed(self.undefined(kind)))
        self.bound.update(found)
        return list(found.items())

    def room(self, of: Type) -> int:
        """A buffer for values of a type: in memory, or for Python objects where kernels can't hold them."""
        return self.memory(of) if is_numeric(of) else self.buffer("value", of)

    def weight(self, literal: Literal) -> int:
        """The buffer of a constant."""
        kind = TensorType(literal.dtype, literal.shape)
        return self.buffer("weight", kind, literal=self.encoder.literal(literal))
