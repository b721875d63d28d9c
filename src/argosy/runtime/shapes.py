"""The shape program of a plan: what gives symbols their values when a run begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy.artifact.plan import CheckDim, ComputeDim, InputDim, PlanRecord
from argosy.errors import ArtifactError
from argosy.ir.op import Env
from argosy.runtime.buffers import Sizes

__all__ = ["bind_shapes"]


def bind_shapes(plan: PlanRecord, arguments: Sequence[Any], env: Env, sizes: Sizes) -> None:
    """Give the symbols of `env` their values. Raises ArtifactError where a size is not what the plan needs."""
    for entry in plan.shapes:
        match entry:
            case InputDim():
                env.symbols[entry.symbol] = np.shape(arguments[entry.input])[entry.axis]
            case ComputeDim():
                env.symbols[entry.symbol] = sizes.number(entry.size, env.symbols)
            case CheckDim():
                size = np.shape(arguments[entry.input])[entry.axis]
                if size != sizes.number(entry.size, env.symbols):
                    raise ArtifactError(
                        f"axis {entry.axis} must be {entry.size}, found {size}", where=plan.inputs[entry.input].name
                    )
