"""Families of variants with code for GPUs."""

from __future__ import annotations

from typing import Final

__all__ = ["GPU_FAMILIES"]

GPU_FAMILIES: Final = {"nvidia": "cuda", "amd": "hip"}
"""The device that runs each family."""
