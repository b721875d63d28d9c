"""A family of built models: one builder, sizes as a frozen record, presets."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import onnx
from numpy.typing import NDArray

from benchmarks.models.inputs import Input, make_feeds

__all__ = ["Family", "Preset", "serialize"]


@dataclass(frozen=True, slots=True)
class Preset:
    """A named choice of sizes of a family.

    `large` presets are built by `make nightly` only. `sizes` are bindings of the symbolic dims that tests use.
    """

    name: str
    large: bool
    choice: Any
    sizes: tuple[Mapping[str, int], ...]


@dataclass(frozen=True, slots=True)
class Family:
    """`build` makes a model from a record of sizes, `inputs` says what to run it with."""

    what: str
    build: Callable[[Any], onnx.ModelProto]
    inputs: Callable[[Any], tuple[Input, ...]]
    presets: tuple[Preset, ...]

    def preset(self, name: str) -> Preset:
        """The preset of that name; KeyError if there is none."""
        return {preset.name: preset for preset in self.presets}[name]

    def make(self, name: str, **changes: Any) -> onnx.ModelProto:
        """The model of a preset, with some sizes changed."""
        return self.build(dataclasses.replace(self.preset(name).choice, **changes))

    def feeds(self, name: str, sizes: Mapping[str, int] | None = None, seed: int = 0) -> dict[str, NDArray[Any]]:
        """Inputs for the model of a preset, dims bound by `sizes` (default: the first of the preset)."""
        preset = self.preset(name)
        return make_feeds(self.inputs(preset.choice), preset.sizes[0] if sizes is None else sizes, seed)


def serialize(model: onnx.ModelProto) -> tuple[bytes, str]:
    """The model's bytes, the same on any machine, and their sha256."""
    content = model.SerializeToString(deterministic=True)
    return content, hashlib.sha256(content).hexdigest()
