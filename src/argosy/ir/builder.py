"""The builder: the one mutable thing, local to whoever makes a module.

It infers types as instructions are added, gives data-dependent dims their names, and propagates known
values (small integer tensors made of numbers and dims), so that `Reshape(x, Concat(Shape(x)[0], 768))` has
the type that one expects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from argosy.errors import ArgosyError, InternalError
from argosy.ir.dim import DimLike, Symbol, lone_symbol, substitute, symbol_dim, symbols_in
from argosy.ir.dtype import BOOL, INT32, INT64, DType, dtype
from argosy.ir.formula import Formula
from argosy.ir.literal import Literal
from argosy.ir.module import Constant, Instruction, Module, Parameter, Value
from argosy.ir.op import Known, Op, op_class
from argosy.ir.types import TensorType, Type, map_dims, type_symbols

__all__ = ["KNOWN_LIMIT", "Builder", "Namer", "known_results"]

KNOWN_LIMIT = 1024
"""Largest number of elements for which a value is tracked while compiling: shapes and indices, not data."""


class Namer:
    """Hands out symbol names that are unique in one program."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def reserve(self, names: Iterable[str]) -> None:
        """Mark names as used."""
        self._taken.update(names)

    def unique(self, stem: str) -> str:
        """`stem0`, `stem1`, … whichever is free."""
        number = self._next.get(stem, 0)
        while f"{stem}{number}" in self._taken:
            number += 1
        self._next[stem] = number + 1
        name = f"{stem}{number}"
        self._taken.add(name)
        return name


class Builder:
    """Makes one module. Sub-builders of bodies share its namer.

    `b.add(op, x, w)` appends any op, `b.pointwise(lambda x: ..., x)` a formula, `b.constant(array)` a
    literal; `b.module(results)` freezes what was made.
    """

    def __init__(self, name: str = "main", *, namer: Namer | None = None) -> None:
        self.name = name
        self.namer = namer or Namer()
        self._parameters: list[Instruction] = []
        self._instructions: list[Instruction] = []
        self._constants: dict[Literal, Value] = {}
        self._source = ""

    def parameter(self, name: str, kind: Type) -> Value:
        """A new input of the module."""
        if any(parameter.names[0] == name for parameter in self._parameters):
            raise ArgosyError(f"two parameters are called {name!r}", where=f"module {self.name}")
        self.namer.reserve(symbol.name for symbol in type_symbols(kind))
        instruction = Instruction(Parameter(kind), (), (kind,), (None,), (name,))
        self._parameters.append(instruction)
        return instruction.result()

    def tensor_parameter(self, name: str, element: str | DType, dims: Sequence[DimLike | str]) -> Value:
        """A tensor input; a dim given as a word is a symbol of that name."""
        sizes = tuple(symbol_dim(Symbol(dim)) if isinstance(dim, str) else dim for dim in dims)
        kind = element if isinstance(element, DType) else dtype(element)
        return self.parameter(name, TensorType(kind, sizes))

    def constant(self, value: Any, element: DType | None = None, *, name: str = "") -> Value:
        """A literal: `value` is a Literal or anything that numpy takes. Equal unnamed ones are shared."""
        literal = value if isinstance(value, Literal) else Literal.of(value, element)
        if not name and literal.nbytes <= KNOWN_LIMIT and literal in self._constants:
            return self._constants[literal]
        added = self._append(Constant(literal), (), (name,) if name else (), "")
        if not name and literal.nbytes <= KNOWN_LIMIT:
            self._constants[literal] = added
        return added

    def pointwise(self, formula: Formula | str | Callable[..., Any], *operands: Value, **origin: Any) -> Value:
        """A formula applied element by element with broadcasting: a Formula, a primitive's name, or a function."""
        if isinstance(formula, str):
            formula = Formula.of(formula)
        elif not isinstance(formula, Formula):
            formula = Formula.trace(formula, len(operands))
        return self.add(op_class("pointwise")(formula), *operands, **origin)  # type: ignore[call-arg]

    def convert(self, operand: Value, element: DType) -> Value:
        """`operand` in another element type; itself where it has that type already."""
        if operand.dtype is element:
            return operand
        return self.pointwise(Formula.of("convert", element), operand)

    def add(self, op: Op, *operands: Value | None, names: Sequence[str] = (), source: str = "") -> Value:
        """Append `op` and return its first result; see `add_all`."""
        return self._append(op, operands, tuple(names), source)

    def add_all(
        self, op: Op, *operands: Value | None, names: Sequence[str] = (), source: str = ""
    ) -> tuple[Value, ...]:
        """Append `op` and return all its results.

        Raises ModelError, naming `source`, where the operands contradict the op.
        """
        return self._append(op, operands, tuple(names), source).instruction.results

    def keep(self, instruction: Instruction, operands: Sequence[Value | None]) -> tuple[Value, ...]:
        """Append an instruction of another module with new operands; unchanged ones are shared, not copied.

        Where the operands have the same types and known values as before, the types are kept as they are;
        else they are inferred again.
        """
        if tuple(operands) == instruction.operands:
            self._instructions.append(instruction)
            return instruction.results
        pairs = list(zip(operands, instruction.operands, strict=True))
        if all(_alike(new, old) for new, old in pairs):
            moved = Instruction(
                instruction.op,
                tuple(operands),
                instruction.types,
                instruction.known,
                instruction.names,
                instruction.source,
            )
            if all(new is old or _constant(new) is _constant(old) for new, old in pairs):
                _say_inferred(moved, instruction.defines)
            self._instructions.append(moved)
            return moved.results
        added = self._append(instruction.op, operands, instruction.names, instruction.source, instruction.types)
        return added.instruction.results

    def adopt(self, parameter: Instruction) -> Value:
        """Take over a parameter of another module."""
        self._parameters.append(parameter)
        return parameter.result()

    def at(self, source: str) -> Builder:
        """Say which node of the source model the instructions that follow come from."""
        self._source = source
        return self

    def name_result(self, value: Value, name: str, source: str) -> Value:
        """Give a value its name in the source model, where its instruction is ours, of `source`, and has none yet.

        The instruction is still being built: nothing but the name changes, and no other module can hold it.
        """
        instruction = value.instruction
        if (
            instruction.source == source
            and self._instructions
            and not any(instruction.names[value.index : value.index + 1])
        ):
            names = [*instruction.names, *[""] * (len(instruction.types) - len(instruction.names))]
            names[value.index] = name
            object.__setattr__(instruction, "names", tuple(names))
        return value

    def module(self, results: Mapping[str, Value] | Sequence[tuple[str, Value]]) -> Module:
        """The finished module with named results."""
        pairs = list(results.items()) if isinstance(results, Mapping) else list(results)
        return Module(
            self.name,
            tuple(self._parameters),
            tuple(self._instructions),
            tuple(value for _, value in pairs),
            tuple(name for name, _ in pairs),
        )

    def _append(
        self,
        op: Op,
        operands: Sequence[Value | None],
        names: tuple[str, ...],
        source: str,
        previous: tuple[Type, ...] = (),
    ) -> Value:
        source = source or self._source
        try:
            types = op.result_types(*operands)
        except ArgosyError as error:
            raise error.at(source or op.name) from None
        types, defines = self._name_fresh(op, types, previous)
        known = known_results(op, operands, types)
        if isinstance(op, Constant):
            source = source if names else ""
        instruction = Instruction(op, tuple(operands), types, known, names, source)
        _say_inferred(instruction, defines)
        self._instructions.append(instruction)
        return Value(instruction, 0)

    def _name_fresh(
        self, op: Op, types: tuple[Type, ...], previous: tuple[Type, ...]
    ) -> tuple[tuple[Type, ...], tuple[str, ...]]:
        """Replace the placeholders of `fresh` by names: those of the instruction that is redone, else new ones.

        The types, and the names.
        """
        placeholders = sorted(
            (symbol for kind in types for symbol in type_symbols(kind) if symbol.name.startswith("?")),
            key=lambda symbol: symbol.name,
        )
        if not placeholders:
            return types, ()
        old = _fresh_names(types, previous)
        names: dict[str, DimLike] = {}
        for symbol in placeholders:
            if symbol.name not in names:
                name = old.get(symbol.name) or self.namer.unique(f"{op.name}_{symbol.name[1:]}")
                names[symbol.name] = symbol_dim(Symbol(name, symbol.lower, symbol.upper))
        defined = tuple(symbol.name for dim in names.values() for symbol in symbols_in(dim))
        return tuple(map_dims(kind, lambda dim: substitute(dim, names)) for kind in types), defined


def _say_inferred(instruction: Instruction, defines: tuple[str, ...] | None) -> None:
    """Say of a new instruction, which nobody else has seen yet, that its types are those that its op infers."""
    object.__setattr__(instruction, "defines", defines)


def _constant(value: Value | None) -> Literal | None:
    return None if value is None else value.constant


def _fresh_names(types: tuple[Type, ...], previous: tuple[Type, ...]) -> dict[str, str]:
    """Names that the placeholders in `types` had in `previous`, where dim stands against dim."""
    found: dict[str, str] = {}
    for new, old in zip(types, previous, strict=False):
        if isinstance(new, TensorType) and isinstance(old, TensorType) and new.dims and old.dims:
            for placeholder, named in zip(new.dims, old.dims, strict=False):
                left, right = lone_symbol(placeholder), lone_symbol(named)
                if left is not None and right is not None and left.name.startswith("?"):
                    found.setdefault(left.name, right.name)
    return found


def _alike(new: Value | None, old: Value | None) -> bool:
    if new is None or old is None:
        return new is old
    if new.type != old.type:
        return False
    if new.known is None or old.known is None:
        return new.known is old.known
    return new.known.shape == old.known.shape and new.known.tolist() == old.known.tolist()


def known_results(op: Op, operands: Sequence[Value | None], types: tuple[Type, ...]) -> tuple[Known | None, ...]:
    """Known values of the results of an instruction, None for those that are not known or too large to track."""
    if isinstance(op, Constant):
        literal = op.literal
        if literal.size <= KNOWN_LIMIT and literal.dtype.kind in ("int", "uint", "bool", "float"):
            if literal.dtype not in (INT64, INT32, BOOL) and literal.size > 16:
                return (None,)
            return (literal.array().astype(object),)
        return (None,)
    if not any(_small(kind) for kind in types):
        return (None,) * len(types)
    found = op.known(*operands)
    if found is None:
        return (None,) * len(types)
    if len(found) != len(types):
        raise InternalError(f"{op.name} knows {len(found)} results of {len(types)}")
    return tuple(
        np.asarray(value, dtype=object) if value is not None and value.size <= KNOWN_LIMIT else None for value in found
    )


def _small(kind: Type) -> bool:
    if not isinstance(kind, TensorType) or kind.dims is None:
        return False
    size = 1
    for dim in kind.dims:
        if not isinstance(dim, int):
            return False
        size *= dim
    return size <= KNOWN_LIMIT
