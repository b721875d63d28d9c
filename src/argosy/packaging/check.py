"""Installs from an index as a machine would, and looks at what comes: its own code, and nothing else.

For each arch of each release, in an environment that is thrown away: the install line gives exactly that arch's
variants, a session takes no device that they are not for, and another arch's extra fails. Then several archs come
together from the index of all, and an arch that is known but has no code fails.
"""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from argosy.errors import ArtifactError
from argosy.packaging.build import index_options, install_line, page_link
from argosy.packaging.index import ALL, Index, Release
from argosy.packaging.names import device_project, module_name
from argosy.packaging.pages import link_to, pages
from argosy.packaging.parts import platforms_here
from argosy.packaging.pip import fresh_environment, run_pip, run_python
from argosy.packaging.server import serve
from argosy.runtime.selection import REF
from argosy.targets.base import known_archs

__all__ = ["Finding", "check_index"]

log = logging.getLogger("argosy.packaging")

_WHEELS: Final = "wheels"
_LINES: Final = 12
"""Lines of a failing program that are told."""
_PROBE: Final = """\
import importlib, importlib.metadata, json, sys
import argosy
from argosy.runtime.gpu.families import GPU_FAMILIES
model, prefix = importlib.import_module(sys.argv[1]), sys.argv[2]
variants = model.artifact().variants
fitting = {GPU_FAMILIES.get(variant.family, "cpu") for variant in variants}
taken, refused = [], []
for device in sorted({"cpu", *GPU_FAMILIES.values()} - fitting):
    try:
        taken.append(f"{model.session(device=device).variant} on {device}")
    except argosy.errors.DeviceError:
        refused.append(device)
print(json.dumps({
    "archs": sorted({variant.arch for variant in variants}),
    "wheels": sorted(one.name for one in importlib.metadata.distributions() if one.name.startswith(prefix)),
    "taken": taken,
    "refused": refused,
    "runs": model.session().variant,
}))
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was tried: the index that was asked, the command, whether it went as it should, and how."""

    index: str
    command: str
    good: bool
    words: str


def check_index(index: Index, folder: Path, *, ordinary: str, only: str = "") -> Iterator[Finding]:
    """Try the index in a folder: what `open_index` gave, all archs or `only` one, as findings while they are made.

    `ordinary` is the index of all other packages. Raises UsageError for an arch that it lacks, ArtifactError where the
    pages are not those of the index.
    """
    if only:
        index.find(only)
    for path, page in pages(index, page_link(index)).items():
        if not (folder / path).is_file() or (folder / path).read_bytes() != page:
            raise ArtifactError(
                "this page is not the one of the index", where=str(folder / path), hint="argosy index build"
            )
    places = {f"{_WHEELS}/{wheel.file}": folder / wheel.file for wheel in index.wheels}
    local = pages(index, link_to(f"/{_WHEELS}", by_namespace=False))
    # Static hosts answer with HTML; the index of all is asked for JSON, so that both are tried.
    with serve(local, places, with_json=False) as base:
        for arch in index.archs if not only else (only,):
            for release in index.releases:
                if arch in release.archs:
                    yield from _check_arch(index, release, arch, base, ordinary)
    if not only:
        with serve(local, places, with_json=True) as base:
            for release in index.releases:
                yield from _check_all(index, release, base, ordinary)


def _check_arch(index: Index, release: Release, arch: str, base: str, ordinary: str) -> Iterator[Finding]:
    with TemporaryDirectory(prefix="argosy-check-") as work:
        python = fresh_environment(Path(work))
        command = install_line(release, [arch], base=base, ordinary=ordinary)
        if _installs_here(index, release, arch):
            yield _installed(release, [arch], arch, command, python)
        else:
            yield _fails(command, python, arch, device_project(release.package, arch), "its wheel is for other systems")
        others = [name for name in release.archs if name != arch] or [_unknown(release)]
        other = max(others, key=lambda name: _installs_here(index, release, name))  # it would install, were it listed
        command = ["pip", "install", *index_options(base, arch, ordinary), release.requirement(other)]
        yield _fails(command, python, arch, device_project(release.package, other), f"{other} is not of this index")


def _check_all(index: Index, release: Release, base: str, ordinary: str) -> Iterator[Finding]:
    with TemporaryDirectory(prefix="argosy-check-") as work:
        python = fresh_environment(Path(work))
        archs = [arch for arch in release.archs if _installs_here(index, release, arch)]
        options = index_options(base, ALL, ordinary)
        command = ["pip", "install", *options, release.requirement(*archs)]
        yield _installed(release, archs, ALL, command, python)
        without = _unknown(release)
        command = ["pip", "install", *options, release.requirement(without)]
        yield _fails(command, python, ALL, device_project(release.package, without), f"there is no code for {without}")


def _installs_here(index: Index, release: Release, arch: str) -> bool:
    project = device_project(release.package, arch)
    names = (wheel.file for wheel in index.wheels if (wheel.project, wheel.version) == (project, release.version))
    return any(platforms_here() & set(Path(name).stem.split("-")[-1].split(".")) for name in names)


def _unknown(release: Release) -> str:
    """An arch that is known, and that the release has no code for."""
    return next(info.name for info in known_archs() if info.name != REF and info.name not in release.archs)


def _installed(release: Release, archs: Collection[str], index: str, command: Sequence[str], python: Path) -> Finding:
    """Install, and look at what came."""
    log.info("%s", shlex.join(command))
    done = run_pip(command[1:], python)
    line = shlex.join(command)
    if done.returncode:
        return Finding(index, line, good=False, words=f"it does not install:\n{_end(done.stdout + done.stderr)}")
    prefix = device_project(release.package, "")
    done = run_python(python, _PROBE, module_name(release.package), prefix)
    if done.returncode:
        return Finding(index, line, good=False, words=f"what it installs does not run:\n{_end(done.stderr)}")
    found = json.loads(done.stdout)
    wheels = sorted(device_project(release.package, arch) for arch in archs)
    if found["archs"] != sorted(archs) or found["wheels"] != wheels:
        got = f"{', '.join(found['archs']) or 'none'} in {', '.join(found['wheels']) or 'no wheel'}"
        return Finding(index, line, good=False, words=f"it gives code for {got}")
    if found["taken"]:
        taken = ", ".join(found["taken"])
        return Finding(index, line, good=False, words=f"sessions take devices that they have no code for: {taken}")
    refused = f", and refuses {', '.join(found['refused'])}" if found["refused"] else ""
    words = f"gives code for {', '.join(archs)} alone{refused}; here runs {found['runs']}"
    return Finding(index, line, good=True, words=words)


def _fails(command: Sequence[str], python: Path, index: str, project: str, why: str) -> Finding:
    """Try what must fail, and fail for want of the wheel `project`."""
    log.info("%s", shlex.join(command))
    done = run_pip(command[1:], python)
    line = shlex.join(command)
    if not done.returncode:
        return Finding(index, line, good=False, words=f"it installs, though {why}")
    if project not in done.stdout + done.stderr:
        return Finding(
            index, line, good=False, words=f"it fails for another reason:\n{_end(done.stdout + done.stderr)}"
        )
    return Finding(index, line, good=True, words=f"fails: {why}")


def _end(text: str) -> str:
    """The last lines of what a program said."""
    return "\n".join(f"  {line}" for line in text.strip().splitlines()[-_LINES:])
