"""A program: the main module and what travels with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from argosy.ir.dim import Symbol
from argosy.ir.literal import Literal
from argosy.ir.module import Constant, Module
from argosy.ir.types import Type, type_symbols

__all__ = ["Program"]


@dataclass(frozen=True, slots=True)
class Program:
    """The main module with its metadata (producer, opsets: told to people, not part of the model's hash)."""

    main: Module
    metadata: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def inputs(self) -> dict[str, Type]:
        """Name and type of each input, in order."""
        return {p.names[0]: p.types[0] for p in self.main.parameters}

    @property
    def outputs(self) -> dict[str, Type]:
        """Name and type of each output, in order."""
        return {name: value.type for name, value in zip(self.main.result_names, self.main.results, strict=True)}

    @property
    def symbols(self) -> dict[str, Symbol]:
        """The symbols that the inputs bring in, by name."""
        found: dict[str, Symbol] = {}
        for kind in self.inputs.values():
            for symbol in sorted(type_symbols(kind), key=lambda s: s.name):
                found.setdefault(symbol.name, symbol)
        return found

    @property
    def literals(self) -> tuple[Literal, ...]:
        """Every distinct constant of the program and the modules inside it, in order of first use."""
        found: dict[int, Literal] = {}
        for instruction in self.main.walk():
            if isinstance(instruction.op, Constant):
                found.setdefault(id(instruction.op.literal), instruction.op.literal)
        return tuple(found.values())
