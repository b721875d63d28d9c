"""Triton text in the making: indentation, fresh names, and dim expressions as Triton."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from argosy.ir.dim import Call, Dim, DimLike, Symbol, bounds, symbols_in

__all__ = ["TritonText", "axis_name", "strides_of"]

_FUNCTIONS: Final = {"floordiv": "floor_div", "ceildiv": "ceil_div", "mod": "floor_mod", "min": "tl.minimum",
                     "max": "tl.maximum"}  # fmt: skip
LOCAL: Final = "@"
"""Begins the names of symbols that a kernel itself defines: `@0` is axis 0 of the iteration space, `@v3` a local."""


def axis_name(axis: int) -> str:
    """The variable of an axis of the iteration space."""
    return f"i{axis}"


class TritonText:
    """Lines of one kernel. Symbols of the program become `s0`, `s1`, … in the order in which they are met.

    Where `wide`, all index arithmetic is on 64 bits; `faults` says that the kernel may report one. `roots` tells for
    each index variable which block variables it is computed from; a scalar has none.
    """

    def __init__(self) -> None:
        self.symbols: dict[str, str] = {}
        self.roots: dict[str, frozenset[str]] = {}
        self.wide = False
        self.faults = False
        self._lines: list[str] = []
        self._depth = 1
        self._fresh = 0

    @property
    def index_type(self) -> str:
        """The type of indices."""
        return "tl.int64" if self.wide else "tl.int32"

    def line(self, text: str) -> None:
        """Append a line."""
        self._lines.append("    " * self._depth + text)

    def fresh(self, stem: str = "t") -> str:
        """A variable name that nothing else has."""
        self._fresh += 1
        return f"{stem}{self._fresh}"

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

    def text(self) -> str:
        """All lines."""
        return "\n".join(self._lines)

    def dim(self, dim: DimLike) -> str:
        """A dim expression as Triton."""
        if isinstance(dim, int):
            return str(dim)
        parts = []
        for monomial, coefficient in dim.terms:
            factors = [self._atom(atom) for atom in monomial]
            if coefficient != 1 or not factors:
                factors.append(str(coefficient) if coefficient >= 0 else f"({coefficient})")
            parts.append(" * ".join(factors))
        text = " + ".join(parts)
        return text if text.isidentifier() else f"({text})"

    def _atom(self, atom: Symbol | Call) -> str:
        if isinstance(atom, Symbol):
            return self.symbol(atom.name)
        left, right = self.dim(atom.left), self.dim(atom.right)
        if atom.function in ("floordiv", "mod") and _natural(atom.left) and _positive(atom.right):
            return f"({left} {'//' if atom.function == 'floordiv' else '%'} {right})"
        return f"{_FUNCTIONS[atom.function]}({left}, {right})"

    def symbol(self, name: str) -> str:
        """The variable of a symbol."""
        if name.startswith(LOCAL):
            local = name[len(LOCAL) :]
            return axis_name(int(local)) if local.isdigit() else local
        if name not in self.symbols:
            self.symbols[name] = f"s{len(self.symbols)}"
        return self.symbols[name]


def _natural(dim: DimLike) -> bool:
    low = bounds(dim)[0]
    return low is not None and low >= 0


def _positive(dim: DimLike) -> bool:
    low = bounds(dim)[0]
    return low is not None and low > 0


def strides_of(shape: tuple[DimLike, ...], order: tuple[int, ...] | None = None) -> tuple[DimLike, ...]:
    """Strides in elements of a dense tensor whose axes lie in `order`, outermost first; row-major without one."""
    result: list[DimLike] = [0] * len(shape)
    step: DimLike = 1
    for axis in reversed(order if order is not None else range(len(shape))):
        result[axis] = step
        size = shape[axis]
        step = size * step if isinstance(size, Dim) else step * size
    return tuple(result)
