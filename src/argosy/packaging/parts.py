"""What lies in which wheel of a model: program and weights in one for every machine, the variants of each arch in one.

Weights that are too large for one wheel go to wheels of their own, in the order of their hashes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from argosy import host_cpu
from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.manifest import PROGRAM_ENTRY, VariantRecord
from argosy.artifact.subset import used_weights
from argosy.artifact.zipformat import ALIGNMENT
from argosy.errors import ArtifactError
from argosy.packaging.wheel import ANY
from argosy.runtime.devices.cpu import cpu_family

__all__ = ["Parts", "divide", "platforms_here", "platforms_of"]

_ENTRY: Final = 1024
"""Bytes that a weight takes beside its content and its alignment, at most: three records and a line of the manifest."""
_WHEEL: Final = 1 << 16
"""Bytes of a wheel beside its artifact, and of a manifest beside its weights, with room to spare."""

_PLATFORMS: Final = {
    # The code needs no C library, so the oldest ones that their tags can say will do.
    ("linux", "x86_64"): ("manylinux_2_17_x86_64", "musllinux_1_1_x86_64"),
    ("linux", "aarch64"): ("manylinux_2_17_aarch64", "musllinux_1_1_aarch64"),
    ("macos", "x86_64"): ("macosx_10_9_x86_64",),
    ("macos", "aarch64"): ("macosx_11_0_arm64",),
    ("windows", "x86_64"): ("win_amd64",),
    ("windows", "aarch64"): ("win_arm64",),
}
_FAMILIES: Final = {cpu_family(isa): isa for _, isa in _PLATFORMS}


@dataclass(frozen=True, slots=True)
class Parts:
    """How an artifact is divided: the variants of each arch, and the weights of the program in shares.

    The first share lies with the program; every other one is a wheel.
    """

    archs: Mapping[str, tuple[VariantRecord, ...]]
    weights: tuple[tuple[str, ...], ...]


def divide(file: ArtifactFile, limit: int) -> Parts:
    """Divide an artifact into parts whose wheels have at most `limit` bytes.

    Raises ArtifactError for a slim artifact, and where one weight is too large for a wheel.
    """
    archs: dict[str, tuple[VariantRecord, ...]] = {}
    for variant in file.manifest.variants:
        archs[variant.arch] = (*archs.get(variant.arch, ()), variant)
    digests = sorted(used_weights(file, ()))
    sizes = {digest: _room_for(file.manifest.weights[digest].bytes) for digest in digests}
    room = limit - file.manifest.entries[PROGRAM_ENTRY].stored - _ENTRY * len(digests) - _WHEEL
    if sum(sizes.values()) <= room:
        return Parts(archs, (tuple(digests),))
    shares: list[list[str]] = []
    left = 0
    for digest in digests:
        if sizes[digest] > room:
            raise _too_large(file, digest, room, limit)
        if sizes[digest] > left:
            shares.append([])
            left = room
        shares[-1].append(digest)
        left -= sizes[digest]
    return Parts(archs, ((), *map(tuple, shares)))


def _room_for(size: int) -> int:
    return size + -size % ALIGNMENT + ALIGNMENT


def _too_large(file: ArtifactFile, digest: str, room: int, limit: int) -> ArtifactError:
    weight = file.manifest.weights[digest]
    return ArtifactError(
        f"the weight {digest[:16]} ({weight.dtype}{list(weight.dims)}) has {weight.bytes} bytes, and a wheel of at "
        f"most {limit} bytes has room for {max(0, room - ALIGNMENT)}",
        where=file.where,
        hint="split the tensor in the model; a weight can't be divided",
    )


def platforms_of(variants: Sequence[VariantRecord]) -> tuple[str, ...]:
    """The platform tags of a wheel with these variants: those of a CPU and its system, else `any`."""
    found = {
        tag
        for variant in variants
        if variant.family in _FAMILIES
        for tag in _PLATFORMS.get((variant.system, _FAMILIES[variant.family]), ())
    }
    return tuple(sorted(found)) or (ANY,)


def platforms_here() -> frozenset[str]:
    """The platform tags, of those that wheels with code have, that install on this machine."""
    return frozenset({ANY, *_PLATFORMS.get((host_cpu.system(), host_cpu.isa()), ())})
