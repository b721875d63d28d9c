"""GPUs: loads a variant's kernels from checked bytes onto the device that fits it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from argosy.artifact.artifact import Artifact
from argosy.artifact.decode import Decoder, decode_symbols
from argosy.artifact.manifest import VariantRecord
from argosy.artifact.plan import PlanRecord
from argosy.drivers.discovery import DeviceInfo
from argosy.errors import DeviceError
from argosy.runtime.gpu.device import Device, open_device
from argosy.runtime.gpu.executor import DeviceExecutor
from argosy.runtime.gpu.families import EMULATED
from argosy.runtime.gpu.fitting import fit

__all__ = ["load_variant"]


def load_variant(artifact: Artifact, variant: VariantRecord, wanted: str, *, checked: bool = False) -> DeviceExecutor:
    """The variant's plan with its kernels, ready to run; `checked` is for emulated ones.

    Raises DeviceError where no device fits any more.
    """
    where = f"{artifact.where}: {variant.words}"
    found = fit(variant, wanted)
    if found.device is None:
        raise DeviceError(found.reason, where=where)
    plan = artifact.plan(variant.key)
    decoder = Decoder(plan.modules, decode_symbols(plan.symbols), artifact.literal, where)
    code = [artifact.entry(variant.key, record.path) for record in plan.code]
    if wanted.partition(":")[0] == EMULATED:
        return DeviceExecutor(
            plan, decoder, where, _emulated(artifact, variant, plan, code, found.device, checked=checked), code
        )
    return DeviceExecutor(plan, decoder, where, open_device(found.device), code)


def _emulated(
    artifact: Artifact,
    variant: VariantRecord,
    plan: PlanRecord,
    code: Sequence[bytes],
    info: DeviceInfo,
    *,
    checked: bool,
) -> Device:
    """A device that runs the assembly texts that came with the code objects."""
    from argosy.runtime.gpu.emulated import EmulatedDevice  # noqa: PLC0415 - its imports are felt

    texts = {
        hashlib.sha256(content).hexdigest(): artifact.entry(variant.key, record.assembly).decode()
        for record, content in zip(plan.code, code, strict=True)
        if record.assembly
    }
    return EmulatedDevice(info, texts, looks=checked)
