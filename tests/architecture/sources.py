"""The sources under test, as text and as syntax trees: what every architecture test walks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["ROOT", "Source", "sources", "strings"]

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Source:
    """One module of `src/argosy`: its path below that folder, dotted name, text and tree."""

    path: str
    name: str
    text: str
    tree: ast.Module

    def at(self, node: ast.stmt | ast.expr) -> str:
        """`path:line`, as editors read it."""
        return f"src/argosy/{self.path}:{node.lineno}"


@cache
def sources() -> tuple[Source, ...]:
    """Every module of the package, in the order of their paths."""
    package = ROOT / "src" / "argosy"
    found = []
    for file in sorted(package.rglob("*.py")):
        path = file.relative_to(package)
        words = ["argosy", *path.with_suffix("").parts]
        name = ".".join(words[:-1] if words[-1] == "__init__" else words)
        text = file.read_text(encoding="utf-8")
        found.append(Source(path.as_posix(), name, text, ast.parse(text)))
    return tuple(found)


def strings(tree: ast.Module) -> Iterator[ast.Constant]:
    """String constants of a module, the pieces of f-strings too, but no docstrings."""
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node
