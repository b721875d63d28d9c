"""What is measured beside a session: what it is, and how those that are missing or fail are told."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from argosy.errors import EnvironmentError_

__all__ = ["Peer", "installed", "refused"]


@dataclass(frozen=True, slots=True)
class Peer:
    """`run` does one inference and hands nothing back; `results` does one and gives the outputs by name."""

    name: str
    run: Callable[[], object]
    results: Callable[[], dict[str, Any]]
    precision: str = "fp32"


def installed(package: str) -> Any:
    """An optional package; raises EnvironmentError_ where it is not installed."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise EnvironmentError_(
            f"the package {package!r} is not installed", hint=f"install it with: pip install {package}"
        ) from None


def refused(name: str, error: Exception) -> EnvironmentError_:
    """An error in a line, without the places in the engine's sources."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = " ".join(line for line in lines if line and not line.startswith(("Exception from", "Check '")))
    return EnvironmentError_(f"{name} can't run the model: {(said or str(error) or type(error).__name__)[:300]}")
