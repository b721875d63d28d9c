"""Lays an index out to be uploaded: pages for a static host, and the wheels of each arch for a release of its own.

```
releases/common/…     models, their weights, ordinary wheels
releases/<arch>/…     the code for an arch
pages/simple/…        the pages
upload.json           every file with its SHA-256, its size, and where it is to be found
```

Nothing is uploaded here: any tool that copies files can do that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from argosy.artifact.atomic import atomic_file, make_folder
from argosy.errors import ArtifactError
from argosy.packaging.build import write_pages
from argosy.packaging.index import COMMON, Index, copy_file
from argosy.packaging.package import RELEASE_LIMIT
from argosy.packaging.pages import link_to, pages

__all__ = ["PAGES_LIMIT", "UPLOAD", "Upload", "publish_index"]

PAGES_LIMIT: Final = 100 * 10**6
"""Bytes of a file among the pages at most: what hosts of pages take."""
UPLOAD: Final = "upload.json"
_PAGES: Final = "pages"
_RELEASES: Final = "releases"


class Upload(msgspec.Struct, frozen=True):
    """A file to upload: its path in the folder, and its address afterwards, where the index was told of one."""

    path: str
    sha256: str
    size: int
    url: str = ""


def publish_index(
    index: Index,
    folder: Path,
    target: Path,
    *,
    arch: str = "",
    dry_run: bool = False,
    limits: Mapping[str, int] | None = None,
) -> tuple[Upload, ...]:
    """Lay the index in a folder out in `target`, whole or what one arch needs; says what is to be uploaded.

    `dry_run` writes nothing. `limits` are the most bytes of a file in `pages` and in `releases`. Raises UsageError for
    an arch that the index lacks, ArtifactError, naming every file, where some are too large, EnvironmentError_ where
    the disk refuses.
    """
    if arch:
        index.find(arch)
    wheels = [wheel for wheel in index.wheels if wheel.namespace in (arch or wheel.namespace, COMMON)]
    # From `pages/simple/<index>/<project>/` the releases lie four folders up, where they are served together.
    link = link_to(index.wheel_url or f"../../../../{_RELEASES}")
    found = {f"{_PAGES}/{path}": page for path, page in pages(index, link, arch).items()}
    base = index.pages_url.rstrip("/")
    uploads = [
        Upload(path, hashlib.sha256(page).hexdigest(), len(page), f"{base}{path.removeprefix(_PAGES)}" if base else "")
        for path, page in found.items()
    ]
    uploads += [
        Upload(
            f"{_RELEASES}/{wheel.namespace}/{wheel.file}",
            wheel.sha256,
            wheel.size,
            link(wheel) if index.wheel_url else "",
        )
        for wheel in wheels
    ]
    uploads.sort(key=lambda upload: upload.path)
    _check_sizes(uploads, {_PAGES: PAGES_LIMIT, _RELEASES: RELEASE_LIMIT, **(limits or {})})
    if not dry_run:
        _write(
            uploads,
            found,
            {f"{_RELEASES}/{wheel.namespace}/{wheel.file}": folder / wheel.file for wheel in wheels},
            target,
        )
    return tuple(uploads)


def _check_sizes(uploads: list[Upload], limits: Mapping[str, int]) -> None:
    large = [
        f"{upload.path} has {upload.size} bytes, at most {limit} are accepted"
        for upload in uploads
        if upload.size > (limit := limits[upload.path.partition("/")[0]])
    ]
    if large:
        raise ArtifactError(
            "\n".join(("files are too large to be uploaded:", *(f"  - {line}" for line in large))),
            hint="argosy package divides weights over wheels of at most 2 GB",
        )


def _write(uploads: list[Upload], found: dict[str, bytes], wheels: Mapping[str, Path], target: Path) -> None:
    for path, source in wheels.items():
        make_folder((target / path).parent)
        copy_file(source, target / path)
    write_pages(found, target)
    with atomic_file(target / UPLOAD) as file:
        file.write(msgspec.json.format(msgspec.json.encode({"schema": 1, "files": uploads}), indent=1) + b"\n")
