"""The pages of the docs that are made from the command line are current."""

from __future__ import annotations

import pytest

from scripts import update_cli_docs


@pytest.mark.parametrize("name", sorted(update_cli_docs.PAGES))
def test_a_page_is_current(name: str) -> None:
    text = (update_cli_docs.DOCS / name).read_text(encoding="utf-8")
    assert text == update_cli_docs.PAGES[name](), "run python scripts/update_cli_docs.py"
