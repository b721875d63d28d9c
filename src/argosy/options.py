"""Options as frozen values, and the only place that reads the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from argosy.errors import UsageError

__all__ = [
    "ACCURACIES",
    "MODES",
    "PRECISIONS",
    "STAGES",
    "CompileOptions",
    "DimRequest",
    "DimValue",
    "Dimensions",
    "cache_folder",
    "plain_environment",
    "rocm_folder",
    "wants_colour",
]

PRECISIONS: Final = ("fp32", "fp16", "bf16")
ACCURACIES: Final = ("exact", "standard", "relaxed")
MODES: Final = ("eager", "balanced", "max")
STAGES: Final = ("memory", "copies", "in_place", "load", "cache")
"""Parts of a compile that can be left out: buffers that share memory, joins without copies, results in the place of an
operand, work done at load, compiled kernels of before."""
_WITHOUT: Final = "without"
_PARTS: Final = ("pass", "rule", "solution", "stage")

DimValue: TypeAlias = int | str | Sequence[int] | range
"""What may be asked of a dim in Python: 4, "4", "1,8,32", (1, 8, 32), "1..512" or range(1, 513)."""


@dataclass(frozen=True, slots=True)
class DimRequest:
    """What is asked of one symbolic dim: one value binds it, several specialise it, else bounds limit it."""

    name: str
    values: tuple[int, ...] = ()
    lower: int = 0
    upper: int | None = None

    @staticmethod
    def of(name: str, value: DimValue) -> DimRequest:
        """The request `name=value`; raises UsageError for anything that is no size."""
        if isinstance(value, str):
            return DimRequest._parse(name, value)
        if isinstance(value, range) and value.step == 1 and len(value):
            return DimRequest(name, (), value.start, value.stop - 1)
        values = (value,) if isinstance(value, int) else tuple(value)
        if not values or any(not isinstance(item, int) or isinstance(item, bool) or item < 0 for item in values):
            raise UsageError(f"the dim {name!r} is asked to be {value!r}", hint="give a size, several sizes or a range")
        return DimRequest(name, values)

    @staticmethod
    def _parse(name: str, text: str) -> DimRequest:
        low, dots, high = text.partition("..")
        parts = [low, high] if dots else text.split(",")
        if not all(part.strip().isdigit() for part in parts):
            raise UsageError(f"the dim {name!r} is asked to be {text!r}", hint="forms: N=4, N=1,8,32, N=1..512")
        numbers = tuple(int(part) for part in parts)
        if not dots:
            return DimRequest(name, numbers)
        if numbers[0] > numbers[1]:
            raise UsageError(f"the range {text!r} of the dim {name!r} is empty")
        return DimRequest(name, (), *numbers)

    @property
    def binds(self) -> bool:
        """True where the dim is to have one value."""
        return len(self.values) == 1


@dataclass(frozen=True, slots=True)
class Dimensions:
    """What is asked of the dims of a model's inputs.

    `dims` by symbol; `shapes` whole shapes by input name; `batch` the leading dim of every input where it
    is symbolic.
    """

    dims: tuple[DimRequest, ...] = ()
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    batch: int | None = None

    @staticmethod
    def of(dims: Mapping[str, DimValue] | Dimensions | None) -> Dimensions:
        """From the mapping that the Python interface takes."""
        if dims is None:
            return Dimensions()
        if isinstance(dims, Dimensions):
            return dims
        return Dimensions(tuple(DimRequest.of(name, value) for name, value in dims.items()))

    @property
    def specialised(self) -> tuple[DimRequest, ...]:
        """The dims for which several sizes get code of their own."""
        return tuple(request for request in self.dims if len(request.values) > 1)

    @property
    def unbound(self) -> Dimensions:
        """What is asked of the dims that stay symbolic."""
        return Dimensions(tuple(request for request in self.dims if not request.binds))


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Everything that a compile may be asked, but for the targets. See `argosy compile --help` for each.

    `without` are parts of the compiler to leave out, as `pass:NAME`, `rule:NAME`, `solution:NAME` or `stage:NAME`.
    `reproducers` says whether a failure of the compiler leaves a folder that shows it again.
    """

    precision: str = "fp32"
    dims: Dimensions = field(default_factory=Dimensions)
    strict: bool = False
    accuracy: str = "standard"
    allow_tf32: bool = False
    fast_math: bool = False
    mode: str = "balanced"
    slim: bool = False
    debug: bool = False
    jobs: int | None = None
    without: tuple[str, ...] = ()
    reproducers: bool = True

    def __post_init__(self) -> None:
        for part in self.without:
            kind, colon, name = part.partition(":")
            if not colon or kind not in _PARTS or not name:
                raise UsageError(
                    f"without is {part!r}, which is no part of the compiler",
                    hint=f"forms: {', '.join(f'{known}:NAME' for known in _PARTS)}",
                )
        object.__setattr__(self, "without", tuple(sorted(set(self.without))))
        for name, value, allowed in (
            ("precision", self.precision, PRECISIONS),
            ("accuracy", self.accuracy, ACCURACIES),
            ("mode", self.mode, MODES),
        ):
            if value not in allowed:
                raise UsageError(f"{name} is {value!r}, expected one of {', '.join(allowed)}")
        if self.jobs is not None and self.jobs < 1:
            raise UsageError(f"jobs is {self.jobs}, expected at least 1")

    def leaves_out(self, kind: str) -> frozenset[str]:
        """Names of the passes, rules, solutions or stages to leave out."""
        pairs = (part.split(":", 1) for part in self.without)
        return frozenset(name for part, name in pairs if part == kind)

    def numeric(self) -> dict[str, bool | int | str]:
        """The options that change numbers: part of a variant's key. `of_numeric` reads them again."""
        told: dict[str, bool | int | str] = {
            "precision": self.precision,
            "accuracy": self.accuracy,
            "allow_tf32": self.allow_tf32,
            "fast_math": self.fast_math,
        }
        return told | ({_WITHOUT: ", ".join(self.without)} if self.without else {})

    @staticmethod
    def of_numeric(numeric: Mapping[str, Any], **others: Any) -> CompileOptions:
        """The options that a variant was compiled with, and `others`. Raises UsageError for names that are unknown."""
        told = dict(numeric)
        left_out = str(told.pop(_WITHOUT, ""))
        unknown = sorted(told.keys() - CompileOptions().numeric().keys())
        if unknown:
            raise UsageError(f"options that this version does not have: {', '.join(unknown)}")
        return CompileOptions(**told, **others, without=tuple(left_out.split(", ")) if left_out else ())


def cache_folder() -> Path:
    """Where compiled kernels and reproducers are kept: ARGOSY_CACHE, else the user's cache folder."""
    named = os.environ.get("ARGOSY_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "argosy"


def plain_environment() -> dict[str, str]:
    """The environment for another Python, without what would change which packages it finds or where it puts them."""
    changing = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_PYTHON")
    return {name: value for name, value in os.environ.items() if name not in changing}


def rocm_folder() -> str:
    """Where ROCm is, by ROCM_PATH; empty where that is not set."""
    return os.environ.get("ROCM_PATH", "")


def wants_colour(*, terminal: bool) -> bool:
    """Whether to colour text: NO_COLOR turns it off, FORCE_COLOR on; else only a terminal gets it."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (terminal and os.environ.get("TERM") != "dumb")
