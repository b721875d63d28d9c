"""C functions across the lanes of a vector."""

from __future__ import annotations

from typing import Final

__all__ = ["ACROSS"]


def _fold(name: str, kind: str, combine: str) -> str:
    """Halves upon halves, always in the same order."""
    lines = [f"OVERLOAD {kind} {name}({kind}x16 v) {{"]
    for half in (8, 4, 2, 1):
        moved = ", ".join(str((lane + half) % 16) for lane in range(16))
        lines.append(f"  v = {combine.format('v', f'__builtin_shufflevector(v, v, {moved})')};")
    return "\n".join([*lines, "  return v[0];", "}", ""])


ACROSS: Final = (
    _fold("sum_across", "float32", "{} + {}")
    + _fold("sum_across", "float64", "{} + {}")
    + _fold("max_across", "float32", "__builtin_elementwise_max({}, {})")
)
"""The sum of 16 lanes, and the greatest of those that are numbers."""
