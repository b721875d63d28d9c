"""Families of variants with code for GPUs."""

from __future__ import annotations

from typing import Final

__all__ = ["EMULATED", "GPU_FAMILIES"]

GPU_FAMILIES: Final = {"nvidia": "cuda", "amd": "hip"}
"""The device that runs each family."""

EMULATED: Final = "emulated"
"""What `--device` calls a device of no GPU, of any arch whose code is emulated."""
