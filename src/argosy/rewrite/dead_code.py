"""Dead code: what no result needs.

An instruction is needed if a result or a needed instruction reads it, if it is impure, or if it gives a
data-dependent symbol its value and a needed instruction mentions that symbol in its attributes (`dims`
reads no operand, and yet it needs the instruction whose shape it tells).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from argosy.ir.builder import Namer
from argosy.ir.dim import DimLike, lone_symbol
from argosy.ir.module import Constant, Instruction, Module
from argosy.ir.op import Op
from argosy.ir.types import TensorType, type_symbols
from argosy.ops.pointwise import Pointwise
from argosy.rewrite.rebuild import Rebuild, attribute_symbols, mentioned_symbols, namer_of

__all__ = ["remove_dead_code"]


def remove_dead_code(module: Module, namer: Namer | None = None) -> Module:
    """The module, and those inside it, without instructions that nothing needs; itself where all are needed."""
    needed = _needed(module)
    if all(instruction in needed and not _has_dead_body(instruction.op) for instruction in module.instructions):
        return module
    namer = namer or namer_of(module)
    walk = _Clean(module, needed, namer)
    cleaned = walk.run()
    return remove_dead_code(cleaned, namer) if walk.has_expanded else cleaned


def _has_dead_body(op: Op) -> bool:
    return any(remove_dead_code(body) is not body for body in op.modules())


class _Clean(Rebuild):
    def __init__(
        self,
        module: Module,
        needed: set[Instruction],
        namer: Namer,
        substitution: Mapping[str, DimLike] | None = None,
    ) -> None:
        super().__init__(module, namer, substitution)
        self._needed = needed
        self.has_expanded = False

    def expanded(self, instruction: Instruction, body: Sequence[Instruction]) -> None:
        self._needed.update(body)
        self.has_expanded = True

    def visit(self, instruction: Instruction) -> None:
        if instruction in self._needed:
            self.keep(instruction)

    def body(self, module: Module) -> Module:
        inner = _Clean(module, _needed(module), self.namer, self.substitution)
        cleaned = inner.run()
        self.has_expanded |= inner.has_expanded
        return cleaned


def _needed(module: Module) -> set[Instruction]:
    definitions = _definitions(module)
    needed: set[Instruction] = set()
    pending = [value.instruction for value in module.results]
    pending.extend(instruction for instruction in module.instructions if not instruction.op.pure)
    while pending:
        instruction = pending.pop()
        if instruction in needed:
            continue
        needed.add(instruction)
        pending.extend(operand.instruction for operand in instruction.operands if operand is not None)
        if definitions:
            pending.extend(definitions[name] for name in _mentioned(instruction.op) if name in definitions)
    return needed


def _definitions(module: Module) -> dict[str, Instruction]:
    """The instruction that gives each data-dependent symbol its value: the first whose shape shows it alone."""
    given = {symbol.name for parameter in module.parameters for symbol in type_symbols(parameter.types[0])}
    found: dict[str, Instruction] = {}
    for instruction in module.instructions:
        for kind in instruction.types:
            if isinstance(kind, TensorType) and kind.dims is not None:
                for dim in kind.dims:
                    symbol = None if isinstance(dim, int) else lone_symbol(dim)
                    if symbol is not None and symbol.name not in given:
                        found.setdefault(symbol.name, instruction)
    return found


def _mentioned(op: Op) -> Iterator[str]:
    """Names of the symbols in the attributes of an op, bodies included."""
    if isinstance(op, (Pointwise, Constant)):
        return  # most instructions, and they have none
    yield from attribute_symbols(op)
    for body in op.modules():
        yield from mentioned_symbols(body)
