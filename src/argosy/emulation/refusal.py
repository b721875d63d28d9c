"""What the emulator does not know: never taken for success."""

from __future__ import annotations

from argosy.errors import DeviceError

__all__ = ["NotEmulated"]


class NotEmulated(DeviceError):  # noqa: N818 - it is a refusal, no mistake of ours
    """An instruction, a modifier or a mode that is not emulated. `what` completes "… is not emulated"."""

    def __init__(self, what: str, where: str = "") -> None:
        super().__init__(
            f"{what} is not emulated",
            where=where,
            hint="run it on a device, or choose another arch; docs/emulation.md lists what is emulated",
        )
        self.what = what
