"""Runs a tool: without an inherited environment, and with bounds on the time and memory that it may take.

A compiler fed with generated text can hang or eat all memory; then the tool dies, and the compile goes on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from argosy.errors import EnvironmentError_

__all__ = ["DEFAULT_LIMITS", "Finished", "Limits", "bounded", "run_tool"]

_SHELL: Final = Path("/bin/sh")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run of a tool may take: seconds of wall time, bytes of memory."""

    seconds: float = 300.0
    memory: int = 4 << 30


DEFAULT_LIMITS: Final = Limits()


@dataclass(frozen=True, slots=True)
class Finished:
    """How a tool ended: its exit status (negative: killed by that signal) and what it wrote to standard error.

    `timed_out` is true where it was stopped because its time was over.
    """

    status: int
    errors: str
    timed_out: bool = False

    @property
    def reason(self) -> str:
        """The end in words, for a tool that failed."""
        if self.timed_out:
            return "it took too long and was stopped"
        if self.status == -signal.SIGKILL:
            return "it was killed, by somebody or because memory ran out (fewer --jobs need less)"
        if self.status < 0:
            return f"it was killed by signal {-self.status}"
        return f"it ended with status {self.status}"


def run_tool(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str], limits: Limits = DEFAULT_LIMITS
) -> Finished:
    """Run `command` in `folder` with exactly this environment, and wait for its end.

    Raises EnvironmentError_ where it can't be started.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - a list of words
            [*bounded(limits.memory), *command],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise EnvironmentError_(f"can't be started: {error.strerror or error}", where=command[0]) from error
    with process:
        try:
            errors = process.communicate(timeout=limits.seconds)[1]
        except BaseException as ended:
            _kill(process)
            if not isinstance(ended, subprocess.TimeoutExpired):
                raise
            return Finished(process.wait(), "", timed_out=True)
    return Finished(process.returncode, errors.decode("utf-8", "replace"))


def bounded(memory: int) -> tuple[str, ...]:
    """What to put before a command so that it and all that it starts have a bound on their address space.

    A shell sets it: a limit set from here would come after the tool's first children, or need Python code in a fork
    of a process with threads. Without a shell there is no bound.
    """
    if not _SHELL.is_file():
        return ()
    return (str(_SHELL), "-c", 'ulimit -v "$0"; exec "$@"', str(memory // 1024))


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a tool with all that it has started."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
