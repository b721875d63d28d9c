"""The text of a kernel in the making, in whatever language: indentation, fresh names, symbols, dim expressions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Final

from argosy.ir.dim import Call, Dim, DimLike, Symbol, bounds

__all__ = ["LOCAL", "KernelText", "axis_name", "strides_of"]

LOCAL: Final = "@"
"""Begins the names of symbols that a kernel itself defines: `@0` is axis 0 of its iterations, `@v3` a variable."""


def axis_name(axis: int) -> str:
    """The variable of an axis of the iterations."""
    return f"i{axis}"


class KernelText(ABC):
    """Lines of one kernel. Symbols of the program become `s0`, `s1`, … in the order in which they are met.

    `functions` are the language's for dims, by their names there; `division` are the operators of a quotient and a
    remainder where neither operand is negative.
    """

    indent: ClassVar[str]
    functions: ClassVar[Mapping[str, str]]
    division: ClassVar[Mapping[str, str]]

    def __init__(self) -> None:
        self.symbols: dict[str, str] = {}
        self._lines: list[str] = []
        self._depth = 1
        self._fresh = 0

    def line(self, text: str) -> None:
        """Append a line."""
        self._lines.append(self.indent * self._depth + text)

    def fresh(self, stem: str = "t") -> str:
        """A variable name that nothing else has."""
        self._fresh += 1
        return f"{stem}{self._fresh}"

    def text(self) -> str:
        """All lines."""
        return "\n".join(self._lines)

    def dim(self, dim: DimLike) -> str:
        """A dim expression, in parentheses whatever stands around it; a lone name needs none."""
        if isinstance(dim, int):
            return self.whole(dim)
        text = " + ".join(
            self.product([self._atom(atom) for atom in monomial], coefficient) for monomial, coefficient in dim.terms
        )
        return text if text.isidentifier() else f"({text})"

    @abstractmethod
    def whole(self, number: int) -> str:
        """A whole number."""

    @abstractmethod
    def product(self, factors: list[str], coefficient: int) -> str:
        """The product of factors, none for a lone number, and a number."""

    def symbol(self, name: str) -> str:
        """The variable of a symbol."""
        if name.startswith(LOCAL):
            local = name[len(LOCAL) :]
            return axis_name(int(local)) if local.isdigit() else local
        if name not in self.symbols:
            self.symbols[name] = f"s{len(self.symbols)}"
        return self.symbols[name]

    def _atom(self, atom: Symbol | Call) -> str:
        if isinstance(atom, Symbol):
            return self.symbol(atom.name)
        left, right = self.dim(atom.left), self.dim(atom.right)
        if atom.function in self.division and _at_least(atom.left, 0) and _at_least(atom.right, 1):
            return f"({left} {self.division[atom.function]} {right})"
        return f"{self.functions[atom.function]}({left}, {right})"


def _at_least(dim: DimLike, least: int) -> bool:
    low = bounds(dim)[0]
    return low is not None and low >= least


def strides_of(shape: tuple[DimLike, ...], order: tuple[int, ...] | None = None) -> tuple[DimLike, ...]:
    """Strides in elements of a dense tensor whose axes lie in `order`, outermost first; row-major without one."""
    result: list[DimLike] = [0] * len(shape)
    step: DimLike = 1
    for axis in reversed(order if order is not None else range(len(shape))):
        result[axis] = step
        size = shape[axis]
        step = size * step if isinstance(size, Dim) else step * size
    return tuple(result)
