"""What a tensor of the runtime's own is, wherever it lies: checks of inputs know it, and arrays of a device are it."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["DenseArray"]


class DenseArray:
    """A dense tensor that the runtime itself made, on some device: its `dtype` and `shape` are as numpy's."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
