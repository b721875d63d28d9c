"""What is told of a node, as values."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

__all__ = ["ArchReport", "Change", "Explanation", "NodeReport", "Way"]


@dataclass(frozen=True, slots=True)
class Change:
    """What one pass did to a node: the instructions that it was `before` and `after`, in words.

    `fired` are the rules that replaced one of them, `declined` those that would have, each with its reason. `fate` says
    what became of the node where it has no instruction of its own any more.
    """

    phase: str
    name: str
    number: int
    before: tuple[str, ...]
    after: tuple[str, ...]
    fired: tuple[str, ...] = ()
    declined: tuple[str, ...] = ()
    fate: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """How an arch does an instruction that the node is a part of, alone or with others (`nodes`, all of them).

    `solution` is the way taken, `config` its numbers; `declined` are the ways before it, with their reasons. `steps`
    are those of the plan, in words, `buffers` those that they write. A `host` step is done by numpy; what is done
    `at_load` is done once.
    """

    op: str
    nodes: tuple[str, ...]
    solution: str
    config: str = ""
    host: bool = False
    at_load: bool = False
    declined: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    buffers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ArchReport:
    """What became of a node on one arch, or in its code for sizes by symbol (`dims`). `words` are those of the code.

    `summary` is what became of it in a line.
    """

    arch: str
    words: str
    dims: dict[str, int]
    summary: str
    changes: tuple[Change, ...] = ()
    ways: tuple[Way, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class NodeReport:
    """A node of the model: its op and outputs, what it was imported as, and what became of it on each arch."""

    name: str
    op: str
    outputs: tuple[str, ...]
    imported: tuple[str, ...]
    archs: tuple[ArchReport, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What became of the nodes that were asked about."""

    nodes: tuple[NodeReport, ...]

    def to_json(self) -> dict[str, Any]:
        """The same as a value of JSON's types."""
        return dataclasses.asdict(self)
