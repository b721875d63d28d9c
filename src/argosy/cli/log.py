"""Logging for the time of one command: warnings and more to stderr, everything to the files that are named."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from argosy.errors import EnvironmentError_

__all__ = ["LEVELS", "logging_to"]

LEVELS: Final = {
    "none": logging.CRITICAL + 10,
    "error": logging.ERROR,
    "warn": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": logging.DEBUG - 5,
}
"""The names of `--log-level`, from silent to everything."""


class _Once(logging.Filter):
    """Lets the text of a warning pass once in a command."""

    def __init__(self) -> None:
        super().__init__()
        self._told: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is new, or no warning."""
        text = record.getMessage()
        new = record.levelno != logging.WARNING or text not in self._told
        self._told.add(text)
        return new


@contextlib.contextmanager
def logging_to(level: str, files: Sequence[str], *, extra: Sequence[logging.Handler] = ()) -> Iterator[logging.Logger]:
    """The logger of the package, with handlers that go again at the end.

    `level` is what stderr shows; files always get the debug level, or finer where asked. Raises
    EnvironmentError_ for a file that can't be written.
    """
    shown = LEVELS[level]
    stderr = logging.StreamHandler(sys.stderr)
    stderr.setLevel(shown)
    stderr.addFilter(_Once())
    stderr.setFormatter(logging.Formatter("argosy: %(message)s" if shown > logging.DEBUG else "%(name)s: %(message)s"))
    handlers: list[logging.Handler] = [stderr, *extra]
    for name in files:
        try:
            handler = logging.FileHandler(Path(name), encoding="utf-8")
        except OSError as error:
            raise EnvironmentError_(f"can't write the log: {error.strerror}", where=name) from None
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        handlers.append(handler)
    logger = logging.getLogger("argosy")
    before = logger.level, logger.propagate
    logger.setLevel(min(shown, logging.DEBUG if files else logging.INFO))
    logger.propagate = False
    for added in handlers:
        logger.addHandler(added)
    try:
        yield logger
    finally:
        for added in handlers:
            logger.removeHandler(added)
            added.close()
        logger.setLevel(before[0])
        logger.propagate = before[1]
