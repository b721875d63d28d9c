"""C text in the making: indentation, scopes, fresh names, and dim expressions as C."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from argosy.ir.dim import Call, Dim, DimLike, Symbol, bounds

__all__ = ["CText", "axis_name", "strides"]

_FUNCTIONS: Final = {
    "floordiv": "floordiv_int64",
    "ceildiv": "ceildiv_int64",
    "mod": "floormod_int64",
    "min": "min_int64",
    "max": "max_int64",
}
LOCAL: Final = "@"
"""Begins the names of symbols that a kernel itself defines: `@0` is axis 0 of the loops, `@v3` a local variable."""


def axis_name(axis: int) -> str:
    """The C variable of a loop axis."""
    return f"i{axis}"


class CText:
    """Lines of one C function. Symbols of the program become `s0`, `s1`, … in the order in which they are met."""

    def __init__(self) -> None:
        self.symbols: dict[str, str] = {}
        self._lines: list[str] = []
        self._depth = 1
        self._fresh = 0

    def line(self, text: str) -> None:
        """Append a line."""
        self._lines.append("  " * self._depth + text)

    def fresh(self, stem: str = "t") -> str:
        """A variable name that nothing else has."""
        self._fresh += 1
        return f"{stem}{self._fresh}"

    def let(self, ctype: str, expression: str) -> str:
        """A new constant; its name."""
        name = self.fresh()
        self.line(f"const {ctype} {name} = {expression};")
        return name

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines inside braces."""
        self.line(f"{head} {{" if head else "{")
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")

    def loop(self, name: str, begin: str, end: str) -> AbstractContextManager[None]:
        """A loop over [begin, end) as a context."""
        return self.block(f"for (int64 {name} = {begin}, {name}_end = {end}; {name} < {name}_end; ++{name})")

    def text(self) -> str:
        """All lines."""
        return "\n".join(self._lines)

    def dim(self, dim: DimLike) -> str:
        """A dim expression as C over int64."""
        if isinstance(dim, int):
            return f"(int64){dim}ll" if abs(dim) >= 1 << 31 else str(dim)
        parts = []
        for monomial, coefficient in dim.terms:
            factors = [self._atom(atom) for atom in monomial]
            if coefficient != 1 or not factors:
                factors.insert(0, self.dim(coefficient))
            parts.append("*".join(factors))
        text = " + ".join(parts)
        # In parentheses, whatever stands around it; a lone name needs none.
        return text if text.isidentifier() else f"({text})"

    def _atom(self, atom: Symbol | Call) -> str:
        if isinstance(atom, Symbol):
            return self.symbol(atom.name)
        left, right = self.dim(atom.left), self.dim(atom.right)
        if atom.function in ("floordiv", "mod") and _natural(atom.left) and _positive(atom.right):
            return f"({left} {'/' if atom.function == 'floordiv' else '%'} {right})"
        return f"{_FUNCTIONS[atom.function]}({left}, {right})"

    def symbol(self, name: str) -> str:
        """The C name of a symbol."""
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


def strides(shape: tuple[DimLike, ...]) -> tuple[DimLike, ...]:
    """Row-major strides in elements."""
    result: list[DimLike] = []
    step: DimLike = 1
    for size in reversed(shape):
        result.append(step)
        step = size * step if isinstance(size, Dim) else step * size
    return tuple(reversed(result))
