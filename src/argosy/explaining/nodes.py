"""The nodes of a model, and which of them somebody means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.errors import UsageError
from argosy.ir.module import Constant, Parameter
from argosy.ir.program import Program
from argosy.registry import did_you_mean

__all__ = ["ModelNode", "find_node", "nodes_of_model"]

_SHOWN: Final = 8
_INDEX: Final = re.compile(r"(?:node )?(\d+)")


@dataclass(frozen=True, slots=True)
class ModelNode:
    """A node by name, with its op, outputs and place in the main graph as far as they are known.

    `sources` are the names that its instructions have: its own, and those of the nodes inside a function.
    """

    name: str
    op: str = ""
    outputs: tuple[str, ...] = ()
    index: int | None = None
    sources: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return self.name if not self.op or self.name.startswith(f"{self.op} (node ") else f"{self.name} ({self.op})"


def nodes_of_model(model: Any, program: Program) -> tuple[ModelNode, ...]:
    """The nodes of an ONNX model; of a program, which knows only its instructions, those that they come from."""
    outputs: dict[str, list[str]] = {}
    for instruction in program.main.walk():
        if instruction.source and not isinstance(instruction.op, (Constant, Parameter)):
            outputs.setdefault(instruction.source, []).extend(name for name in instruction.names if name)
    if isinstance(model, Program):
        return tuple(ModelNode(name, _op(name), tuple(made), None, (name,)) for name, made in outputs.items())
    from argosy.frontends.onnx.nodes import graph_nodes  # noqa: PLC0415 - a program needs no ONNX

    found = graph_nodes(model)
    sources: dict[str, list[str]] = {node.name: [] for node in found}
    for source in outputs:
        owner = _owner(source, sources)
        if owner:
            sources[owner].append(source)
    return tuple(ModelNode(node.name, node.op, node.outputs, node.index, tuple(sources[node.name])) for node in found)


def find_node(nodes: Sequence[ModelNode], asked: str) -> ModelNode:
    """The node that is meant: by name, the end of it, an output, the number of it, or an op that only it has.

    Raises UsageError, with a suggestion or the nodes to choose from.
    """
    number = _INDEX.fullmatch(asked)
    ways = (
        [node for node in nodes if node.name == asked],
        [node for node in nodes if asked in node.outputs],
        [node for node in nodes if number and node.index == int(number[1])],
        [node for node in nodes if node.op == asked],
        [node for node in nodes if node.name.endswith(f"/{asked}")],
        [node for node in nodes if asked in node.sources],
        [node for node in nodes if node.op.lower() == asked.lower()],
    )
    found = next((way for way in ways if way), [])
    if len(found) == 1:
        return found[0]
    if found:
        shown = "; ".join([*map(str, found[:_SHOWN]), *(["…"] if len(found) > _SHOWN else [])])
        raise UsageError(f"{len(found)} nodes are meant by {asked!r}", hint=f"name one of: {shown}")
    known = dict.fromkeys(name for node in nodes for name in (node.name, *node.outputs, node.op) if name)
    hint = did_you_mean(asked, list(known)) or "without --node all nodes are listed"
    raise UsageError(f"the model has no node {asked!r}", hint=hint)


def _owner(source: str, known: Mapping[str, object]) -> str:
    """The node that an instruction comes from: of those whose name its source is or begins with, the longest."""
    while source and source not in known:
        source = source.rpartition("/")[0]
    return source


def _op(name: str) -> str:
    """The op in a name like `Add (node 3 → 'y')`."""
    match = re.search(r"(?:^|/)(\w+) \(node \d+ → ", name)
    return match[1] if match else ""
