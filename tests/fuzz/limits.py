"""Limits of processor time and memory for what runs in a child."""

from __future__ import annotations

import contextlib
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

__all__ = ["MEMORY", "TooLongError", "catch_timer", "memory_limit", "timer"]

MEMORY: Final = 1 << 30
"""Bytes that a child may have beyond what it starts with."""


class TooLongError(BaseException):
    """Raised by the timer; no `except Exception` holds it up."""


def catch_timer() -> None:
    """Let the timer raise TooLongError."""

    def expire(number: int, frame: Any) -> None:
        raise TooLongError

    signal.signal(signal.SIGPROF, expire)


@contextlib.contextmanager
def timer(seconds: float) -> Iterator[None]:
    """Interrupt what takes more processor time."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


@contextlib.contextmanager
def memory_limit() -> Iterator[None]:
    """Let this process have `MEMORY` more bytes than now; children that it starts meanwhile too."""
    before, most = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, most))
