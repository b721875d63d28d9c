"""Writes the pages of the docs that are made from the command line: operators, the verbs, MIGraphX's options.

`python scripts/update_cli_docs.py` writes them, `--check` only says whether they are current.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from argosy.cli.console import Painter
from argosy.cli.main import make_parser, overview
from argosy.cli.migraphx import MIGRAPHX
from argosy.cli.spelling import COMPILERS, READERS, Spelling
from argosy.cli.support_page import support_page
from argosy.cli.verb import GROUPS, VERBS
from argosy.frontends.onnx.support import ir_ops, op_support

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
_WIDTH: Final = 100
_SETS: Final = {READERS: "all that read a model", COMPILERS: "all that compile"}

_MIGRAPHX_HEAD: Final = """\
# Options of MIGraphX's driver

Made by `python scripts/update_cli_docs.py` from `argosy/cli/migraphx.py`; a test tries every line on the parsers.

MIGraphX's spellings are accepted, though `--help` does not show them, so that scripts carry over. What Argosy does not
have is refused by name, with the sentence that stands here, and exit code 2: nothing is dropped in silence.

| state | meaning |
|---|---|
| same | the option is one of ours too |
| accepted | it is rewritten into ours |
| not needed | it is accepted, and asks for what is always so |
| refused | it is an error that says what there is instead |

## Commands

| MIGraphX | Argosy |
|---|---|
| `read` | `read` |
| `params` | `params` |
| `compile` | `compile` |
| `run` | `run`, which shows the outputs |
| `perf` | `perf` |
| `time` | `perf` (`time` is accepted) |
| `verify` | `verify`, whose exit code is 1 for a mismatch |
| `op`, `onnx` | `ops` (both are accepted) |
| `tf` | none: Argosy reads ONNX |
| `roctx` | none in this version |
| `-h`, `--help` | the same |
| `-v`, `--version` | the same |
| `--ort-sha` | none |

## Options

| MIGraphX | of | state | Argosy | note |
|---|---|---|---|---|
"""

_CLI_HEAD: Final = """\
# The command line

Made by `python scripts/update_cli_docs.py` from the parsers themselves: this is what `argosy VERB --help` says.
[Options of MIGraphX's driver](migraphx-options.md) are accepted too.

"""


def migraphx_page() -> str:
    """The table of MIGraphX's options."""
    return _MIGRAPHX_HEAD + "".join(f"{_migraphx_row(row)}\n" for row in MIGRAPHX)


def _migraphx_row(row: Spelling) -> str:
    names = ", ".join(f"`{name}`" for name in row.names)
    ours = f"`{row.ours}`" if row.ours.startswith("-") or (" " not in row.ours and row.ours) else row.ours
    cells = (names, _SETS.get(row.verbs) or ", ".join(row.verbs), row.state, ours, row.told)
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def cli_page() -> str:
    """The help of every verb."""
    plain = Painter(on=False)
    parts = [_CLI_HEAD, f"```text\n{overview(plain)}\n```\n"]
    verbs = sorted((verb for _, verb in VERBS.items()), key=lambda verb: (GROUPS.index(verb.group), verb.name))
    parts += [f"\n## {verb.name}\n\n```text\n{make_parser(verb).help_text(plain, _WIDTH)}\n```\n" for verb in verbs]
    return "".join(parts)


def operators_page() -> str:
    """The support table."""
    return support_page(op_support(), ir_ops())


PAGES: Final[dict[str, Callable[[], str]]] = {
    "cli.md": cli_page,
    "migraphx-options.md": migraphx_page,
    "operators.md": operators_page,
}


def main() -> int:
    """Write or check; 1 where a page is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a page is out of date")
    check = parser.parse_args().check
    stale = [name for name, make in PAGES.items() if not _is_current(name, make)]
    for name in stale:
        if check:
            sys.stderr.write(f"docs/{name} is out of date: run python scripts/update_cli_docs.py\n")
        else:
            (DOCS / name).write_text(PAGES[name](), encoding="utf-8")
    return 1 if check and stale else 0


def _is_current(name: str, make: Callable[[], str]) -> bool:
    path = DOCS / name
    return path.exists() and path.read_text(encoding="utf-8") == make()


if __name__ == "__main__":
    sys.exit(main())
