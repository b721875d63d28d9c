"""What variants run on, a kind of device per file."""

from __future__ import annotations

from argosy.artifact.artifact import Artifact
from argosy.artifact.manifest import VariantRecord
from argosy.runtime.devices import cpu, host
from argosy.runtime.executor import Runnable
from argosy.runtime.gpu.families import GPU_FAMILIES
from argosy.runtime.shared_weights import SharedWeights

__all__ = ["load_variant"]


def load_variant(
    artifact: Artifact,
    variant: VariantRecord,
    threads: int | None,
    device: str,
    shared: SharedWeights | None,
    *,
    checked: bool = False,
) -> Runnable:
    """The variant's plan, ready to run on the device that its family names; of several GPUs the one named `device`.

    `shared` are weights that other variants on the CPU have prepared; None where there is but one variant. `checked` is
    for code that is emulated: see `EmulatedDevice`.
    """
    if variant.family == host.HOST_FAMILY:
        return host.load_variant(artifact, variant)
    if variant.family in GPU_FAMILIES:
        from argosy.runtime.devices import gpu  # noqa: PLC0415 - its imports are felt where there is no GPU

        return gpu.load_variant(artifact, variant, device, checked=checked)
    return cpu.load_variant(artifact, variant, threads, shared)
