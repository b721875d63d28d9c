"""The table of handlers: (domain, op) to the handlers of its versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from argosy.ir.module import Value
from argosy.registry import Registry

if TYPE_CHECKING:
    from argosy.frontends.onnx.node import Node

__all__ = ["CONTRIB", "ML", "ONNX", "Handler", "find_handler", "has_handler", "known_ops", "onnx_op"]

ONNX = ""
"""The default domain, which files also write as "ai.onnx"."""
ML = "ai.onnx.ml"
CONTRIB = "com.microsoft"

Results: TypeAlias = Value | Sequence[Value | None]
Handler: TypeAlias = Callable[["Node"], Results]
H = TypeVar("H", bound=Handler)

_HANDLERS: Registry[tuple[str, str, int], Handler] = Registry("ONNX handler", "argosy.frontends.onnx.ops")
_VERSIONS: dict[tuple[str, str], list[int]] = {}


def onnx_op(*names: str, since: int = 1, domain: str = ONNX) -> Callable[[H], H]:
    """Register a handler for the ops `names` from version `since` of the domain on, until a later one's.

    `since` is the first opset version whose meaning the handler implements.
    """

    def enter(handler: H) -> H:
        for name in names:
            _HANDLERS.add((domain, name, since), handler)
            _VERSIONS.setdefault((domain, name), []).append(since)
        return handler

    return enter


def find_handler(domain: str, name: str, version: int) -> Handler | None:
    """The handler whose `since` is the greatest that does not exceed `version`, or None."""
    _HANDLERS.load()
    fitting = [since for since in _VERSIONS.get((domain, name), ()) if since <= version]
    return _HANDLERS.get((domain, name, max(fitting))) if fitting else None


def has_handler(domain: str, name: str) -> bool:
    """Whether the op has a handler for any version."""
    _HANDLERS.load()
    return (domain, name) in _VERSIONS


def known_ops() -> dict[tuple[str, str], tuple[int, ...]]:
    """Every (domain, op) with the versions at which its handlers begin."""
    _HANDLERS.load()
    return {key: tuple(sorted(versions)) for key, versions in sorted(_VERSIONS.items())}
