"""All planted faults."""

from __future__ import annotations

from typing import Final

from tests.debugging.faults import bodies, emulated, imports, passes, rules, solutions, stages
from tests.debugging.faults.fault import Fault

__all__ = ["FAULTS"]

FAULTS: Final[tuple[Fault, ...]] = (
    *rules.FAULTS,
    *passes.FAULTS,
    *solutions.FAULTS,
    *stages.FAULTS,
    *imports.FAULTS,
    *emulated.FAULTS,
    *bodies.FAULTS,
)
