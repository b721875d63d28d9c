"""Rebuilding: one walk over a module that makes the next one.

`Rebuild` copies a module into a builder, instruction by instruction, in order; what a subclass changes
flows on to everything that reads it: operands are mapped, types inferred again where they changed, bodies
of control ops visited, a data-dependent symbol that has got a better definition is replaced wherever it
occurs, and a conditional whose condition has become known gives way to its branch. Instructions that
nothing touches are shared with the old module, and where nothing is touched at all the old module itself
comes back.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from argosy.errors import InternalError, ModelError
from argosy.ir.builder import Builder, Namer
from argosy.ir.dim import DimLike, equal, lone_symbol, substitute, symbols_in
from argosy.ir.module import Constant, Instruction, Module, Parameter, Value
from argosy.ir.op import Op, map_attribute_dims
from argosy.ir.types import TensorType, Type, map_dims, type_symbols
from argosy.ops.control import If

__all__ = [
    "Change",
    "Rebuild",
    "Tape",
    "attribute_symbols",
    "map_bodies",
    "mentioned_symbols",
    "namer_of",
    "transform",
]

log = logging.getLogger("argosy.rewrite")

Change = Callable[[Builder, Instruction], Sequence[Value] | None]
"""Takes a builder and an instruction just appended to it; returns values for its results, or None to keep it."""


def namer_of(module: Module) -> Namer:
    """A namer that knows every symbol of `module` and the modules inside it."""
    return Namer(
        symbol.name for instruction in module.walk() for kind in instruction.types for symbol in type_symbols(kind)
    )


def map_bodies(op: Op, change: Callable[[Module], Module]) -> Op:
    """The op with `change` applied to every module among its attributes; itself where none changes."""
    if not op.modules():
        return op
    changed: dict[str, Any] = {}
    for name, value in op.attributes().items():
        new = change(value) if isinstance(value, Module) else value
        if new is not value:
            changed[name] = new
    return dataclasses.replace(op, **changed) if changed else op  # type: ignore[type-var]


class Tape(Builder):
    """A builder that can take back what was appended last."""

    @property
    def length(self) -> int:
        """Number of instructions appended so far."""
        return len(self._instructions)

    def take_back(self, length: int) -> list[Instruction]:
        """Remove and return everything appended since the tape had `length` instructions."""
        tail = self._instructions[length:]
        del self._instructions[length:]
        for instruction in tail:
            if isinstance(instruction.op, Constant):
                self._constants.pop(instruction.op.literal, None)
        return tail

    def redo(self, instruction: Instruction, op: Op, operands: Sequence[Value | None]) -> tuple[Value, ...]:
        """Append an instruction again with another op; data-dependent symbols keep their names."""
        added = self._append(op, operands, instruction.names, instruction.source, instruction.types)
        return added.instruction.results

    def same_as(self, module: Module) -> bool:
        """Whether the tape holds exactly the instructions of `module`."""
        return (
            len(self._instructions) == len(module.instructions)
            and all(new is old for new, old in zip(self._instructions, module.instructions, strict=True))
            and all(new is old for new, old in zip(self._parameters, module.parameters, strict=True))
        )


class Rebuild:
    """One walk over a module. Subclasses override `visit` (one instruction) and `body` (one inner module)."""

    def __init__(self, module: Module, namer: Namer, substitution: Mapping[str, DimLike] | None = None) -> None:
        self.module = module
        self.namer = namer
        self.tape = Tape(module.name, namer=namer)
        self.substitution: dict[str, DimLike] = dict(substitution or {})
        self._values: dict[Value, Value] = {}
        self._definers: dict[str, Instruction] = {}

    def run(self) -> Module:
        """The new module, or the old one itself where nothing changed."""
        for parameter in self.module.parameters:
            self.adopt(parameter)
        for instruction in self.module.instructions:
            self.visit(instruction)
        results = tuple(self.value(value) for value in self.module.results)
        if results == self.module.results and self.tape.same_as(self.module):
            return self.module
        return self.tape.module(list(zip(self.module.result_names, results, strict=True)))

    def visit(self, instruction: Instruction) -> None:
        """Decide about one instruction of the old module."""
        self.keep(instruction)

    def body(self, module: Module) -> Module:
        """The new form of a module inside an instruction."""
        return Rebuild(module, self.namer, self.substitution).run()

    def value(self, value: Value) -> Value:
        """What an old value has become."""
        while (newer := self._values.get(value)) is not None:
            value = newer
        return value

    def keep(self, instruction: Instruction) -> Instruction | None:
        """Append an instruction with its operands mapped, and return it as it is now.

        None where it was a conditional with a known condition: the instructions of the branch that is taken
        have been visited in its place. The other branch is not looked at: with the sizes that made the
        condition known it may well contradict itself.
        """
        op = instruction.op
        operands = instruction.operands
        if self._values:
            operands = tuple(None if operand is None else self.value(operand) for operand in operands)
        if op.modules():
            branch = _taken(op, operands)
            if branch is not None:
                self.inline(instruction, *branch)
                return None
            op = map_bodies(op, self._branch if isinstance(op, If) else self.body)
        if self.substitution:
            op = op.bind(self.substitution)
        if op is instruction.op:
            results = self.tape.keep(instruction, operands)
        else:
            results = self.tape.redo(instruction, op, operands)
        kept = results[0].instruction if results else instruction
        if kept is not instruction:
            self.replace(instruction, results)
        else:
            self._define(instruction)
        return kept

    def _branch(self, module: Module) -> Module:
        """The new form of a branch; the old one where it contradicts the sizes that have become known.

        Such a branch is wrong only if it is taken, which the run will tell. It keeps the symbols that its own
        parameters define, and is as general as it was.
        """
        try:
            return self.body(module)
        except ModelError as error:
            if not self.substitution.keys() & _free_symbols(module):
                log.warning("a branch cannot run with these sizes and stays general: %s", error.what)
                return module
            raise

    def inline(self, instruction: Instruction, body: Module, arguments: Sequence[Value | None]) -> None:
        """Visit the instructions of `body` in place of `instruction`, with `arguments` for its parameters."""
        # Copies, since no instruction may stand twice in a module, even if its body is held twice.
        copies: dict[Instruction, Instruction] = {}
        for inner in body.instructions:
            operands = tuple(_copied(operand, copies) for operand in inner.operands)
            copies[inner] = dataclasses.replace(inner, operands=operands)
        self.expanded(instruction, tuple(copies.values()))
        for parameter, argument in zip(body.parameters, arguments, strict=True):
            if argument is None:
                raise InternalError("a branch captures an absent value", where=instruction.source)
            self._values[parameter.result()] = argument
            self.moved(parameter.result(), argument)
        for copy in copies.values():
            self.visit(copy)
        results = [_copied(value, copies) for value in body.results]
        self.replace(instruction, [self.value(value) for value in results if value is not None])

    def expanded(self, instruction: Instruction, body: Sequence[Instruction]) -> None:
        """Called when the instructions of `body` are about to be visited in place of `instruction`."""

    def replace(self, instruction: Instruction, values: Sequence[Value]) -> None:
        """Say that `values` stand for the results of `instruction` from now on."""
        if len(values) != len(instruction.types):
            raise InternalError(
                f"{len(values)} values given for the {len(instruction.types)} results of {instruction.op.name}",
                where=instruction.source,
            )
        self.redirect(list(zip(instruction.results, values, strict=True)))

    def redirect(self, pairs: Sequence[tuple[Value, Value]]) -> None:
        """Say of each pair that the second stands for the first, an old value, from now on."""
        for old, new in pairs:
            self._refine(old.instruction, old.type, new.type)
            if old != new:
                self._values[old] = new
                self.moved(old, new)
        for _, new in pairs:
            self._define(new.instruction)

    def moved(self, old: Value, new: Value) -> None:
        """Called when readers of `old` are turned to `new`."""

    def misfit(self, instruction: Instruction, old: Type, new: Type) -> str:
        """Why a value of type `new` may not stand for a result of type `old`; an empty string where it may.

        The element type must be the same; a dim may become another expression only where it was a symbol
        that the replaced instruction itself defines, or where a number takes the place of an unknown.
        """
        if old == new:
            return ""
        if isinstance(old, TensorType) and isinstance(new, TensorType) and old.dtype is new.dtype:
            if old.dims is None:
                return ""
            if new.dims is None or len(new.dims) != len(old.dims):
                return f"the rank would change from {old} to {new}"
            if all(self._dim_fits(instruction, *pair) for pair in zip(old.dims, new.dims, strict=True)):
                return ""
        return f"the type would change from {old} to {new}"

    def _dim_fits(self, instruction: Instruction, old: DimLike, new: DimLike) -> bool:
        return bool(equal(old, new)) or self._own_symbol(instruction, old) is not None

    def _own_symbol(self, instruction: Instruction, dim: DimLike) -> str | None:
        """The name of the symbol that `dim` is, where `instruction` itself gives it its value."""
        symbol = lone_symbol(dim)
        if symbol is not None and self._definers.get(symbol.name, instruction) is instruction:
            return symbol.name
        return None

    def adopt(self, parameter: Instruction) -> None:
        """Take over a parameter of the old module."""
        kind = parameter.types[0]
        if self.substitution:
            kind = map_dims(kind, lambda dim: substitute(dim, self.substitution))
        if kind == parameter.types[0]:
            self.tape.adopt(parameter)
        else:
            adopted = Instruction(Parameter(kind), (), (kind,), parameter.known, parameter.names, parameter.source)
            self._values[parameter.result()] = self.tape.adopt(adopted)
            self.moved(parameter.result(), adopted.result())
        self._define(self.value(parameter.result()).instruction)

    def _define(self, instruction: Instruction) -> None:
        for kind in instruction.types:
            if isinstance(kind, TensorType) and kind.dims is not None:
                for dim in kind.dims:
                    if not isinstance(dim, int):
                        symbol = lone_symbol(dim)
                        if symbol is not None:
                            self._definers.setdefault(symbol.name, instruction)

    def _refine(self, instruction: Instruction, old: Type, new: Type) -> None:
        """Note data-dependent symbols of `old` that have an expression in `new`, to put it in their place."""
        if old == new or not (isinstance(old, TensorType) and isinstance(new, TensorType)):
            return
        for before, after in zip(old.dims or (), new.dims or (), strict=False):
            name = self._own_symbol(instruction, before)
            if name is not None and before != after:  # after may be the same symbol with other bounds
                self.substitution.setdefault(name, after)
                self._definers.pop(name, None)


def _taken(op: Op, operands: Sequence[Value | None]) -> tuple[Module, Sequence[Value | None]] | None:
    """The branch of a conditional that is known to be taken, and its arguments."""
    condition = operands[0] if isinstance(op, If) else None
    if not isinstance(op, If) or condition is None or condition.known is None or condition.known.size != 1:
        return None
    split = 1 + len(op.then_branch.parameters)
    if condition.known.reshape(-1)[0]:
        return op.then_branch, operands[1:split]
    return op.else_branch, operands[split:]


def _free_symbols(module: Module) -> set[str]:
    """Names of the symbols in a body that its parameters do not define; those of its instructions among them."""
    mentioned = {symbol.name for inner in module.walk() for kind in inner.types for symbol in type_symbols(kind)} | set(
        mentioned_symbols(module)
    )
    dims = (dim for p in module.parameters if isinstance(p.types[0], TensorType) for dim in p.types[0].dims or ())
    return mentioned - {symbol.name for symbol in map(lone_symbol, dims) if symbol is not None}


def mentioned_symbols(module: Module) -> Iterator[str]:
    """Names of the symbols in the attributes of a module's instructions, inner modules included."""
    for inner in module.walk():
        yield from attribute_symbols(inner.op)


def attribute_symbols(op: Op) -> list[str]:
    """Names of the symbols in the attributes of an op, its modules apart."""
    names: list[str] = []

    def collect(dim: DimLike) -> DimLike:
        names.extend(symbol.name for symbol in symbols_in(dim))
        return dim

    map_attribute_dims(op, collect)
    return names


def _copied(value: Value | None, copies: Mapping[Instruction, Instruction]) -> Value | None:
    copy = None if value is None else copies.get(value.instruction)
    return value if value is None or copy is None else Value(copy, value.index)


class _Transform(Rebuild):
    def __init__(
        self,
        module: Module,
        namer: Namer,
        change: Callable[[], Change],
        substitution: Mapping[str, DimLike] | None = None,
    ) -> None:
        super().__init__(module, namer, substitution)
        self._make = change
        self._change = change()

    def visit(self, instruction: Instruction) -> None:
        kept = self.keep(instruction)
        if kept is None:
            return
        length = self.tape.length
        self.tape.at(kept.source)
        values = self._change(self.tape, kept)
        self.tape.at("")
        if values is None:
            self.tape.take_back(length)
            return
        for old, new in zip(kept.types, values, strict=False):
            reason = self.misfit(kept, old, new.type)
            if reason:
                raise InternalError(reason, where=kept.source or kept.op.name)
        self.replace(kept, values)

    def body(self, module: Module) -> Module:
        return _Transform(module, self.namer, self._make, self.substitution).run()


def transform(module: Module, change: Callable[[], Change], namer: Namer | None = None) -> Module:
    """Apply a change to every instruction, in order, in this module and those inside it.

    `change` makes the function that is asked about each instruction, anew for each module (so that it may
    remember what it saw there). Returns `module` itself where nothing changed.
    """
    return _Transform(module, namer or namer_of(module), change).run()
