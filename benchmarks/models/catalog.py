"""Every built model by its name."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
from numpy.typing import NDArray

from benchmarks.models import bert, branches, decoder, light, lstm, mobilenet, resnet, vit
from benchmarks.models.family import Family, Preset

__all__ = ["LOCK", "feeds", "find", "locked", "make", "presets"]

LOCK = Path(__file__).with_name("models.lock.json")
FAMILIES: tuple[Family, ...] = tuple(
    module.FAMILY for module in (resnet, mobilenet, bert, vit, lstm, decoder, branches, light)
)


def presets() -> list[tuple[Family, Preset]]:
    """Every preset with its family."""
    return [(family, preset) for family in FAMILIES for preset in family.presets]


def find(name: str) -> tuple[Family, Preset]:
    """The preset of that name and its family; KeyError with the nearest name if there is none."""
    known = {preset.name: (family, preset) for family, preset in presets()}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, list(known), n=1)
    raise KeyError(f"no model named {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))


def make(name: str, **changes: Any) -> onnx.ModelProto:
    """Build a model, with some sizes changed."""
    return find(name)[0].make(name, **changes)


def feeds(name: str, sizes: Mapping[str, int] | None = None, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Inputs for a model at its own sizes, symbolic dims bound by `sizes`."""
    return find(name)[0].feeds(name, sizes, seed)


def locked() -> dict[str, str]:
    """The sha256 that each model must have."""
    hashes: dict[str, str] = json.loads(LOCK.read_text(encoding="utf-8"))
    return hashes
