"""A package index of a folder of wheels: which wheels there are, of which releases, and who is to see which.

There is an index for each arch, which lists the models, their weights and the code for that arch, and one for all. So a
machine that asks an arch's index for the code of another fails. Wheels that Argosy did not make are listed in each.
"""

from __future__ import annotations

import email.parser
import hashlib
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from argosy.artifact.atomic import atomic_file
from argosy.errors import ArtifactError, UsageError
from argosy.packaging.names import (
    check_archs,
    device_extra,
    device_project,
    file_part,
    is_name,
    normalised,
    weights_project,
)
from argosy.packaging.note import Note
from argosy.packaging.wheel import NOTE
from argosy.registry import did_you_mean

__all__ = [
    "ALL",
    "COMMON",
    "DESCRIPTION",
    "Index",
    "Listed",
    "Release",
    "collect",
    "copy_file",
    "open_index",
    "write_description",
]

ALL: Final = "all"
"""The index that lists every wheel."""
COMMON: Final = "common"
"""The release namespace of what every machine needs. Neither name can be an arch: see `RESERVED`."""
DESCRIPTION: Final = "argosy-index.json"
"""The file that describes an index, beside its wheels."""

_CHUNK: Final = 1 << 20
_REBUILD: Final = "build the index again: argosy index build"


class Listed(msgspec.Struct, frozen=True):
    """A wheel of an index. `arch` is what it has code for, empty for what is for every machine."""

    file: str
    project: str
    version: str
    requires_python: str
    sha256: str
    size: int
    arch: str = ""

    @property
    def namespace(self) -> str:
        """The release that the wheel is uploaded to: its arch, or `common`."""
        return self.arch or COMMON


class Release(msgspec.Struct, frozen=True):
    """A version of a model, and the archs that there is code for."""

    package: str
    version: str
    archs: tuple[str, ...]

    def requirement(self, *archs: str) -> str:
        """What to ask pip for: the model with the code for these archs."""
        extras = ",".join(device_extra(arch) for arch in archs)
        return f"{self.package}[{extras}]=={self.version}" if extras else f"{self.package}=={self.version}"


class Index(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A description of an index. `wheel_url` is where the wheels are, `pages_url` where the pages are, where told."""

    releases: tuple[Release, ...]
    wheels: tuple[Listed, ...]
    wheel_url: str = ""
    pages_url: str = ""
    schema: int = 1

    @property
    def archs(self) -> tuple[str, ...]:
        """The archs that have an index."""
        return tuple(sorted({arch for release in self.releases for arch in release.archs}))

    def find(self, arch: str) -> None:
        """Raise UsageError, with a suggestion, for an arch that has no index."""
        if arch not in self.archs:
            hint = did_you_mean(arch, list(self.archs)) or f"it has: {', '.join(self.archs)}"
            raise UsageError(f"the index has no arch {arch!r}", hint=hint)

    def wheels_of(self, name: str) -> tuple[Listed, ...]:
        """The wheels that the index `name` lists: all, or those of an arch and the ones for every machine."""
        return tuple(wheel for wheel in self.wheels if name == ALL or wheel.arch in ("", name))


def collect(
    folder: Path, *, also: Sequence[Path] = (), wheel_url: str = "", pages_url: str = ""
) -> tuple[Index, dict[str, Path]]:
    """The index of the wheels in a folder and, as ordinary ones, of those in `also` (wheels, or folders of them).

    With it comes where each wheel lies. Raises UsageError where there are none, ArtifactError for a broken wheel,
    for two of one name, and for a release of which a wheel is missing.
    """
    paths = [*_wheels_in(folder), *(path for other in also for path in _wheels_in(other))]
    places: dict[str, Path] = {}
    listed: list[Listed] = []
    notes: list[Note] = []
    for path in paths:
        wheel, note = _read(path)
        if path.name in places:
            if _sha256(places[path.name]) != wheel.sha256:
                raise ArtifactError(f"{places[path.name]} is another wheel of the same name", where=str(path))
            continue
        places[path.name] = path
        listed.append(wheel)
        notes += [note] if note else []
    releases = tuple(
        Release(note.package, note.version, note.archs)
        for note in sorted(notes, key=lambda note: (note.package, note.version))
        if note.role == "host"
    )
    _check_complete(notes, listed, folder)
    ordered = tuple(sorted(listed, key=lambda wheel: (wheel.project, wheel.file)))
    return Index(releases, ordered, wheel_url, pages_url), places


def open_index(folder: Path) -> Index:
    """The index that was built in a folder, whose wheels are those that it lists, unchanged.

    Raises UsageError where there is none, ArtifactError where it is damaged or a wheel is not what it lists. Nothing in
    it is taken on trust: it must be what the wheels say.
    """
    file = folder / DESCRIPTION
    if not file.is_file():
        raise UsageError("there is no index in this folder", where=str(folder), hint=f"argosy index build {folder}")
    try:
        index = msgspec.json.decode(file.read_bytes(), type=Index)
    except msgspec.MsgspecError as error:
        raise ArtifactError(f"it is damaged: {error}", where=str(file), hint=_REBUILD) from error
    found, _ = collect(folder, wheel_url=index.wheel_url, pages_url=index.pages_url)
    other = sorted({wheel.file for wheel in {*index.wheels} ^ {*found.wheels}})
    if other:
        raise ArtifactError(
            f"the wheels are not those that it lists: {', '.join(other)}", where=str(file), hint=_REBUILD
        )
    if found != index:
        raise ArtifactError("it is not the description of the wheels in the folder", where=str(file), hint=_REBUILD)
    return index


def _sha256(path: Path) -> str:
    """SHA-256 of a file in hex digits."""
    state = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            state.update(chunk)
    return state.hexdigest()


def copy_file(source: Path, target: Path) -> None:
    """Copy a file, atomically, unless it is the same one. Raises EnvironmentError_ where the disk refuses."""
    if target.exists() and target.samefile(source):
        return
    with atomic_file(target) as file, source.open("rb") as opened:
        shutil.copyfileobj(opened, file, _CHUNK)


def _wheels_in(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise UsageError("there is no such folder", where=str(place))
    found = sorted(place.glob("*.whl"))
    if not found:
        raise UsageError("there are no wheels in this folder", where=str(place), hint="argosy package writes them")
    return found


def _read(path: Path) -> tuple[Listed, Note | None]:
    """A wheel by its metadata, and what it is of where Argosy made it."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.count("/") == 1 and ".dist-info/" in name]
            metadata = next(name for name in names if name.endswith("/METADATA"))
            fields = email.parser.BytesParser().parsebytes(archive.read(metadata))
            note_name = metadata.replace("METADATA", NOTE)
            note = msgspec.json.decode(archive.read(note_name), type=Note) if note_name in names else None
            project, version = normalised(fields["Name"]), str(fields["Version"])
    except (zipfile.BadZipFile, StopIteration, KeyError, TypeError, msgspec.MsgspecError) as error:
        raise ArtifactError("this is no wheel that can be read", where=str(path)) from error
    if note and path.stem.split("-")[:2] != [file_part(project), version]:
        raise ArtifactError(
            f"its name does not fit what it holds: {project} {version}", where=str(path), hint="don't rename wheels"
        )
    if not is_name(project):
        raise ArtifactError(f"{project!r} is no name for a package", where=str(path))
    if note:
        check_archs(note.archs, str(path))
        if note.role == "device" and [project] != [device_project(note.package, arch) for arch in note.archs]:
            raise ArtifactError("its name does not fit the arch that it is for", where=str(path))
    arch = note.archs[0] if note and note.role == "device" else ""
    python = str(fields["Requires-Python"] or "")
    return Listed(path.name, project, version, python, _sha256(path), path.stat().st_size, arch), note


def _check_complete(notes: Sequence[Note], listed: Sequence[Listed], folder: Path) -> None:
    """Raise ArtifactError unless every release has the wheels that it names, and every wheel of ours a release."""
    if not notes:
        raise UsageError("there is no wheel of a model in this folder", where=str(folder), hint="argosy package")
    wanted = {(note.package, note.version) for note in notes}
    for note in notes:
        if note.role == "host":
            wanted |= {(device_project(note.package, arch), note.version) for arch in note.archs}
            wanted |= {(weights_project(note.package, share + 1), note.version) for share in range(note.shares)}
    missing = sorted(wanted - {(wheel.project, wheel.version) for wheel in listed})
    if missing:
        raise ArtifactError(
            f"wheels are missing: {', '.join(' '.join(wheel) for wheel in missing)}",
            where=str(folder),
            hint="keep the wheels of one `argosy package` together",
        )


def write_description(index: Index, folder: Path) -> None:
    """Write the description of an index into its folder. Raises EnvironmentError_ where the disk refuses."""
    with atomic_file(folder / DESCRIPTION) as file:
        file.write(msgspec.json.format(msgspec.json.encode(index), indent=1) + b"\n")
