"""Runs work in a process of its own under a time limit, so that what crashes or hangs there does so alone."""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, Self, TypeVar

from argosy.debugging.reduction.outcome import Outcome

__all__ = ["Child", "EndedError"]

T = TypeVar("T")


class EndedError(Exception):
    """A child crashed, or was ended as it took too long: `outcome` says which."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.told)
        self.outcome = outcome


class Child:
    """A process that works on one thing after another, and makes place for the next one where it crashes or hangs.

    It is a fork of this process, unless it has to be `fresh`, as drivers of GPUs don't survive a fork. Each piece of
    work may take `seconds`; it goes there and its answer comes back pickled.
    """

    def __init__(self, seconds: float, *, fresh: bool = False) -> None:
        forks = "fork" in multiprocessing.get_all_start_methods() and not fresh
        self._context: Any = multiprocessing.get_context("fork" if forks else "spawn")
        self._seconds = seconds
        self._process: Any = None
        self._connection: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def run(self, work: Callable[[], T]) -> T:
        """What `work` gives, or raises. Raises EndedError where it crashes or hangs."""
        if self._process is None:
            self._start()
        try:
            self._connection.send(work)
            if not wait([self._connection, self._process.sentinel], self._seconds):
                self.end()
                raise EndedError(Outcome("hang", f"it takes over {self._seconds:g} seconds", spoils=True))
            answer = self._connection.recv() if self._connection.poll() else None
        except (EOFError, ConnectionError):
            answer = None
        if answer is None:
            self._process.join()
            code = self._process.exitcode
            self.end()
            raise EndedError(_crash(code))
        (found,) = answer
        if isinstance(found, Exception):
            raise found
        return found

    def end(self) -> None:
        """End the process, with all that it has started; the next work gets a new one."""
        if self._process is None:
            return
        _end_group(self._process.pid)
        self._process.kill()
        self._process.join()
        self._connection.close()
        self._process = self._connection = None

    def _start(self) -> None:
        self._connection, theirs = self._context.Pipe()
        self._process = self._context.Process(target=_serve, args=(theirs,), daemon=False)
        self._process.start()
        theirs.close()


def _serve(connection: Connection) -> None:
    if hasattr(os, "setsid"):
        os.setsid()  # so that its own children end with it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    faulthandler.disable()
    logging.disable(logging.CRITICAL)  # what is said of models that nobody wrote
    silent = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silent, stream)
    while True:
        work = connection.recv()
        try:
            answer = work()
        except Exception as error:  # noqa: BLE001 - the parent raises it
            answer = _carried(error)
        connection.send((answer,))


def _carried(error: Exception) -> Exception:
    """The error, or where it can't go through a pipe another one that says the same."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    except Exception:  # noqa: BLE001 - whatever its class does
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _end_with_parent() -> None:
    """End this process and its children when the parent does, however that happens: nobody else ends what hangs."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        _end_group(os.getpid())
        os._exit(1)


def _crash(code: int) -> Outcome:
    if code >= 0:
        return Outcome("crash", f"the process ended with exit code {code}", frozenset({str(code)}), spoils=True)
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return Outcome("crash", f"the process was ended by {name}", frozenset({name}), spoils=True)


def _end_group(number: int) -> None:
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(number, signal.SIGKILL)
