"""Runs a tool: no shell, no inherited environment, and bounds on the time and memory that it may take.

A compiler fed with generated text can hang or eat all memory; then the tool dies, and the compile goes on.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from argosy.errors import EnvironmentError_

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

__all__ = ["DEFAULT_LIMITS", "Finished", "Limits", "run_tool"]


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
        process = subprocess.Popen(  # noqa: S603 - a list of words, no shell
            list(command),
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise EnvironmentError_(f"can't be started: {error.strerror or error}", where=command[0]) from error
    with process:
        _limit_memory(process.pid, limits.memory)
        try:
            errors = process.communicate(timeout=limits.seconds)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return Finished(process.returncode, "", timed_out=True)
        except BaseException:
            process.kill()
            raise
    return Finished(process.returncode, errors.decode("utf-8", "replace"))


def _limit_memory(pid: int, size: int) -> None:
    """Bound the address space of a process that was just started; where the system can't, it has no bound."""
    prlimit = getattr(resource, "prlimit", None)
    if prlimit is not None:
        with contextlib.suppress(OSError, ValueError):  # it may have ended already
            prlimit(pid, resource.RLIMIT_AS, (size, size))
