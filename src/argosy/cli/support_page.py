"""The page of the docs that lists every ONNX op; `argosy ops --markdown` writes it."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.frontends.onnx.support import OpSupport

__all__ = ["support_page"]


def support_page(rows: Sequence[OpSupport], inner: Sequence[str]) -> str:
    """The page, in Markdown."""
    done = sum(row.handled for row in rows)
    lines = [
        "# Operators",
        "",
        "This page is made by `argosy ops --markdown -o docs/operators.md`; a test keeps it current.",
        "",
        f"Of {len(rows)} ops in ONNX's domains and com.microsoft's that have a handler, {done} are supported.",
        "*Versions* are the opsets in which the meaning of the op changed.",
    ]
    for domain in dict.fromkeys(row.domain for row in rows):
        lines += ["", f"## {domain or 'ai.onnx'}", "", "| op | versions | support |", "|---|---|---|"]
        lines += [f"| {row.name} | {row.versions} | {row.state} |" for row in rows if row.domain == domain]
    if inner:
        lines += ["", "## Ops of the IR", "", "ONNX's ops become these.", "", ", ".join(f"`{name}`" for name in inner)]
    return "\n".join([*lines, ""])
