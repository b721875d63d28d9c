"""`argosy cache`: the compiled kernels that this machine keeps."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Final

from argosy.cli.console import Console, table
from argosy.cli.describe import bytes_text
from argosy.cli.parser import Parser
from argosy.cli.verb import verb
from argosy.errors import UsageError

if TYPE_CHECKING:
    from argosy.toolchains.cache import CacheEntry, DiskCache

__all__ = ["show_cache"]

_UNITS: Final = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9}
_SPANS: Final = ((86400, "days"), (3600, "hours"), (60, "minutes"))


def configure(parser: Parser) -> None:
    """Options of the verb."""
    parser.add_argument("action", choices=("list", "prune", "why"), help="what to do")
    parser.add_argument("key", metavar="KEY", nargs="?", help="why: the beginning of an entry's key, or its name")
    parser.add_argument("--limit", metavar="SIZE", help="prune: what to leave, such as 200MB; 0 empties the cache")


@verb(
    "cache",
    group="Machines",
    summary="list and prune the kernels that were compiled here",
    configure=configure,
    examples=(
        ("argosy cache list", "every entry, the last used first"),
        ("argosy cache prune --limit 200MB", "remove what was not used for longest"),
        ("argosy cache why 3f2a", "what an entry was compiled from, and whether it would be used today"),
    ),
)
def show_cache(arguments: argparse.Namespace, console: Console) -> int:
    """The entries, a removal, or one entry."""
    from argosy.toolchains.zig import object_cache

    cache = object_cache()
    if arguments.action != "why" and arguments.key:
        raise UsageError(f"cache {arguments.action} takes no key")
    if arguments.action == "list":
        _list(cache, console, as_json=arguments.json)
    elif arguments.action == "prune":
        _prune(cache, arguments.limit, console, as_json=arguments.json)
    else:
        _why(cache, arguments.key, console, as_json=arguments.json)
    return 0


def _list(cache: DiskCache, console: Console, *, as_json: bool) -> None:
    entries = cache.entries()
    if as_json:
        console.json({"folder": str(cache.folder), "entries": [_told(entry) for entry in entries]})
        return
    rows = [
        (entry.key[:12], entry.description.get("name", ""), _target(entry), bytes_text(entry.size), _ago(entry.used))
        for entry in entries
    ]
    if rows:
        console.write("\n".join(table(rows, header=("key", "name", "for", "bytes", "used"), right=(3,))))
    total = sum(entry.size for entry in entries)
    console.write(f"{len(entries)} entries, {bytes_text(total)}, in {cache.folder}")


def _prune(cache: DiskCache, limit: str | None, console: Console, *, as_json: bool) -> None:
    removed = cache.prune(None if limit is None else _size(limit))
    left = sum(entry.size for entry in cache.entries())
    if as_json:
        console.json({"removed": removed, "left": left})
    else:
        console.write(f"removed {bytes_text(removed)}, left {bytes_text(left)}")


def _why(cache: DiskCache, asked: str | None, console: Console, *, as_json: bool) -> None:
    from argosy.toolchains.zig import zig_version

    if not asked:
        raise UsageError("cache why needs a key", hint="argosy cache list shows them")
    found = [
        entry for entry in cache.entries() if entry.key.startswith(asked) or entry.description.get("name") == asked
    ]
    if len(found) != 1:
        what = f"{len(found)} entries are meant by {asked!r}" if found else f"the cache has no entry {asked!r}"
        raise UsageError(what, hint="give more of the key" if found else "argosy cache list shows them")
    (entry,) = found
    told = _told(entry)
    made, current = entry.description.get("zig", ""), zig_version()
    told["today"] = (
        "used where the same source is compiled for the same CPU with the same flags"
        if made == current
        else f"never used again: it was made by zig {made}, this is {current}"
    )
    if as_json:
        console.json(told)
    else:
        console.write("\n".join(table([(name, str(value)) for name, value in told.items() if value != ""])))


def _told(entry: CacheEntry) -> dict[str, str | int]:
    return {"key": entry.key, **entry.description, "bytes": entry.size, "used": _ago(entry.used)}


def _target(entry: CacheEntry) -> str:
    return f"{entry.description.get('cpu', '')}, {entry.description.get('target', '')}"


def _ago(moment: float) -> str:
    """How long ago, in words."""
    seconds = max(0.0, time.time() - moment)
    for span, words in _SPANS:
        if seconds >= 2 * span:
            return f"{int(seconds // span)} {words} ago"
    return "just now"


def _size(text: str) -> int:
    """Bytes from `200MB`, `1.5GB` or a number."""
    number = text.rstrip("kMGB")
    unit = text[len(number) :] or "B"
    try:
        size = float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        raise UsageError(f"{text!r} is no size", hint="forms: 0, 5000, 200MB, 1.5GB") from None
    if not 0 <= size < 1 << 62:
        raise UsageError(f"{text!r} is no size", hint="forms: 0, 5000, 200MB, 1.5GB")
    return int(size)
