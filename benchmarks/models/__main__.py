"""`python -m benchmarks.models`: list the built models, write one to a file, or write the lock file anew."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.models import catalog
from benchmarks.models.family import serialize


def parse_change(text: str, choice: Any) -> tuple[str, Any]:
    """`image=128`, `depths=3,4,6,3` or `batch=n`: a field of the preset's sizes and its new value."""
    name, _, value = text.partition("=")
    known = [field.name for field in dataclasses.fields(choice)]
    if name not in known:
        raise ValueError(f"no size named {name!r}; this model has {', '.join(known)}")
    parts = [int(part) if part.lstrip("-").isdigit() else part for part in value.split(",")]
    return name, tuple(parts) if isinstance(getattr(choice, name), tuple) else parts[0]


def write_lock() -> None:
    """Build every model at its own sizes and write down the hashes."""
    hashes = {}
    for family, preset in catalog.presets():
        content, hashes[preset.name] = serialize(family.make(preset.name))
        print(f"{preset.name:24} {len(content) / 1e6:8.1f} MB  {hashes[preset.name]}")
    catalog.LOCK.write_text(json.dumps(hashes, indent=1) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and do it; the exit status is 0, or 2 for a wrong name."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="list the models")
    verbs.add_parser("lock", help="write models.lock.json anew")
    build = verbs.add_parser("build", help="write a model to a file")
    build.add_argument("name", metavar="NAME")
    build.add_argument("--set", action="append", default=[], metavar="SIZE=VALUE", help="change one of its sizes")
    build.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    options = parser.parse_args(arguments)
    if options.verb == "list":
        for family, preset in catalog.presets():
            print(f"{preset.name:24} {family.what}\n{'':24} {preset.choice}")
        return 0
    if options.verb == "lock":
        write_lock()
        return 0
    try:
        family, preset = catalog.find(options.name)
        changes = dict(parse_change(text, preset.choice) for text in options.set)
    except (KeyError, ValueError) as error:
        print(f"benchmarks.models: {error.args[0]}", file=sys.stderr)
        return 2
    content, digest = serialize(family.make(options.name, **changes))
    options.output.write_bytes(content)
    print(f"{options.output}: {len(content) / 1e6:.1f} MB, sha256 {digest}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
