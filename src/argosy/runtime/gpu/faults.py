"""What kernels report when they can't go on: a word for each launch that may, read when a run ends.

A kernel goes on with what is safe, and puts into its word the maximum of it and of what it met. The words are zero
between runs. They lie in the host's memory where kernels reach it, so that a run without a fault moves nothing; else it
costs one small copy. Of several faults the first in the plan's order counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from argosy.artifact.plan import HiddenArgument, LaunchStep
from argosy.errors import DeviceError
from argosy.runtime.gpu.device import Device
from argosy.runtime.memory import address_of

__all__ = ["FaultWords", "first_fault", "may_fail"]

_BITS: Final = 56


def may_fail(step: LaunchStep) -> bool:
    """Whether a launch has a fault word."""
    return any(isinstance(argument, HiddenArgument) and argument.name == "fault" for argument in step.arguments)


class FaultWords:
    """The words of one workspace. `steps` are the launches that may fail, in the order of the plan."""

    def __init__(self, device: Device, steps: Sequence[LaunchStep], stream: int) -> None:
        self.steps = steps
        self._places = {id(step): place for place, step in enumerate(steps)}
        self._device = device
        self._held = np.zeros(0, np.int64)
        self._own = 0
        """The device's own words, where it has some."""
        if steps:
            self._held = device.allocate_host(8 * len(steps)).view(np.int64)
            self._held[:] = 0
            if not device.reaches_host:
                try:
                    self._own = device.allocate(self._held.nbytes)
                except DeviceError:
                    device.free_host(self._held.view(np.uint8))
                    raise
                device.fill(self._own, self._held.nbytes, stream)
        self._address = self._own or address_of(self._held)
        self._none = bytes(self._held.nbytes)

    def address(self, step: LaunchStep) -> int:
        """Where the word of a launch is."""
        return self._address + 8 * self._places[id(step)]

    def fetch(self, stream: int) -> None:
        """Ask for the words; they are there when the stream is synchronised."""
        if self._own:
            self._device.download(self._held.view(np.uint8), self._own, stream)

    def take(self, stream: int) -> tuple[LaunchStep, int, int] | None:
        """The first fault of what was fetched: the launch, the code and the number that it tells; then all are zero."""
        found = None if self._held.tobytes() == self._none else first_fault(self._held)
        if found is None:
            return None
        self.clear(stream)
        place, code, value = found
        return self.steps[place], code, value

    def clear(self, stream: int) -> None:
        """Forget what was reported: launches that are done again alone may read what is no input any more."""
        if self._own:
            self._device.fill(self._own, self._held.nbytes, stream)
        self._held[:] = 0

    def end(self) -> None:
        """Give the memory back."""
        if self._own:
            self._device.free(self._own)
        if self.steps:
            self._device.free_host(self._held.view(np.uint8))


def first_fault(words: Iterable[int]) -> tuple[int, int, int] | None:
    """The first word that is not zero: its place, its code, its number."""
    for place, word in enumerate(map(int, words)):
        if word:
            value = word & ((1 << _BITS) - 1)
            return place, word >> _BITS, value - (1 << _BITS) if value >> (_BITS - 1) else value
    return None
