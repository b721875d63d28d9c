"""What stands for the device where a target was made for an arch by name: there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from argosy.errors import DeviceError

__all__ = ["CrossCompileContext"]


@dataclass(frozen=True, slots=True)
class CrossCompileContext:
    """The context of a cross-compile target: everything that a device would do raises DeviceError."""

    arch: str

    def copy_to(self, *_: object, **__: object) -> NoReturn:
        """Refused: copies to a device."""
        self._refuse("copy_to")

    def copy_from(self, *_: object, **__: object) -> NoReturn:
        """Refused: copies from a device."""
        self._refuse("copy_from")

    def allocate(self, *_: object, **__: object) -> NoReturn:
        """Refused: device memory."""
        self._refuse("allocate")

    def finish(self, *_: object, **__: object) -> NoReturn:
        """Refused: waits until a device has done all."""
        self._refuse("finish")

    def get_queue(self, *_: object, **__: object) -> NoReturn:
        """Refused: the stream of a device."""
        self._refuse("get_queue")

    def wait_for(self, *_: object, **__: object) -> NoReturn:
        """Refused: makes a device wait for a stream."""
        self._refuse("wait_for")

    def _refuse(self, name: str) -> NoReturn:
        raise DeviceError(
            f"{name} needs a device, and the target was made for {self.arch} by name, without one",
            hint="save the artifact; argosy.Session runs it on the real device, where it is loaded and finished",
        )
