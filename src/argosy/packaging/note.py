"""What a wheel says that it is of: `argosy.json` in its `.dist-info`."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

__all__ = ["NOTE_ENCODER", "Note", "Role"]

Role: TypeAlias = Literal["host", "weights", "device"]


class Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The model's name and full version, and what part of it the wheel holds.

    host: the program; `archs` are those that there is code for, `shares` counts the wheels of weights · weights: one of
    these · device: the code for the one arch in `archs`.
    """

    package: str
    version: str
    role: Role
    archs: tuple[str, ...] = ()
    shares: int = 0
    schema: int = 1


NOTE_ENCODER: Final = msgspec.json.Encoder(order="sorted")
