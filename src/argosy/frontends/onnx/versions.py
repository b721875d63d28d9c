"""Which version of an op a node was written for, where that is not the one that its model imports.

Files in use mix versions: `Squeeze` with the attribute `axes` in a model of opset 14, `HardSwish` in one of
opset 13. Such a node can mean one thing only, so it is read as the version whose form it has: the nearest
earlier one that has all its attributes, else the nearest later one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx

__all__ = ["written_for"]


@dataclass(frozen=True, slots=True)
class _Form:
    """One version of an op, as far as a node shows it."""

    version: int
    attributes: frozenset[str]
    fewest: int
    most: int

    def fits(self, node: onnx.NodeProto) -> bool:
        """Whether the node has this form."""
        return self.has(node) and self.fewest <= len(node.input) <= self.most

    def has(self, node: onnx.NodeProto) -> bool:
        """Whether the op has all the attributes of the node."""
        return all(attribute.name in self.attributes for attribute in node.attribute)


def written_for(node: onnx.NodeProto, domain: str, version: int) -> int:
    """`version` where the node has that form, or no other; else the version to read it as."""
    forms = _forms(domain, node.op_type)
    earlier = [form for form in forms if form.version <= version]
    later = [form for form in forms if form.version > version]
    if not earlier:
        return later[0].version if later else version
    if earlier[-1].has(node):
        return version
    return next((form.version for form in (*reversed(earlier[:-1]), *later) if form.fits(node)), version)


@cache
def _forms(domain: str, name: str) -> tuple[_Form, ...]:
    """The versions of an op, the earliest first; none for an op that the onnx package does not know."""
    return tuple(
        _Form(schema.since_version, frozenset(schema.attributes), schema.min_input, schema.max_input)
        for schema in sorted(_schemas().get((domain, name), ()), key=lambda schema: int(schema.since_version))
    )


@cache
def _schemas() -> dict[tuple[str, str], list[Any]]:
    import onnx  # noqa: PLC0415 - an optional extra

    found: dict[tuple[str, str], list[Any]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        found.setdefault((schema.domain, schema.name), []).append(schema)
    return found
