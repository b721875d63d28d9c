"""A case: a model with a value for each of its inputs. What reduction starts from, tries, and ends with."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

__all__ = ["Case"]


@dataclass(frozen=True, slots=True)
class Case:
    """A model whose weights are all in its message, and its inputs by name. Neither is changed once it is here."""

    model: onnx.ModelProto
    inputs: Mapping[str, Any]

    def digest(self) -> str:
        """The same for equal cases."""
        state = hashlib.sha256(self.model.SerializeToString(deterministic=True))
        for name, value in self.inputs.items():
            state.update(name.encode())
            _add(state, value)
        return state.hexdigest()


def _add(state: Any, value: Any) -> None:
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        state.update(f"{value.dtype}{value.shape}".encode())
        state.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
    elif isinstance(value, list):
        state.update(b"list")
        for item in value:
            _add(state, item)
    else:
        state.update(pickle.dumps(value))
