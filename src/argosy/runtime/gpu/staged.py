"""Which runs can be one graph, and where their inputs and outputs lie in the host's memory for its copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.artifact.plan import CheckStep
from argosy.runtime.buffers import BufferTable
from argosy.runtime.nodes import Launches, Node

__all__ = ["Staging", "dense_bytes", "staged_launches"]

_ALIGNMENT: Final = 256
_MOST: Final = 1 << 28
"""Bytes of a run's inputs and outputs from which on they are copied without staging."""


def staged_launches(
    nodes: Sequence[Node], table: BufferTable, inputs: Sequence[int], outputs: Sequence[int], on_device: frozenset[int]
) -> Launches | None:
    """The launches of a body whose runs can be one graph; None for others."""
    launches = [node for node in nodes if isinstance(node, Launches)]
    if len(launches) != 1 or launches[0].number is None:
        return None
    if any(not isinstance(node, (Launches, CheckStep)) for node in nodes):
        return None
    touched = [number for number in inputs if table[number].root in on_device]
    if not all(table[number].root in on_device for number in outputs):
        return None
    return launches[0] if all(table.is_settled(number) for number in (*touched, *outputs)) else None


@dataclass(frozen=True, slots=True)
class Staging:
    """Where inputs and outputs lie in the host's memory for copies: an offset for each place, and all bytes."""

    inputs: tuple[tuple[int, int, int], ...]
    """Of each that kernels read: its place among the inputs, its buffer, its offset."""
    outputs: tuple[tuple[int, int], ...]
    size: int

    @staticmethod
    def of(
        table: BufferTable,
        symbols: Mapping[str, int],
        inputs: Sequence[int],
        outputs: Sequence[int],
        on_device: frozenset[int],
    ) -> Staging | None:
        """The staging for these sizes; None where it would be too large."""
        total = 0

        def offset(number: int) -> int:
            nonlocal total
            begin = total
            total += -(-dense_bytes(table, number, symbols) // _ALIGNMENT) * _ALIGNMENT
            return begin

        first = tuple(
            (place, number, offset(number)) for place, number in enumerate(inputs) if table[number].root in on_device
        )
        last = tuple((number, offset(number)) for number in outputs)
        return Staging(first, last, total) if total <= _MOST else None


def dense_bytes(table: BufferTable, number: int, symbols: Mapping[str, int]) -> int:
    """Bytes of the dense tensor of a buffer."""
    count = 1
    for size in table[number].shape(symbols):
        count *= size
    return table[number].dtype.byte_size(count)
