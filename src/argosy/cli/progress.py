"""Tells what is going on when work takes over a second: one line on stderr, and only where that is a terminal."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Iterator
from typing import Final

from argosy.cli.console import Console

__all__ = ["progress"]

_PATIENCE: Final = 1.0
_INTERVAL: Final = 0.2
_ERASE: Final = "\r\x1b[2K"


class _Latest(logging.Handler):
    """Keeps the last message of the package's log: what is being done."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()


@contextlib.contextmanager
def progress(console: Console, what: str) -> Iterator[None]:
    """Show `what` and the seconds gone while the block runs, once it has run for a second."""
    if console.quiet or not sys.stderr.isatty():
        yield
        return
    latest = _Latest()
    logger = logging.getLogger("argosy")
    logger.addHandler(latest)
    done = threading.Event()
    thread = threading.Thread(target=_show, args=(what, latest, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        logger.removeHandler(latest)


def _show(what: str, latest: _Latest, done: threading.Event) -> None:
    begin = time.monotonic()
    if done.wait(_PATIENCE):
        return
    while not done.wait(_INTERVAL):
        detail = f": {latest.text}" if latest.text else ""
        sys.stderr.write(f"{_ERASE}{what}, {time.monotonic() - begin:.0f} s{detail}"[:100])
        sys.stderr.flush()
    sys.stderr.write(_ERASE)
    sys.stderr.flush()
