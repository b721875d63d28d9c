"""Writes the wheels of an artifact: the model for every machine, and for each arch its code.

`pip install 'resnet50[device-ARCH]'` then gives a machine the model and the code for that arch. The model's wheel has
an extra for **every** arch that is known, also for those without code: pip installs a package with a warning where it
does not have an extra that was asked for, and fails where the extra needs a wheel that is not there. Each is pinned to
a version whose local segment is a hash of all that the wheels were made of, which no public index accepts.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from argosy import __version__
from argosy.artifact.artifact import Artifact
from argosy.artifact.artifact_file import ArtifactFile
from argosy.artifact.atomic import make_folder
from argosy.artifact.manifest import VariantRecord, artifact_hash
from argosy.artifact.part import write_part
from argosy.artifact.subset import used_weights
from argosy.artifact.zipformat import WEIGHTS
from argosy.errors import ArtifactError
from argosy.packaging.module_text import module_text
from argosy.packaging.names import (
    check_archs,
    check_name,
    check_version,
    device_extra,
    device_project,
    local_segment,
    module_name,
    weights_project,
)
from argosy.packaging.note import NOTE_ENCODER, Note, Role
from argosy.packaging.parts import Parts, divide, platforms_of
from argosy.packaging.wheel import Wheel, write_wheel
from argosy.runtime.selection import REF
from argosy.targets.base import known_archs

__all__ = ["RELEASE_LIMIT", "Packaged", "package"]

RELEASE_LIMIT: Final = 2 * 10**9
"""Bytes of a wheel at most: what hosts of releases take."""

_CANONICAL: Final = msgspec.json.Encoder(order="sorted")
log = logging.getLogger("argosy.packaging")


@dataclass(frozen=True, slots=True)
class Packaged:
    """A wheel that was written, and what it is."""

    path: Path
    size: int
    note: Note


def package(
    artifact: Artifact, *, name: str, version: str, folder: Path, limit: int = RELEASE_LIMIT
) -> tuple[Packaged, ...]:
    """Write the wheels of an artifact into a folder, which is made: the model's first, then weights, then archs.

    Equal artifacts, names and versions give equal bytes. `limit` bounds the bytes of each wheel. Raises UsageError for
    a name or version that is not allowed, ArtifactError for a slim artifact, for weights that are not there, and where
    a part is too large.
    """
    project, version = check_name(name), check_version(version)
    if artifact.is_slim:
        raise ArtifactError(
            "it is slim: wheels need the program", where=artifact.where, hint="compile it without --slim"
        )
    file = artifact.as_file()
    check_archs([variant.arch for variant in file.manifest.variants], file.where)
    parts = divide(file, limit)
    extras = sorted({info.name for info in known_archs()} - {REF} | parts.archs.keys())
    full = f"{version}+{local_segment(_identity(file, project, version, parts, extras))}"
    make_folder(folder)
    with TemporaryDirectory(prefix=".argosy-", dir=folder) as work:
        builder = _Builder(file, project, full, parts, Path(work))
        written = [builder.host(extras)]
        written += [builder.weights(number) for number in range(1, len(parts.weights))]
        written += [builder.device(arch) for arch in parts.archs]
        for wheel in written:
            if wheel.size > limit:
                raise ArtifactError(
                    f"the wheel {wheel.path.name} has {wheel.size} bytes, at most {limit} are accepted",
                    where=file.where,
                    hint="compile fewer variants for one arch",
                )
        return tuple(
            Packaged(wheel.path.replace(folder / wheel.path.name), wheel.size, wheel.note) for wheel in written
        )


def _identity(file: ArtifactFile, project: str, version: str, parts: Parts, extras: Sequence[str]) -> str:
    """SHA-256 over all that the bytes of the wheels depend on, entries as they are packed among them."""
    packed = {
        name: hashlib.sha256(file.container.stored_bytes(entry)).hexdigest()
        for name, entry in file.container.entries.items()
        if name in file.manifest.entries and not name.startswith(WEIGHTS)
    }
    made_of = {
        "archs": {arch: sorted(variant.key for variant in variants) for arch, variants in parts.archs.items()},
        "argosy": __version__,
        "artifact": artifact_hash(file.manifest),
        "extras": extras,
        "packed": packed,
        "project": project,
        "version": version,
        "weights": parts.weights,
    }
    return hashlib.sha256(_CANONICAL.encode(made_of)).hexdigest()


def _runtime() -> str:
    """The requirement of a runtime that reads what this version writes."""
    major, minor, *_ = __version__.split(".")
    above = f"0.{int(minor) + 1}" if major == "0" else str(int(major) + 1)
    return f"argosy>={__version__},<{above}"


@dataclass(frozen=True, slots=True)
class _Builder:
    """Makes the wheels of one release in a folder."""

    file: ArtifactFile
    project: str
    version: str
    parts: Parts
    work: Path

    @property
    def module(self) -> str:
        return module_name(self.project)

    @property
    def title(self) -> str:
        return f"{self.project} {self.version.partition('+')[0]}"

    def host(self, extras: Sequence[str]) -> Packaged:
        """The model: program, weights, and the extras."""
        weights = self.parts.weights[0]
        path = self._part("model", variants=(), weights=weights)
        shares = [weights_project(self.project, number) for number in range(1, len(self.parts.weights))]
        code = ", ".join(sorted(self.parts.archs)) or "no arch"
        wheel = Wheel(
            project=self.project,
            version=self.version,
            summary=f"{self.title}, compiled by Argosy: the model for every machine",
            description=(
                f"`import {self.module}; {self.module}.session()` makes it ready to run. Code for an arch comes with "
                f"an extra, such as `{self.project}[{device_extra([*self.parts.archs, *extras][0])}]`; without any the "
                f"model is run by numpy.\n\nThere is code for: {code}.\n"
            ),
            files={
                f"{self.module}/__init__.py": module_text(self.project, self.title, self.version).encode(),
                f"{self.module}/py.typed": b"",
                f"{self.module}/model.argosy": path,
            },
            note=self._note("host", tuple(sorted(self.parts.archs)), len(shares)),
            requires=(
                _runtime(),
                *(f"{share}=={self.version}" for share in shares),
                *(
                    f'{device_project(self.project, arch)}=={self.version}; extra == "{device_extra(arch)}"'
                    for arch in extras
                ),
            ),
            extras=tuple(map(device_extra, extras)),
        )
        return self._write(wheel)

    def weights(self, number: int) -> Packaged:
        """A share of the weights."""
        path = self._part(f"weights{number}", variants=(), weights=self.parts.weights[number])
        wheel = Wheel(
            project=weights_project(self.project, number),
            version=self.version,
            summary=f"{self.title}: weights, {number} of {len(self.parts.weights) - 1}",
            description=f"It comes with `{self.project}`, which needs it.\n",
            files={f"{self.module}/weights/{number}.argosy": path},
            note=self._note("weights", ()),
        )
        return self._write(wheel)

    def device(self, arch: str) -> Packaged:
        """The code for an arch, with the weights that its plans use and the program does not."""
        variants = self.parts.archs[arch]
        shared = {digest for share in self.parts.weights for digest in share}
        path = self._part(f"device-{arch}", variants=variants, weights=used_weights(self.file, variants) - shared)
        wheel = Wheel(
            project=device_project(self.project, arch),
            version=self.version,
            summary=f"{self.title}: code for {arch}",
            description=f"Install `{self.project}[{device_extra(arch)}]`, which brings it.\n",
            files={f"{self.module}/devices/{arch}.argosy": path},
            note=self._note("device", (arch,)),
            requires=(f"{self.project}=={self.version}",),
            keywords=("argosy", arch),
            platforms=platforms_of(variants),
        )
        return self._write(wheel)

    def _part(self, name: str, *, variants: Sequence[VariantRecord], weights: Collection[str]) -> Path:
        path = self.work / f"{name}.argosy"
        write_part(self.file, path, variants=variants, weights=weights)
        return path

    def _note(self, role: Role, archs: tuple[str, ...], shares: int = 0) -> bytes:
        note = Note(self.project, self.version, role, archs, shares)
        return NOTE_ENCODER.encode(note)

    def _write(self, wheel: Wheel) -> Packaged:
        log.info("writing %s", wheel.file_name)
        path = write_wheel(wheel, self.work)
        for content in wheel.files.values():
            if isinstance(content, Path):
                content.unlink()
        return Packaged(path, path.stat().st_size, msgspec.json.decode(wheel.note, type=Note))
