"""Runtime values in words: their type and shape, and the first of their elements."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["describe_value", "short_value"]

_SHOWN: Final = 6


def describe_value(value: Any) -> str:
    """`float32[1, 3]`, `sequence of 2`, `absent`."""
    if value is None:
        return "absent"
    if isinstance(value, list):
        return f"sequence of {len(value)}"
    if isinstance(value, dict):
        return f"map of {len(value)}"
    from argosy.ir.dtype import dtype_of

    kind = "string" if value.dtype.kind == "O" else dtype_of(value.dtype).name
    return f"{kind}[{', '.join(map(str, value.shape))}]"


def short_value(value: Any) -> str:
    """The first elements, in the order of memory."""
    if value is None:
        return ""
    if isinstance(value, list):
        shown = [f"{describe_value(item)} {short_value(item)}".strip() for item in value[:2]]
        return "; ".join([*shown, "…"] if len(value) > 2 else shown)
    if isinstance(value, dict):
        shown = [
            f"{key!r}: {short_value(item) if hasattr(item, 'dtype') else item}" for key, item in list(value.items())[:3]
        ]
        return ", ".join([*shown, "…"] if len(value) > 3 else shown)
    flat = value.reshape(-1)[:_SHOWN]
    texts = [_element(item) for item in flat]
    return f"{' '.join(texts)}{' …' if value.size > _SHOWN else ''}"


def _element(item: Any) -> str:
    if isinstance(item, (str, bytes)):
        return repr(item)
    kind = getattr(item, "dtype", None)
    if kind is not None and kind.kind in "biu":
        return str(item)
    if kind is not None and kind.kind == "c":
        return f"{complex(item):.6g}"
    try:
        return f"{float(item):.6g}"
    except TypeError:
        return str(item)
