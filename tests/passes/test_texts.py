"""Every pass on programs as text: `tests/passes/<pass>.txt` holds cases of before, `----`, after.

Cases are parted by `====`; a line that begins with `#` says what a case shows. The text after is what the
printer writes, without the version line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from argosy.ir.parser import parse_program
from argosy.ir.printer import print_module
from argosy.passes.manager import PassManager, Phase, make_pass, pass_names

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """One program before and after a pass."""

    name: str
    what: str
    before: str
    after: str


def cases() -> Iterator[Case]:
    for file in sorted(FOLDER.glob("*.txt")):
        for block in file.read_text(encoding="utf-8").split("====\n"):
            before, _, after = block.partition("----\n")
            what = next((line[1:].strip() for line in before.splitlines() if line.startswith("#")), "")
            yield Case(file.stem, what, before, after)


def text_after(case: Case) -> str:
    """What the pass makes of the case's program, as text."""
    module = parse_program(f"argosy 1\n{case.before}").main
    options = {"values": (("N", 4),)} if case.name == "bind_dims" else {}
    return print_module(PassManager((Phase("test", (make_pass(case.name, options),)),)).run(module))


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: f"{case.name}: {case.what}")
def test_pass(case: Case) -> None:
    assert text_after(case).strip() == case.after.strip()


def test_every_pass_has_cases() -> None:
    assert {case.name for case in cases()} == set(pass_names())
