"""The pages of a static package index, as HTML and as JSON.

Source: the specification "Simple repository API" of the Python packaging authority (PEP 503, PEP 691 and 700). An
index lies at `simple/<index>/`, where an index is `all` or an arch; each of its folders has `index.html` and the same
in `index.json`, for servers that can answer with what a client asks for.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import quote

from argosy.packaging.index import ALL, Index, Listed

__all__ = ["HTML", "JSON", "SIMPLE", "Link", "link_to", "pages"]

SIMPLE: Final = "simple"
HTML: Final = "index.html"
JSON: Final = "index.json"

Link = Callable[[Listed], str]
"""Where a wheel is fetched from, seen from the page of its project."""


def link_to(base: str, *, by_namespace: bool = True) -> Link:
    """Links to `base/<namespace>/<file>`, or to `base/<file>`."""

    def link(wheel: Listed) -> str:
        # `+` stands in every version of ours, and some servers of files read it as a blank.
        return "/".join([base.rstrip("/"), *([wheel.namespace] if by_namespace else []), quote(wheel.file)])

    return link


def pages(index: Index, link: Link, only: str = "") -> dict[str, bytes]:
    """The pages by path, of all indexes or of the one called `only`."""
    found: dict[str, bytes] = {}
    for name in (ALL, *index.archs):
        if only in ("", name):
            found |= {f"{SIMPLE}/{name}/{path}": page.encode() for path, page in _one(index, name, link)}
    return found


def _one(index: Index, name: str, link: Link) -> Iterator[tuple[str, str]]:
    """The pages of one index, by path in its folder."""
    projects: dict[str, list[Listed]] = {}
    for wheel in index.wheels_of(name):
        projects.setdefault(wheel.project, []).append(wheel)
    meta = {"api-version": "1.1"}
    yield JSON, _json({"meta": meta, "projects": [{"name": project} for project in projects]})
    yield HTML, _html(name, (f'<a href="{project}/">{project}</a>' for project in projects))
    for project, wheels in projects.items():
        files = [
            {
                "filename": wheel.file,
                "url": link(wheel),
                "hashes": {"sha256": wheel.sha256},
                "size": wheel.size,
                **({"requires-python": wheel.requires_python} if wheel.requires_python else {}),
            }
            for wheel in wheels
        ]
        versions = sorted({wheel.version for wheel in wheels})
        yield f"{project}/{JSON}", _json({"meta": meta, "name": project, "versions": versions, "files": files})
        yield f"{project}/{HTML}", _html(project, (_anchor(wheel, link) for wheel in wheels))


def _anchor(wheel: Listed, link: Link) -> str:
    needs = f' data-requires-python="{html.escape(wheel.requires_python)}"' if wheel.requires_python else ""
    target = html.escape(f"{link(wheel)}#sha256={wheel.sha256}")
    return f'<a href="{target}"{needs}>{html.escape(wheel.file)}</a>'


def _html(title: str, anchors: Iterator[str]) -> str:
    lines = "".join(f"{anchor}<br>\n" for anchor in anchors)
    head = (
        f'<meta charset="utf-8"><meta name="pypi:repository-version" content="1.1"><title>{html.escape(title)}</title>'
    )
    return f"<!DOCTYPE html>\n<html><head>{head}</head><body>\n{lines}</body></html>\n"


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=True) + "\n"
