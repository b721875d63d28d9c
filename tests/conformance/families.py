"""Which family of ops a node case is about, in the words of the handlers' files."""

from __future__ import annotations

import re
from typing import Any

import onnx

from argosy.frontends.onnx.domains import canonical_domain
from argosy.frontends.onnx.registry import find_handler
from tests.conformance.cases import Case, find_case

__all__ = ["family"]

_EXPANDED = re.compile(r"_expanded(_ver\d+)?$")


def family(case: Case) -> str:
    """The handler's file for the op that a node case tests; an `_expanded` case counts with the op it expands.

    Ops without a handler are either those that the standard defines by a function body, or unsupported.
    """
    original = find_case(f"{case.kind}/{_EXPANDED.sub('', case.name)}") or case
    model, _ = original.read()
    node = model.graph.node[0]
    domain = canonical_domain(node.domain)
    versions = {canonical_domain(entry.domain): entry.version for entry in model.opset_import}
    version = versions.get(domain, 1)
    handler = find_handler(domain, node.op_type, version)
    if handler:
        return handler.__module__.rpartition(".")[2]
    try:
        schema: Any = onnx.defs.get_schema(node.op_type, version, domain)
    except onnx.defs.SchemaError:
        return "(unsupported)"
    has_body = schema.has_function or schema.has_context_dependent_function
    return "(function bodies of the standard)" if has_body else "(unsupported)"
