"""The host: runs plans of evaluate steps, which need nothing but this process."""

from __future__ import annotations

from argosy.artifact.artifact import Artifact
from argosy.artifact.decode import Decoder, decode_symbols
from argosy.artifact.manifest import VariantRecord
from argosy.runtime.executor import Executor

__all__ = ["HOST_FAMILY", "load_variant"]

HOST_FAMILY = "host"
"""Family of the variants whose plans only evaluate: any machine that has Argosy runs them."""


def load_variant(artifact: Artifact, variant: VariantRecord) -> Executor:
    """The variant's plan, ready to run. Raises ArtifactError where it holds steps that need more than the host."""
    plan = artifact.plan(variant.key)
    where = f"{artifact.where}: {variant.words}"
    decoder = Decoder(plan.modules, decode_symbols(plan.symbols), artifact.literal, where)
    return Executor(plan, decoder, where)
