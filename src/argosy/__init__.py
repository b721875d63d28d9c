"""Argosy: an ONNX compiler for mixed fleets.

The public names are resolved when they are first used, so that importing the runtime on a machine that
only runs artifacts never imports the compiler.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argosy import errors
    from argosy.artifact.artifact import Artifact
    from argosy.compiler import compile, load_onnx, make_target  # noqa: A004 - the field's word
    from argosy.explaining import why
    from argosy.profiling import perf
    from argosy.recompiling import recompile
    from argosy.runtime.session import Session
    from argosy.verification import verify

__all__ = ["Artifact", "Session", "compile", "errors", "load_onnx", "make_target", "perf", "recompile", "verify", "why"]
__version__ = "0.1.0"

_HOME = {
    "Artifact": "argosy.artifact.artifact",
    "Session": "argosy.runtime.session",
    "compile": "argosy.compiler",
    "load_onnx": "argosy.compiler",
    "make_target": "argosy.compiler",
    "perf": "argosy.profiling",
    "recompile": "argosy.recompiling",
    "verify": "argosy.verification",
    "why": "argosy.explaining",
}


def __getattr__(name: str) -> Any:
    if name == "errors":
        return importlib.import_module("argosy.errors")
    if name not in _HOME:
        raise AttributeError(f"module 'argosy' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
