"""What of ONNX is supported: the table of handlers beside ONNX's own list of ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from argosy.errors import MissingExtraError
from argosy.frontends.onnx.registry import known_ops
from argosy.ir.op import OPS

__all__ = ["OpSupport", "ir_ops", "op_support"]


@dataclass(frozen=True, slots=True)
class OpSupport:
    """One ONNX op: the opsets at which its meaning changed, and those from which a handler of ours begins.

    `function` is `body` where ONNX defines the op by ops that all have handlers: that body is inlined where the op has
    no handler of its own; `generated` where ONNX makes the body for the types at hand; else empty.
    """

    domain: str
    name: str
    schemas: tuple[int, ...]
    handlers: tuple[int, ...]
    function: str

    @property
    def handled(self) -> bool:
        """Whether any version runs."""
        return bool(self.handlers or self.function)

    @property
    def versions(self) -> str:
        """The versions that run, as text."""
        return ", ".join(map(str, self.schemas or self.handlers))

    @property
    def state(self) -> str:
        """The support in words."""
        if self.handlers:
            first = min(self.handlers)
            missing = [version for version in self.schemas if version < first]
            return f"from {first} on" if missing else "yes"
        if self.function == "generated":
            return "by the function body that ONNX makes for its types"
        return "by its function body" if self.function else "no"


def op_support() -> tuple[OpSupport, ...]:
    """Every op of ONNX's own domains, and every other one that has a handler. Needs the onnx package."""
    try:
        from onnx import defs  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise MissingExtraError("onnx", "onnx", "listing ONNX's ops") from None
    schemas: dict[tuple[str, str], set[int]] = {}
    functions: dict[tuple[str, str], str] = {}
    handlers = known_ops()
    schema: Any  # its stub lacks the properties about functions
    for schema in defs.get_all_schemas_with_history():
        key = schema.domain, schema.name
        schemas.setdefault(key, set()).add(schema.since_version)
        if schema.has_function and all(("", node.op_type) in handlers for node in schema.function_body.node):
            functions[key] = "body"
        elif schema.has_context_dependent_function:
            functions.setdefault(key, "generated")
    return tuple(
        OpSupport(*key, tuple(sorted(schemas.get(key, ()))), handlers.get(key, ()), functions.get(key, ""))
        for key in sorted(schemas.keys() | handlers.keys())
    )


def ir_ops() -> tuple[str, ...]:
    """The ops of the IR, sorted."""
    return tuple(sorted(name for name, _ in OPS.items()))
