"""The error of a kernel that can't be generated."""

from __future__ import annotations

__all__ = ["DeclinedError"]


class DeclinedError(Exception):
    """A kernel can't be generated; the message says why, and the caller falls back."""
