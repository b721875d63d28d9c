"""Builds a package index in a folder, and says what to tell pip."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from argosy.artifact.atomic import atomic_file, make_folder
from argosy.errors import EnvironmentError_
from argosy.packaging.index import ALL, DESCRIPTION, Index, Release, collect, copy_file, write_description
from argosy.packaging.pages import SIMPLE, Link, link_to, pages

__all__ = ["build_index", "index_options", "install_line", "page_link", "write_pages"]


def build_index(
    folder: Path, output: Path, *, also: Sequence[Path] = (), wheel_url: str = "", pages_url: str = ""
) -> Index:
    """Build the index of the wheels in `folder` in `output`, which is made, and gets a copy of them.

    The pages lie in `simple/`, and link to `wheel_url/<arch or common>/<file>`, or without one to the wheels in
    `output`. See `collect` for `also` and what is raised; EnvironmentError_ where the disk refuses, or where `output`
    has a folder `simple` that is not an index of ours.
    """
    index, places = collect(folder, also=also, wheel_url=wheel_url, pages_url=pages_url)
    old = output / SIMPLE
    if old.exists() and not (output / DESCRIPTION).exists():
        raise EnvironmentError_("there is a folder of this name that is no index of ours", where=str(old))
    make_folder(output)
    for name, path in places.items():
        copy_file(path, output / name)
    if old.exists():
        shutil.rmtree(old)
    write_pages(pages(index, page_link(index)), output)
    write_description(index, output)
    return index


def page_link(index: Index) -> Link:
    """How the pages of a built index link to its wheels."""
    return link_to(index.wheel_url) if index.wheel_url else link_to("../../..", by_namespace=False)


def write_pages(found: dict[str, bytes], folder: Path) -> None:
    """Write pages by path into a folder. Raises EnvironmentError_ where the disk refuses."""
    for path, page in found.items():
        make_folder((folder / path).parent)
        with atomic_file(folder / path) as file:
            file.write(page)


def install_line(release: Release, archs: Sequence[str], *, base: str, ordinary: str) -> list[str]:
    """What installs a model with the code for these archs: the words of the command.

    `base` is the address under which the pages lie, `ordinary` that of the index of all other packages: an index that
    is named takes the place of the one that pip has, so both must be named. The arch's own index is asked for one arch,
    the one of all for several.
    """
    name = archs[0] if len(archs) == 1 and archs[0] in release.archs else ALL
    return ["pip", "install", *index_options(base, name, ordinary), release.requirement(*archs)]


def index_options(base: str, name: str, ordinary: str) -> list[str]:
    """The options that name the index `name` and the ordinary one."""
    return ["--index-url", f"{base.rstrip('/')}/{SIMPLE}/{name}/", "--extra-index-url", ordinary]
