"""The passes of the CPU target, in named phases: its table of contents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.passes import NORMALISE
from argosy.passes.fuse_loops import FuseLoops
from argosy.passes.manager import Phase

__all__ = ["PIPELINE"]

PIPELINE: Final[Sequence[Phase]] = (
    NORMALISE,
    Phase("fuse", (FuseLoops(),)),
)
