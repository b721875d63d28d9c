"""Measuring: the outputs of an artifact against its own program in float64. Needs numpy and the base package alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

import argosy
from argosy.artifact.manifest import VariantRecord
from argosy.inputs import generate
from argosy.ir.dim import evaluate
from argosy.ir.dtype import dtype_of
from argosy.ir.types import TensorType, Type
from argosy.verification.tolerance import spacing
from argosy.verification.widened import WideReference, rounded

__all__ = ["Figure", "Packed", "Results", "measure"]

_SEEDS: Final = 3
_LEAST: Final = 1e-3


class Packed(msgspec.Struct, frozen=True):
    """A family in an element type, ready to run: the file with its code, or why there is none."""

    family: str
    element: str
    file: str
    ranges: Mapping[str, tuple[float, float]] = {}
    pointwise: bool = False
    reason: str = ""


class Figure(msgspec.Struct, frozen=True):
    """The largest error of a family in an element type, over all elements and seeds.

    `ulp` is in units of the last place of the element type at the true value; of sums, where terms cancel, elements of
    at least a thousandth of the largest magnitude count. `share` is the error over that magnitude. `reason` says why
    there is neither.
    """

    family: str
    element: str
    ulp: float = 0.0
    share: float = 0.0
    reason: str = ""


class Results(msgspec.Struct, frozen=True):
    """The figures of one device, what it is, and the versions that were used."""

    device: str
    arch: str
    versions: Mapping[str, str]
    figures: Sequence[Figure]
    gpu: str = ""


def measure(packed: Packed, source: Any, device: str) -> tuple[Figure, VariantRecord | None]:
    """The largest errors of an artifact on a device, over some seeds, and the variant that ran (None for `ref`)."""
    artifact = source if isinstance(source, argosy.Artifact) else argosy.Artifact.open(source)
    session = argosy.Session(artifact, device=device)
    program = artifact.program()
    reference = WideReference(program)
    ulp = share = 0.0
    variant = None
    for seed in range(_SEEDS):
        inputs = {}
        for name, kind in program.inputs.items():
            inputs[name] = generate(name, kind, sizes_of(kind), seed=seed, bounds=packed.ranges.get(name))
        variant = session.choice(inputs).variant
        found, exact = session.run(inputs), reference.answer(inputs, seed)
        expected = rounded(exact, program.outputs)
        for name, truth in exact.items():
            if not (_finite(expected[name]) and _finite(found[name])):
                return Figure(packed.family, packed.element, reason=f"seed {seed}: a number is not finite"), variant
            error = np.abs(found[name].astype(np.float64) - truth)
            largest = np.abs(truth).max()
            units = error / spacing(truth, dtype_of(found[name].dtype))
            ulp = max(ulp, float(units[np.abs(truth) >= (0 if packed.pointwise else _LEAST * largest)].max()))
            share = max(share, float(error.max() / largest))
    return Figure(packed.family, packed.element, ulp, share), variant


def sizes_of(kind: Type) -> list[int]:
    """The sizes of a tensor type that has no symbols."""
    dims = kind.shape if isinstance(kind, TensorType) else ()
    return [evaluate(dim, {}) for dim in dims]


def _finite(values: Any) -> bool:
    """Whether all numbers are finite: the ranges are such that they should be."""
    return bool(np.isfinite(values.astype(np.float64)).all())
