"""What variants run on, a kind of device per file."""

from __future__ import annotations

from argosy.artifact.artifact import Artifact
from argosy.artifact.manifest import VariantRecord
from argosy.runtime.devices import cpu, host
from argosy.runtime.executor import Executor

__all__ = ["load_variant"]


def load_variant(artifact: Artifact, variant: VariantRecord, threads: int | None) -> Executor:
    """The variant's plan, ready to run on the device that its family names."""
    if variant.family == host.HOST_FAMILY:
        return host.load_variant(artifact, variant)
    return cpu.load_variant(artifact, variant, threads)
