"""The worker threads of this process, shared by all sessions.

Workers are Python threads that enter a shared object and stay there: they hold no lock of the interpreter, spin for a
moment when there is nothing to do, then sleep. How chunks are handed out is in `host_runtime.c`. A forked child has no
threads but the one that forked; it starts workers of its own at its first run.
"""

from __future__ import annotations

import threading
import time
from typing import Final, Protocol

from argosy.runtime.forking import survive_forks
from argosy.runtime.memory import Bytes, address_of, aligned

__all__ = ["POOL", "WorkerPool", "Workers"]

_NAP: Final = 0.0005
"""Seconds between two looks of a worker that can't sleep by itself."""


class Workers(Protocol):
    """A shared object in which workers can live."""

    @property
    def pool_bytes(self) -> int:
        """Size of the state of a pool."""
        ...

    def work(self, pool: int, worker: int) -> int:
        """What a worker does; returns 0 when it is sent home, 1 when it should come again soon."""
        ...

    def stop(self, pool: int) -> None:
        """Send the workers home."""
        ...


class WorkerPool:
    """Starts workers as sessions ask for them. Its state, once made, stays where it is."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._home: Workers | None = None
        self._state: Bytes | None = None
        self._wanted = 1
        self._threads: list[threading.Thread] = []
        self.is_stale = False
        """Whether the workers are gone, because this is a forked child."""
        survive_forks(self)

    @property
    def workers(self) -> int:
        """Workers that are there, without the callers."""
        return len(self._threads)

    def join(self, home: Workers, threads: int) -> int:
        """Have at least `threads` workers, callers included; the address of the pool's state.

        The first object that joins is where the workers live; it is kept for good.
        """
        with self._lock:
            if self._home is None or self._state is None:
                self._home, self._state = home, aligned(home.pool_bytes)
            self._wanted = max(self._wanted, threads)
            self._start()
            return address_of(self._state)

    def revive(self) -> None:
        """Start the workers anew in a forked child."""
        with self._lock:
            if self.is_stale:
                if self._state is not None:
                    self._state[:] = 0  # what runs of other threads had published is nobody's now
                self._start()
                self.is_stale = False

    def after_fork(self) -> None:
        """See `Survivor`."""
        self._lock = threading.Lock()
        self._threads = []
        self.is_stale = True

    def stop(self) -> None:
        """Send the workers home and wait for them; the next session starts others."""
        with self._lock:
            if self._home is not None and self._state is not None and self._threads:
                self._home.stop(address_of(self._state))
                for thread in self._threads:
                    thread.join()
                self._threads = []
                self._wanted = 1
                self._state[:] = 0

    def _start(self) -> None:
        if self._home is None or self._state is None:
            return
        while len(self._threads) < self._wanted - 1:
            worker = len(self._threads) + 1
            thread = threading.Thread(
                target=_work,
                args=(self._home, address_of(self._state), worker),
                name=f"argosy-worker-{worker}",
                daemon=True,
            )
            self._threads.append(thread)
            thread.start()


def _work(home: Workers, pool: int, worker: int) -> None:
    while home.work(pool, worker):
        time.sleep(_NAP)


POOL: Final = WorkerPool()
"""The pool of this process."""
