"""How a handler of com.microsoft states its inputs: the onnx package has no schemas for that domain.

`@contrib_op("BiasAdd", "X:F bias:F skip:F")` names the inputs in order, each with the kind of its elements;
a `?` behind the kind marks one that may be absent. The names are those of ONNX Runtime's
docs/ContribOperators.md. Before the handler runs, the node's inputs are compared with that line: how many there
are, which are missing, and of which types. Kinds:

- `F` a float of 16 bits or more, `Q` an 8-bit integer, `I` int32 or int64, `R` float32, `S` int32, `U` uint8,
  `B` bool, `*` any tensor;
- inputs with the same letter `F` or `Q` have one type; a number tells apart such as need not agree (`F1`, `F2`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Final, TypeVar

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import CONTRIB, Handler, Results, onnx_op

__all__ = ["contrib_op"]

H = TypeVar("H", bound=Handler)

_KINDS: Final = {
    "F": ("float16", "bfloat16", "float32", "float64"),
    "Q": ("int8", "uint8"),
    "I": ("int32", "int64"),
    "R": ("float32",),
    "S": ("int32",),
    "U": ("uint8",),
    "B": ("bool",),
    "*": (),
}
_AGREEING: Final = ("F", "Q")


@dataclass(frozen=True, slots=True)
class _Input:
    """One input: its name, its kind (see the module), and whether it may be absent."""

    name: str
    kind: str
    optional: bool

    @property
    def types(self) -> tuple[str, ...]:
        """Names of the element types allowed; none where any is."""
        return _KINDS[self.kind[0]]


def contrib_op(name: str, inputs: str) -> Callable[[H], H]:
    """Register a handler for the op `name` of com.microsoft whose inputs are as the line says; see the module."""
    expected = tuple(_read(word) for word in inputs.split())

    def enter(handler: H) -> H:
        @wraps(handler)
        def checked(node: Node) -> Results:
            _check(node, expected)
            return handler(node)

        onnx_op(name, domain=CONTRIB)(checked)
        return handler

    return enter


def _read(word: str) -> _Input:
    name, _, kind = word.partition(":")
    return _Input(name, kind.rstrip("?"), kind.endswith("?"))


def _check(node: Node, expected: tuple[_Input, ...]) -> None:
    """Raise ModelError, naming the input, where the node's inputs are not the expected ones."""
    op = node.proto.op_type
    if len(node.inputs) > len(expected):
        node.fail(f"has {len(node.inputs)} inputs, {op} takes at most {len(expected)}")
    first: dict[str, int] = {}
    for index, entry in enumerate(expected):
        value = node.optional(index)
        what = f"input {index} ({entry.name!r} of {op})"
        if value is None:
            if not entry.optional:
                node.fail(f"{what} is missing")
            continue
        found = value.tensor.dtype
        if entry.types and found.name not in entry.types:
            node.fail(f"{what} is {found}, expected {' or '.join(entry.types)}")
        if entry.kind[0] not in _AGREEING:
            continue
        other = first.setdefault(entry.kind, index)
        if node.input(other).dtype is not found:
            node.fail(f"{what} is {found}, input {other} ({expected[other].name!r}) is {node.input(other).dtype}")
