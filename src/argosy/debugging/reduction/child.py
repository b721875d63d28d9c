"""Runs work in a process of its own under a time limit, so that what crashes or hangs there does so alone."""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from argosy.debugging.reduction.outcome import Outcome

__all__ = ["in_child"]


def in_child(work: Callable[[], Outcome], seconds: float, *, fresh: bool) -> Outcome:
    """The outcome of `work`, or that its process crashed or hung. Raises what it raises.

    The child is a fork of this process, unless it has to be `fresh`, as drivers of GPUs don't survive a fork.
    """
    forks = "fork" in multiprocessing.get_all_start_methods() and not fresh
    context: Any = multiprocessing.get_context("fork" if forks else "spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, work), daemon=False)
    process.start()
    theirs.close()
    try:
        if not ours.poll(seconds):
            return Outcome("hang", f"it takes over {seconds:g} seconds", spoils=True)
        try:
            answer = ours.recv()
        except EOFError:
            process.join()
            return _crash(process.exitcode)
    finally:
        _end(process)
        ours.close()
    if isinstance(answer, Exception):
        raise answer
    found: Outcome = answer
    return found


def _work(connection: Connection, work: Callable[[], Outcome]) -> None:
    if hasattr(os, "setsid"):
        os.setsid()  # so that its own children end with it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    faulthandler.disable()
    silent = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silent, stream)
    try:
        answer: Outcome | Exception = work()
    except Exception as error:  # noqa: BLE001 - the parent raises it
        answer = error
    connection.send(answer)


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


def _end(process: Any) -> None:
    _end_group(process.pid)
    process.kill()
    process.join()


def _end_group(number: int) -> None:
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(number, signal.SIGKILL)
