"""Triton text in the making: variables, and which block variables each depends on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from argosy.ir.dim import DimLike, symbols_in
from argosy.targets.lowering.kernel_text import LOCAL, KernelText

__all__ = ["TritonText"]


class TritonText(KernelText):
    """Lines of one kernel.

    Where `wide`, all index arithmetic is on 64 bits; `faults` says that the kernel may report one. `roots` tells for
    each index variable which block variables it is computed from; a scalar has none.
    """

    indent = "    "
    functions: ClassVar = {
        "floordiv": "floor_div",
        "ceildiv": "ceil_div",
        "mod": "floor_mod",
        "min": "tl.minimum",
        "max": "tl.maximum",
    }
    division: ClassVar = {"floordiv": "//", "mod": "%"}

    def __init__(self) -> None:
        super().__init__()
        self.roots: dict[str, frozenset[str]] = {}
        self.wide = False
        self.faults = False

    @property
    def index_type(self) -> str:
        """The type of indices."""
        return "tl.int64" if self.wide else "tl.int32"

    def let(self, expression: str, stem: str = "t") -> str:
        """A new variable; its name."""
        name = self.fresh(stem)
        self.line(f"{name} = {expression}")
        return name

    def root(self, name: str, expression: str) -> None:
        """Define a block variable: a range, laid along one axis of the block."""
        self.line(f"{name} = {expression}")
        self.roots[name] = frozenset({name})

    def derive(self, name: str, expression: str, *sources: str) -> str:
        """Define an index variable computed from others; its name."""
        self.line(f"{name} = {expression}")
        self.roots[name] = frozenset().union(*(self.roots.get(source, frozenset()) for source in sources))
        return name

    def roots_of(self, dim: DimLike) -> frozenset[str]:
        """The block variables that an index depends on."""
        names = (symbol.name for symbol in symbols_in(dim) if symbol.name.startswith(LOCAL))
        return frozenset().union(*(self.roots.get(self.symbol(name), frozenset()) for name in names))

    def roots_of_all(self, indices: Iterable[DimLike]) -> frozenset[str]:
        """The block variables that any of some indices depends on."""
        return frozenset().union(*map(self.roots_of, indices))

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines under `head`, one level deeper."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def mark(self) -> int:
        """The place of the next line."""
        return len(self._lines)

    def take(self, mark: int) -> list[str]:
        """Take back the lines from a place on, without their indentation."""
        taken = self._lines[mark:]
        del self._lines[mark:]
        return [line.strip() for line in taken]

    def insert(self, mark: int, lines: Iterable[str]) -> None:
        """Put lines at a place on the outermost level."""
        self._lines[mark:mark] = ["    " + line for line in lines]

    def whole(self, number: int) -> str:
        """A constant of Python's."""
        return str(number)

    def product(self, factors: list[str], coefficient: int) -> str:
        """The number last."""
        shown = str(coefficient) if coefficient >= 0 else f"({coefficient})"
        return " * ".join([*factors, shown] if coefficient != 1 or not factors else factors)
