"""The reference target: numpy. It needs no code, so it has no variant; every artifact but a slim one runs on it."""

from argosy.targets.ref.target import RefTarget

__all__ = ["RefTarget"]
