"""Progress, tables and errors as people see them."""

from __future__ import annotations

import io
import logging
import time

import pytest

from argosy.cli import progress as progress_module
from argosy.cli.console import Console, Painter, table
from argosy.cli.progress import progress


class Terminal(io.StringIO):
    """A stream that passes for a terminal."""

    def isatty(self) -> bool:
        return True


def work(console: Console, seconds: float) -> None:
    with progress(console, "compiling m.onnx"):
        logging.getLogger("argosy.compile").info("for ref")
        time.sleep(seconds)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "_PATIENCE", 0.05)
    monkeypatch.setattr(progress_module, "_INTERVAL", 0.01)
    monkeypatch.setattr(logging.getLogger("argosy"), "level", logging.INFO)


@pytest.mark.usefixtures("quick")
def test_long_work_is_told_on_a_terminal_and_wiped_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    work(Console(), 0.3)
    text = terminal.getvalue()
    assert "compiling m.onnx, " in text
    assert "for ref" in text
    assert text.endswith("\r\x1b[2K")
    assert "\n" not in text


@pytest.mark.usefixtures("quick")
def test_short_work_quiet_work_and_files_show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    work(Console(), 0)
    work(Console(quiet=True), 0.2)
    assert not terminal.getvalue()
    monkeypatch.setattr("sys.stderr", file := io.StringIO())
    work(Console(), 0.2)
    assert not file.getvalue()


def test_an_error_in_the_work_still_wipes_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", Terminal())
    handlers = list(logging.getLogger("argosy").handlers)
    with pytest.raises(ValueError, match="x"), progress(Console(), "work"):
        raise ValueError("x")
    assert logging.getLogger("argosy").handlers == handlers


def test_tables_align() -> None:
    assert table([("a", 1), ("bbb", 22)], header=("name", "n"), right=(1,)) == ["name   n", "a      1", "bbb   22"]
    assert table([]) == []


def test_errors_are_indented_and_painted_only_on_terminals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    Console(quiet=True).error("two faults:\n  - one\n  - two", "do this")
    assert capsys.readouterr().err == "argosy: error: two faults:\n  - one\n  - two\n  do this\n"
    assert Painter(on=True)("x", "red", "bold") == "\x1b[31;1mx\x1b[0m"
    assert Painter(on=True)("", "red") == ""
