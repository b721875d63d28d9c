"""GPUs: loads a variant's kernels from checked bytes onto the device that fits it."""

from __future__ import annotations

from argosy.artifact.artifact import Artifact
from argosy.artifact.decode import Decoder, decode_symbols
from argosy.artifact.manifest import VariantRecord
from argosy.errors import DeviceError
from argosy.runtime.gpu.device import open_device
from argosy.runtime.gpu.executor import DeviceExecutor
from argosy.runtime.gpu.fitting import fit

__all__ = ["load_variant"]


def load_variant(artifact: Artifact, variant: VariantRecord, wanted: str) -> DeviceExecutor:
    """The variant's plan with its kernels, ready to run. Raises DeviceError where no device fits any more."""
    where = f"{artifact.where}: {variant.words}"
    found = fit(variant, wanted)
    if found.device is None:
        raise DeviceError(found.reason, where=where)
    plan = artifact.plan(variant.key)
    decoder = Decoder(plan.modules, decode_symbols(plan.symbols), artifact.literal, where)
    code = [artifact.entry(variant.key, record.path) for record in plan.code]
    return DeviceExecutor(plan, decoder, where, open_device(found.device), code)
