"""What of a module depends on an instruction, in order: its tail, and what of it is needed outside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from argosy.ir.dim import lone_symbol
from argosy.ir.module import Instruction, Value
from argosy.ir.types import TensorType, Type, type_symbols
from argosy.rewrite.rebuild import attribute_symbols

__all__ = ["Tail"]


class Tail:
    """The instructions among `rest` that depend on the results of `root`, by operands or by a symbol.

    `needed` are values that must be known after all of `rest`. Of the tail, `ready` is how much can be moved before the
    instructions of `rest` that do not belong to it.
    """

    def __init__(self, root: Instruction, rest: Iterable[Instruction], needed: Iterable[Value]) -> None:
        self._root = root
        self._needed = set(needed)
        self._last: dict[Value, int] = {}
        self._mentioned: dict[str, int] = {}
        defined = _defined(root)
        inside = set(root.results)
        tail: list[Instruction] = []
        others: set[Instruction] = set()
        self.ready = 0
        is_ready = True
        for instruction in rest:
            read = [value for value in instruction.operands if value in inside]
            mentioned = _mentioned(instruction) & defined
            if read or mentioned:
                self._last.update((value, len(tail)) for value in read if value is not None)
                self._mentioned.update((name, len(tail)) for name in mentioned)
                tail.append(instruction)
                inside.update(instruction.results)
                defined |= _defined(instruction)
                is_ready = is_ready and not any(value and value.instruction in others for value in instruction.operands)
                self.ready += is_ready
            else:
                others.add(instruction)
        self.instructions: Sequence[Instruction] = tail
        self.others: AbstractSet[Instruction] = others

    def needed(self) -> list[Value]:
        """What is needed after the whole tail."""
        return [value for value in self._values(len(self.instructions)) if value in self._needed]

    def crossing(self, count: int) -> list[Value] | None:
        """What is needed outside `root` and the first `count` instructions; None where they can't be parted there.

        They can't where a symbol is mentioned after them that none of these values shows.
        """
        values = [v for v in self._values(count) if v in self._needed or self._last.get(v, -1) >= count]
        shown = {name for value in values for name in _alone(value.type)}
        hidden = {name for i in (self._root, *self.instructions[:count]) for name in _defined(i)} - shown
        return None if any(self._mentioned.get(name, -1) >= count for name in hidden) else values

    def _values(self, count: int) -> list[Value]:
        return [value for i in (self._root, *self.instructions[:count]) for value in i.results]


def _alone(kind: Type) -> set[str]:
    """Names of the symbols that are a dim of their own in a type."""
    dims = kind.dims if isinstance(kind, TensorType) and kind.dims is not None else ()
    symbols = [None if isinstance(dim, int) else lone_symbol(dim) for dim in dims]
    return {symbol.name for symbol in symbols if symbol is not None}


def _defined(instruction: Instruction) -> set[str]:
    """Names of the symbols that an instruction gives their values; perhaps also of some that it takes from a body."""
    given = {symbol.name for value in instruction.operands if value for symbol in type_symbols(value.type)}
    made = {symbol.name for kind in instruction.types for symbol in type_symbols(kind)}
    return made - given - _mentioned(instruction)


def _mentioned(instruction: Instruction) -> set[str]:
    """Names of the symbols in the attributes of an instruction, and in all of the modules in it."""
    found = set(attribute_symbols(instruction.op))
    for module in instruction.op.modules():
        for inner in module.walk():
            found.update(attribute_symbols(inner.op))
            found.update(symbol.name for kind in inner.types for symbol in type_symbols(kind))
    return found
