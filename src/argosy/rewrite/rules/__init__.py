"""The rules, a family per file; each ends with `RULES`, the set of its own. Passes say which sets they apply."""

from __future__ import annotations

import importlib
import pkgutil

from argosy.rewrite.rule import Rule

__all__ = ["rule_names"]


def rule_names() -> list[str]:
    """Names of all rules, sorted."""
    families = (importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))
    return sorted({entry.name for family in families for entry in vars(family).values() if isinstance(entry, Rule)})
