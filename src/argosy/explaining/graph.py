"""A module by the nodes that its instructions come from, and what takes the place of those that go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from argosy.ir.module import Constant, Instruction, Module, Parameter, Value
from argosy.ops.fused import Fused

__all__ = ["Fate", "Graph", "Placed", "fates"]


@dataclass(frozen=True, slots=True)
class Placed:
    """An instruction of a node, and the instruction around it, if it is inside of one."""

    instruction: Instruction
    inside: Instruction | None = None


@dataclass(frozen=True, slots=True)
class Fate:
    """What stands in the place of a node that has gone: of its `kind`, and the node that has taken it over, if one has.

    constant: a constant · nothing: what it read itself · same: another node, which gives the same · step: a step of
    another node, which gives the same · part: another node, of which it is a part now · unread: none, for nothing reads
    it any more.
    """

    kind: Literal["constant", "nothing", "same", "step", "part", "unread"]
    node: str = ""

    def __str__(self) -> str:
        match self.kind:
            case "constant":
                return "its value is a constant"
            case "nothing":
                return f"nothing is left to do: {self.node or 'an input'} is read in its place"
            case "same":
                return f"{self.node} gives the same, and is read in its place"
            case "step":
                return f"a step of {self.node} gives the same, and is read in its place"
            case "unread":
                return "nothing reads it any more, and it is removed"
        return f"it is part of {self.node}"


class Graph:
    """The instructions of a module, and of those inside, by their nodes; who reads them; which results they give."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.of_node: dict[str, list[Placed]] = {}
        self.readers: dict[Instruction, list[tuple[Instruction, int]]] = {}
        for placed in _walk(module, None):
            instruction = placed.instruction
            # A fused op is named like the last of what is inside it, which is told there.
            if instruction.source and not isinstance(instruction.op, (Parameter, Fused)):
                self.of_node.setdefault(instruction.source, []).append(placed)
            for place, operand in enumerate(instruction.operands):
                if operand is not None:
                    self.readers.setdefault(operand.instruction, []).append((instruction, place))

    def results(self, instruction: Instruction) -> Iterator[int]:
        """The places among the module's results of those that an instruction gives."""
        return (place for place, value in enumerate(self.module.results) if value.instruction is instruction)


def fates(before: Graph, after: Graph, node: str) -> list[Fate]:
    """What has taken the place of a node's instructions, for those that read them before."""
    found: dict[Fate, None] = {}
    _collect(before, after, node, found, {node})
    return list(found) or [Fate("unread")]


def _collect(before: Graph, after: Graph, node: str, found: dict[Fate, None], seen: set[str]) -> None:
    read = _read(before, after, node)

    def add(value: Value | None, reader: str) -> None:
        fate = _taken(value, reader, read)
        if fate.kind in ("nothing", "same") and _work(before, fate.node) != _work(after, fate.node):
            fate = Fate("part", fate.node)  # that does more now, as a product does with other weights
        if fate.kind == "same" and len(after.of_node.get(fate.node, ())) > 1:
            fate = Fate("step", fate.node)
        found.setdefault(fate)

    for placed in before.of_node[node]:
        for place in before.results(placed.instruction):
            add(after.module.results[place], node)
        for reader, place in before.readers.get(placed.instruction, ()):
            name = reader.source
            if name == node or not name:
                continue
            if name in after.of_node:
                kept = _same_reader(reader, before.of_node.get(name, ()), after.of_node[name])
                if kept is None:
                    found.setdefault(Fate("part", name))
                else:
                    add(kept.operands[place], name)
            elif name not in seen:
                seen.add(name)
                _collect(before, after, name, found, seen)


def _read(before: Graph, after: Graph, node: str) -> set[str]:
    """What a node read: of nodes that have gone with it, what these read."""
    found: set[str] = set()
    pending = [node]
    while pending:
        for placed in before.of_node.get(pending.pop(), ()):
            origins = {_origin(operand) for operand in placed.instruction.operands} - found
            found |= origins
            pending += [name for name in origins if name not in after.of_node]
    return found


def _work(graph: Graph, node: str) -> set[object]:
    """What the instructions of a node do with what they read: their ops, types and constants."""
    return {
        (
            each.instruction.op,
            each.instruction.types,
            *(None if v is None else v.constant for v in each.instruction.operands),
        )
        for each in graph.of_node.get(node, ())
    }


def _same_reader(reader: Instruction, then: Iterable[Placed], now: Iterable[Placed]) -> Instruction | None:
    """The instruction that a reader is now, where as many of its node as before do the same on as many operands."""
    old, new = (
        [
            each.instruction
            for each in placed
            if each.instruction.op == reader.op and len(each.instruction.operands) == len(reader.operands)
        ]
        for placed in (then, now)
    )
    return new[old.index(reader)] if len(old) == len(new) and reader in old else None


def _taken(value: Value | None, reader: str, read: Collection[str]) -> Fate:
    """The fate of a node for which `reader` reads `value` now; `read` is what the node read itself."""
    if value is None:
        return Fate("part", reader)
    if isinstance(value.instruction.op, Constant):
        return Fate("constant")
    origin = _origin(value)
    if origin in read:
        return Fate("nothing", origin)
    return Fate("part", reader) if origin == reader else Fate("same", origin)


def _origin(value: Value | None) -> str:
    """Where a value comes from: a node, or an input by name."""
    if value is None:
        return ""
    return value.instruction.source or next((name for name in value.instruction.names if name), "")


def _walk(module: Module, inside: Instruction | None) -> Iterator[Placed]:
    for instruction in (*module.parameters, *module.instructions):
        yield Placed(instruction, inside)
        for inner in instruction.op.modules():
            yield from _walk(inner, instruction)
