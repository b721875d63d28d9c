"""`argosy index`: static package indexes of wheels, an index for each arch."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Final

from argosy.cli.console import Console, table
from argosy.cli.describe import bytes_text
from argosy.cli.parser import Parser
from argosy.cli.progress import progress
from argosy.cli.verb import verb
from argosy.errors import UsageError

__all__ = ["index_wheels"]

_TAKEN: Final = {
    "build": ("output", "wheel_url", "pages_url", "also", "extra_index_url"),
    "check": ("arch", "extra_index_url"),
    "publish": ("to", "arch", "dry_run"),
}
"""The options of each action."""


def configure(parser: Parser) -> None:
    """Options of the verb."""
    parser.add_argument("action", choices=tuple(_TAKEN), help="what to do")
    parser.add_argument("folder", metavar="DIR", help="build: a folder of wheels; else the folder of an index")
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="build: write the index to DIR (default: beside the wheels)"
    )
    parser.add_argument(
        "--wheel-url", metavar="URL", default="", help="build: link to URL/ARCH/FILE, not beside the pages"
    )
    parser.add_argument(
        "--pages-url", metavar="URL", default="", help="build: where the pages will be, for the install line"
    )
    parser.add_argument(
        "--also", metavar="WHEELS", action="append", default=[],
        help="build: list other wheels too, a file or a folder of them, such as that of argosy; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--extra-index-url", metavar="URL", default="",
        help="build, check: the index of all other packages (default: the one that pip asks)",
    )  # fmt: skip
    parser.add_argument("--to", metavar="DIR", help="publish: lay out pages and releases in DIR (needed)")
    parser.add_argument("--arch", metavar="A", default="", help="check, publish: only this arch")
    parser.add_argument("--dry-run", action="store_true", help="publish: say what would be written")


@verb(
    "index",
    group="Artifacts",
    summary="make, check and lay out a static package index that gives each machine its own code",
    configure=configure,
    examples=(
        ("argosy index build dist", "an index for each arch and one of all, and what to tell pip"),
        ("argosy index check dist", "install for each arch from a local server, and look at what comes"),
        ("argosy index publish dist --to upload", "pages, and a release for each arch, to be uploaded"),
    ),
)
def index_wheels(arguments: argparse.Namespace, console: Console) -> int:
    """Build, check or publish."""
    for option in dict.fromkeys(name for names in _TAKEN.values() for name in names):
        if getattr(arguments, option) and option not in _TAKEN[arguments.action]:
            raise UsageError(f"index {arguments.action} takes no --{option.replace('_', '-')}")
    return {"build": _build, "check": _check, "publish": _publish}[arguments.action](arguments, console)


def _build(arguments: argparse.Namespace, console: Console) -> int:
    from argosy.packaging.build import build_index, install_line
    from argosy.packaging.pip import ordinary_index

    ordinary = arguments.extra_index_url or ordinary_index()
    output = Path(arguments.output or arguments.folder)
    with progress(console, f"building the index {output}"):
        index = build_index(
            Path(arguments.folder),
            output,
            also=[Path(path) for path in arguments.also],
            wheel_url=arguments.wheel_url,
            pages_url=arguments.pages_url,
        )
    base = arguments.pages_url or output.resolve().as_uri()
    lines = {
        (release.package, release.version, arch): shlex.join(
            install_line(release, [arch] if arch else [], base=base, ordinary=ordinary)
        )
        for release in index.releases
        for arch in release.archs or ("",)
    }
    if arguments.json:
        keys = ("package", "version", "arch", "install")
        console.json([dict(zip(keys, (*names, line), strict=True)) for names, line in lines.items()])
        return 0
    console.note(f"wrote {output / 'simple'}: {len(index.wheels)} wheels, indexes: {', '.join(('all', *index.archs))}")
    for (package, version, arch), line in lines.items():
        title = f"{package} {version} on {arch or 'any machine'}"
        console.write(f"{console.paint(title, 'bold')}\n  {line}")
    return 0


def _check(arguments: argparse.Namespace, console: Console) -> int:
    from argosy.packaging.check import check_index
    from argosy.packaging.index import open_index
    from argosy.packaging.pip import ordinary_index

    folder = Path(arguments.folder)
    index = open_index(folder)
    findings = []
    with progress(console, f"installing from {folder}"):
        for finding in check_index(
            index, folder, ordinary=arguments.extra_index_url or ordinary_index(), only=arguments.arch
        ):
            findings.append(finding)
            if not arguments.json:
                state = console.paint("ok", "green") if finding.good else console.paint("wrong", "red", "bold")
                console.write(f"{state}  {finding.index}: {finding.words}\n      {finding.command}")
    good = all(finding.good for finding in findings)
    if arguments.json:
        keys = ("index", "command", "good", "words")
        console.json([{key: getattr(finding, key) for key in keys} for finding in findings])
    return 0 if good else 1


def _publish(arguments: argparse.Namespace, console: Console) -> int:
    from argosy.packaging.index import open_index
    from argosy.packaging.publish import publish_index

    if not arguments.to:
        raise UsageError("--to DIR is missing", hint="argosy index publish DIR --to upload")
    folder = Path(arguments.folder)
    index = open_index(folder)
    uploads = publish_index(index, folder, Path(arguments.to), arch=arguments.arch, dry_run=arguments.dry_run)
    if arguments.json:
        console.json([{key: getattr(one, key) for key in ("path", "sha256", "size", "url")} for one in uploads])
        return 0
    for line in table([(one.path, bytes_text(one.size), one.url) for one in uploads], right=(1,)):
        console.write(line)
    console.note(f"{'would write' if arguments.dry_run else 'wrote'} {arguments.to}, with upload.json")
    return 0
