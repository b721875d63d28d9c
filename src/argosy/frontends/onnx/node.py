"""What a handler sees of a node: its inputs as values, its attributes by type, and a builder to answer with."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from argosy.errors import ModelError, UnsupportedError
from argosy.frontends.onnx.advice import inputs_hint
from argosy.frontends.onnx.protos import element_type, read_tensor
from argosy.frontends.onnx.signature import input_name
from argosy.ir.builder import Builder
from argosy.ir.dim import DimLike
from argosy.ir.dtype import DType
from argosy.ir.literal import Literal
from argosy.ir.module import Module, Value
from argosy.ir.op import Op
from argosy.ir.types import Type

if TYPE_CHECKING:
    import onnx

    from argosy.frontends.onnx.importer import Scope

__all__ = ["Node", "node_label"]

log = logging.getLogger("argosy.onnx")

_FLOAT, _INT, _STRING, _TENSOR, _GRAPH = 1, 2, 3, 4, 5
_FLOATS, _INTS, _STRINGS, _TENSORS, _GRAPHS = 6, 7, 8, 9, 10
_TYPE_NAMES = {
    1: "FLOAT", 2: "INT", 3: "STRING", 4: "TENSOR", 5: "GRAPH", 6: "FLOATS", 7: "INTS", 8: "STRINGS", 9: "TENSORS",
    10: "GRAPHS", 11: "SPARSE_TENSOR", 12: "SPARSE_TENSORS", 13: "TYPE_PROTO", 14: "TYPE_PROTOS",
}  # fmt: skip
_FIELDS = {_FLOAT: "f", _INT: "i", _STRING: "s", _FLOATS: "floats", _INTS: "ints", _STRINGS: "strings"}
_ELEMENTS = {_FLOAT: _FLOAT, _INT: _INT, _STRING: _STRING, _FLOATS: _FLOAT, _INTS: _INT, _STRINGS: _STRING}
"""Of each type of attribute that holds numbers or texts, that of its elements."""


def node_label(proto: onnx.NodeProto, index: int, prefix: str = "") -> str:
    """A node's name, or `Add (node 3 → 'y')` where it has none."""
    if proto.name:
        return prefix + proto.name
    made = next((name for name in proto.output if name), "")
    return f"{prefix}{proto.op_type} (node {index} → {made!r})"


class Node:
    """One node during import. Attributes that the handler never asks for are reported as unsupported."""

    def __init__(
        self, proto: onnx.NodeProto, label: str, domain: str, version: int, scope: Scope, inputs: Sequence[Value | None]
    ) -> None:
        self.proto = proto
        self.label = label
        self.domain = domain
        self.version = version
        self.inputs = list(inputs)
        self.scope = scope
        self.builder: Builder = scope.builder.at(label)
        self._attributes: dict[str, onnx.AttributeProto] = {entry.name: entry for entry in proto.attribute}
        self._asked: set[str] = set()

    # Inputs and outputs

    def input(self, index: int) -> Value:
        """Input `index`, which must be given."""
        value = self.optional(index)
        if value is None:
            name = input_name(self.domain, self.proto.op_type, self.version, index)
            what = f"input {index}{f' ({name!r} of {self.proto.op_type})' if name else ''} is missing"
            self.fail(what, hint=inputs_hint(self.domain, self.proto.op_type, self.version))
        return value

    def optional(self, index: int) -> Value | None:
        """Input `index`, or None where it is absent."""
        return self.inputs[index] if index < len(self.inputs) else None

    def known_ints(self, index: int) -> tuple[DimLike, ...] | None:
        """Input `index` as numbers and dims where it is known while importing (scalars count as one element)."""
        value = self.optional(index)
        if value is None or value.known is None:
            return None
        return tuple(value.known.reshape(-1).tolist())

    @property
    def output_count(self) -> int:
        """Number of outputs that the node lists, absent ones in between included."""
        return len(self.proto.output)

    def wants(self, index: int) -> bool:
        """True where output `index` is named, so that somebody may read it."""
        return index < len(self.proto.output) and bool(self.proto.output[index])

    # Attributes

    def has(self, name: str) -> bool:
        """True where the attribute is given."""
        return name in self._attributes

    def attr_int(self, name: str, default: int | None = None) -> int:
        """An INT attribute; required where `default` is None."""
        return self._get(name, _INT, "i", default)

    def attr_flag(self, name: str, default: bool = False) -> bool:  # noqa: FBT001, FBT002 - reads as the attribute does
        """An INT attribute that means yes or no."""
        return bool(self._get(name, _INT, "i", 1 if default else 0))

    def attr_float(self, name: str, default: float | None = None) -> float:
        """A FLOAT attribute (a float32 value); required where `default` is None."""
        return self._get(name, _FLOAT, "f", default)

    def attr_string(self, name: str, default: str | None = None) -> str:
        """A STRING attribute; required where `default` is None."""
        value = self._get(name, _STRING, "s", default)
        return self._text(name, value)

    def attr_choice(self, name: str, default: str, allowed: Sequence[str]) -> str:
        """A STRING attribute with a closed set of values; raises ModelError naming them for any other."""
        value = self.attr_string(name, default)
        if value not in allowed:
            self.fail(f"attribute {name!r} is {value!r}, expected one of {', '.join(allowed)}", hint="set one of these")
        return value

    def attr_ints(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """An INTS attribute; required where `default` is None."""
        return tuple(self._get(name, _INTS, "ints", default))

    def attr_floats(self, name: str, default: Sequence[float] | None = None) -> tuple[float, ...]:
        """A FLOATS attribute; required where `default` is None."""
        return tuple(self._get(name, _FLOATS, "floats", default))

    def attr_strings(self, name: str, default: Sequence[str] | None = None) -> tuple[str, ...]:
        """A STRINGS attribute; required where `default` is None."""
        return tuple(self._text(name, value) for value in self._get(name, _STRINGS, "strings", default))

    def _text(self, name: str, value: bytes | str) -> str:
        if isinstance(value, str):
            return value
        try:
            return value.decode()
        except UnicodeDecodeError:
            self.fail(f"attribute {name!r} is {value!r}, which is not UTF-8")

    def attr_tensor(self, name: str) -> Literal:
        """A TENSOR attribute, which must be given."""
        return read_tensor(self._get(name, _TENSOR, "t", None), self.scope.model.external, f"attribute {name!r}")

    def attr_dtype(self, name: str, default: DType | None = None) -> DType:
        """An INT attribute that holds a TensorProto.DataType; required where `default` is None."""
        if not self.has(name) and default is not None:
            self._asked.add(name)
            return default
        return element_type(self.attr_int(name), f"attribute {name!r}")

    def raw_attribute(self, name: str) -> onnx.AttributeProto | None:
        """The attribute's message, for the rare types; None where it is not given."""
        self._asked.add(name)
        return self._attributes.get(name)

    def ignore(self, *names: str) -> None:
        """Attributes that are legal but have no meaning for the result."""
        self._asked.update(names)

    def _get(self, name: str, kind: int, field: str, default: Any) -> Any:
        self._asked.add(name)
        entry = self._attributes.get(name)
        if entry is None:
            if default is None:
                self.fail(f"attribute {name!r} is missing, expected {_TYPE_NAMES[kind]}", hint=f"set {name!r}")
            return default
        if entry.type not in (kind, 0):
            return self._coerced(entry, kind)
        return getattr(entry, field)

    def _coerced(self, entry: onnx.AttributeProto, kind: int) -> Any:
        """The value of an attribute of another type that means the same: a list of one, or a whole number for a float.

        Raises ModelError for any other type.
        """
        problem = (
            f"attribute {entry.name!r} has type {_TYPE_NAMES.get(entry.type, entry.type)}, expected {_TYPE_NAMES[kind]}"
        )
        element, found = _ELEMENTS.get(kind, 0), _ELEMENTS.get(entry.type, 0)
        if not element or (found, element) not in ((element, element), (_INT, _FLOAT)):
            self.fail(problem, hint=f"write it as {_TYPE_NAMES[kind]}")
        values = list(getattr(entry, _FIELDS[entry.type])) if entry.type > _GRAPH else [getattr(entry, _FIELDS[found])]
        if kind == element and len(values) != 1:
            self.fail(problem, hint=f"write it as {_TYPE_NAMES[kind]}")
        self.lenient(problem)
        numbers = [float(value) for value in values] if element == _FLOAT else values
        return numbers[0] if kind == element else numbers

    def unread_attributes(self) -> list[str]:
        """Attributes that the handler did not ask for."""
        return sorted(set(self._attributes) - self._asked)

    # Answers

    def add(self, op: Op, *operands: Value | None) -> Value:
        """Append an op and return its first result."""
        return self.builder.add(op, *operands)

    def add_all(self, op: Op, *operands: Value | None) -> tuple[Value, ...]:
        """Append an op and return all its results."""
        return self.builder.add_all(op, *operands)

    def pointwise(self, formula: Any, *operands: Value) -> Value:
        """Append a formula (a primitive's name or a function of expressions)."""
        return self.builder.pointwise(formula, *operands)

    def constant(self, value: Any, dtype: DType | None = None) -> Value:
        """A constant."""
        return self.builder.constant(value, dtype)

    def body(self, name: str, types: Sequence[Type]) -> tuple[Module, list[Value]]:
        """The GRAPH attribute `name` as a closed module, and the outer values that it captures.

        The module's parameters are the graph's inputs, with the given types, and then the captures.
        """
        graph = self._get(name, _GRAPH, "g", None)
        return self.scope.import_body(graph, f"{self.label}/{name}", types)

    def lenient(self, what: str) -> None:
        """Warn of what is accepted though it breaks the letter of the standard; raise ModelError under `strict`."""
        if self.scope.model.options.strict:
            self.fail(what, hint="fix the model, or leave out --strict-onnx")
        log.warning("%s: %s", self.label, what)

    def fail(self, what: str, hint: str = "") -> NoReturn:
        """Raise ModelError; the importer adds which node it is about."""
        raise ModelError(what, hint=hint)

    def unsupported(self, what: str, hint: str = "") -> NoReturn:
        """Raise UnsupportedError for something that is valid ONNX but that Argosy does not do."""
        raise UnsupportedError(what, (), hint=hint)
