"""Generated tables in the documents are current."""

from __future__ import annotations

from scripts import update_tables


def test_the_op_list_of_the_architecture_page_is_current() -> None:
    text = (update_tables.ROOT / "ARCHITECTURE.md").read_text()
    assert update_tables.updated(text) == text, "run python scripts/update_tables.py"
