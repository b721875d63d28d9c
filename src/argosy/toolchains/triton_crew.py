"""Processes that run Triton, for all threads and all archs of one compile.

Starting one takes half a second, so they are shared and live until the compile ends. Each serves one backend, and has
bounds on time and memory: generated text can make Triton fail, crash or hang; then the answer is the reason, and the
next job gets a new process.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from argosy.errors import EnvironmentError_
from argosy.host_cpu import usable_cores
from argosy.toolchains.process import Limits, bounded

__all__ = ["TritonCrew"]

T = TypeVar("T")

_MEMORY: Final = 8 << 30
"""Bytes that all workers together may take."""
_LEAST: Final = 1 << 30
"""Bytes of address space without which a worker does not get through large kernels."""
_SECONDS: Final = 120.0
_PER_KERNEL: Final = 5 << 20
"""Bytes of its bound for each kernel that a process makes before it ends: each leaves about 2 MB."""
_BACKENDS: Final = ("cuda", "hip")


class TritonCrew:
    """Processes, started when needed, of which up to `jobs` work at a time (default: usable cores; 8 at most).

    A context: its end ends them, at once where it ends by an exception. Safe to share between threads. `seconds` bound
    one job.
    """

    def __init__(self, jobs: int | None = None, seconds: float = _SECONDS) -> None:
        most = _MEMORY // _LEAST
        self.workers = min(jobs or usable_cores(), most)
        self.places = min(len(_BACKENDS) * self.workers, most)
        """How many processes there are at most, those that wait included."""
        self._limits = Limits(seconds, _MEMORY // self.places)
        self._threads = ThreadPoolExecutor(self.workers, thread_name_prefix="triton")
        self._idle: dict[str, list[_Worker]] = {backend: [] for backend in _BACKENDS}
        self._alive: set[_Worker] = set()
        self._started = 0
        self._is_stopped = False
        self._going: dict[str, Future[Any]] = {}
        self._lock = threading.Lock()
        self._folder = tempfile.TemporaryDirectory(prefix="argosy-")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            with self._lock:
                self._is_stopped = True
                for worker in self._alive:
                    worker.kill()
        self._threads.shutdown(cancel_futures=True)
        for worker in self._alive:
            worker.end()
        self._alive.clear()
        self._folder.cleanup()

    def start(self, key: str, work: Callable[[], T]) -> Future[T]:
        """Do work in one of the crew's threads, in the order of these calls; what goes on under a key is done once."""
        with self._lock:
            going = self._going.get(key)
            if going is None:
                going = self._going[key] = self._threads.submit(self._done, key, work)
            return going

    def _done(self, key: str, work: Callable[[], T]) -> T:
        try:
            return work()
        finally:
            with self._lock:
                del self._going[key]

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """The answer of an idle process, or a new one, to a job (see `triton_worker`); for work of `start`.

        Raises EnvironmentError_ where no process can be started.
        """
        worker = self._worker(job["backend"])
        answer, lives = worker.ask(job)
        if not lives and worker.answered and not worker.is_late and not self._is_stopped:
            # What went before may be why it died, and an answer must not depend on that.
            self._forget(worker)
            worker = self._new_worker()
            answer, lives = worker.ask(job)
        if lives:
            worker.answered += 1
        if lives and worker.answered < self._limits.memory // _PER_KERNEL:
            with self._lock:
                self._idle[job["backend"]].append(worker)
        else:
            self._forget(worker)
        return answer

    def _worker(self, backend: str) -> _Worker:
        """An idle process of a backend, or a new one: in the place of an idle one of another where there are enough."""
        other: _Worker | None = None
        with self._lock:
            if self._idle[backend]:
                return self._idle[backend].pop()
            if len(self._alive) >= self.places:
                other = next(waiting for waiting in self._idle.values() if waiting).pop(0)
        if other is not None:
            self._forget(other)
        return self._new_worker()

    def _forget(self, worker: _Worker) -> None:
        with self._lock:
            self._alive.discard(worker)
        worker.end()

    def _new_worker(self) -> _Worker:
        with self._lock:
            self._started += 1
            folder = Path(self._folder.name, str(self._started))
        folder.mkdir()
        worker = _Worker(folder, self._limits)
        with self._lock:
            self._alive.add(worker)
        return worker


class _Worker:
    """A process that runs Triton."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.answered = 0
        self.is_late = False
        """Whether it was stopped because its time was over."""
        self._limits = limits
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        command = (sys.executable, "-m", "argosy.toolchains.triton_worker")
        try:
            self._process = subprocess.Popen(  # noqa: S603 - a list of words
                [*bounded(limits.memory), *command],
                env=_environment(folder),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,
            )
        except OSError as error:
            raise EnvironmentError_(f"can't be started: {error.strerror or error}", where=sys.executable) from error

    def ask(self, job: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """The answer to a job, and whether the process lives on."""

        def stop() -> None:
            self.is_late = True
            self.kill()

        timer = threading.Timer(self._limits.seconds, stop)
        timer.start()
        line = b""
        try:
            # A worker that died breaks the pipe.
            with contextlib.suppress(OSError):
                self._stdin.write(json.dumps(job).encode() + b"\n")
                self._stdin.flush()
                line = self._stdout.readline()
        finally:
            timer.cancel()
        if line.endswith(b"\n"):
            answer: dict[str, Any] = json.loads(line)
            return answer, True
        self.kill()
        status = self._process.wait()
        return {"error": self._end(status)}, False

    def end(self) -> None:
        """Let the process end."""
        with contextlib.suppress(OSError):  # it may have died
            self._stdin.close()
        self._process.wait()
        self._stdout.close()
        self._errors.close()

    @property
    def _stdin(self) -> Any:
        return self._process.stdin

    @property
    def _stdout(self) -> Any:
        return self._process.stdout

    def _end(self, status: int) -> str:
        if self.is_late:
            return f"Triton took more than {self._limits.seconds:.0f} s and was stopped"
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(self._errors.tell() - 2000, 0))
        words = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        return f"Triton {how}{': ' + words[-1] if words else ''}"

    def kill(self) -> None:
        """Kill the process with all that it has started."""
        with contextlib.suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()


def _environment(folder: Path) -> dict[str, str]:
    """All that a worker sees of the environment: where Python finds its modules, and folders of its own."""
    return {
        "PATH": os.defpath,
        "HOME": str(folder),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TRITON_CACHE_DIR": str(folder / "triton"),
        "TRITON_DISABLE_LINE_INFO": "1",
    }
