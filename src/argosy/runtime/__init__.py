"""Artifact to outputs: the half that a machine needs which only runs models. It never imports the compiler."""

from argosy.artifact.artifact import Artifact
from argosy.runtime.session import Session

__all__ = ["Artifact", "Session"]
