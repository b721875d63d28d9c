"""Where the model itself makes large errors of small ones, so that results in a run tell nothing of the code.

A value beside the edge of a quantisation step falls on either side by the last bit of a sum; the step is a unit, and
what follows may make more of it. So may a difference of two near numbers. Two right computations, which round in other
places, are far apart there. How far is seen by two that are at hand: ref, in the types of the model, and ref64.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from argosy.ir.module import Value
from argosy.verification.cutting import Truth
from argosy.verification.measure import measure
from argosy.verification.report import InstructionReport

__all__ = ["Conditioning"]

_AS_FAR: Final = 4.0
"""How many times as far from what is expected as ref is from ref64 a result may be, to be no worse than ref.

In smart-turn 3.2, of whose 452 results 197 break the rule in the run, it is 1.5 times at most.
"""


class Conditioning:
    """How far the two references are apart, in each value of a run."""

    def __init__(self, truth: Truth) -> None:
        arguments = [truth.values[parameter.result()] for parameter in truth.module.parameters]
        other = Truth.of(truth.module, arguments, truth.number, wide=not truth.is_wide)
        self._plain, self._wide = (other, truth) if truth.is_wide else (truth, other)

    def judged(self, report: InstructionReport, values: Mapping[str, Value]) -> InstructionReport:
        """The report of an instruction with these results, in which the model has the mismatches that are its own."""
        found = {difference.name: difference.largest for difference in report.accumulated}
        inherent = tuple(
            mismatch
            for mismatch in report.accumulated_mismatches
            if found.get(mismatch.output, math.inf) <= _AS_FAR * self._apart(values[mismatch.output])
        )
        kept = tuple(mismatch for mismatch in report.accumulated_mismatches if mismatch not in inherent)
        return replace(report, accumulated_mismatches=kept, inherent=inherent)

    def _apart(self, value: Value) -> float:
        """The largest difference of the two in a value; 0 where they don't have it in the same shape."""
        exact = self._wide.values[value]
        differences = measure({"": exact}, {"": self._plain.values[value]}, {"": (self._wide.exact or {})[value]})
        return max((difference.largest for difference in differences), default=0.0)
