"""What of a model cannot be imported, found and told at once, before the first node is imported."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from argosy.errors import UnsupportedError
from argosy.frontends.onnx.domains import Opsets
from argosy.frontends.onnx.functions import Functions
from argosy.frontends.onnx.registry import find_handler, known_ops

if TYPE_CHECKING:
    import onnx

__all__ = ["refuse_unsupported"]


def refuse_unsupported(functions: Functions, opsets: Opsets) -> None:
    """Raise UnsupportedError naming every node of the model that nothing can import, and why."""
    found: list[str] = []

    def visit(node: onnx.NodeProto, label: str, versions: Opsets) -> None:
        domain, version = versions.quietly().resolve(node, label)
        if not find_handler(domain, node.op_type, version) and not functions.find(node, domain, version):
            reason = _reason(node, domain, version)
            found.append(f"{label}: {domain or 'ai.onnx'}::{node.op_type}, opset {version}{reason and f' ({reason})'}")

    functions.visit_nodes(opsets, visit)
    if found:
        raise UnsupportedError(
            f"the model holds {len(found)} node(s) that Argosy does not support:",
            tuple(found),
            hint="put other ops in their place (argosy ops lists what there is) or give the model functions for them; "
            "argosy read --skip-unknown shows the rest of it",
        )


def _reason(node: onnx.NodeProto, domain: str, version: int) -> str:
    handled = known_ops()
    since = handled.get((domain, node.op_type), ())
    if since and min(since) > version:
        return f"an op from opset {min(since)} on"
    names = [name for other, name in handled if other == domain]
    if not names:
        return "no op of this domain is known; a model may bring along its own as functions"
    near = difflib.get_close_matches(node.op_type, names, 1, 0.75)
    return f"did you mean {near[0]!r}?" if near and not _is_standard(node.op_type, domain) else ""


def _is_standard(name: str, domain: str) -> bool:
    import onnx  # noqa: PLC0415 - an optional extra

    return onnx.defs.has(name, domain)
