"""Statistics of equal runs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Times"]


@dataclass(frozen=True, slots=True)
class Times:
    """The times of equal runs, in seconds. Percentiles are those of the nearest rank.

    `spread` is the distance of the quartiles as a share of the median, which a few slow runs don't change, `throughput`
    the runs in a second of their time, one after the other.
    """

    count: int
    minimum: float
    median: float
    mean: float
    p90: float
    p99: float
    maximum: float
    deviation: float
    spread: float
    throughput: float

    def columns(self) -> tuple[tuple[str, float], ...]:
        """What the text shows, with its headings."""
        return (
            ("min", self.minimum),
            ("median", self.median),
            ("mean", self.mean),
            ("p90", self.p90),
            ("p99", self.p99),
            ("max", self.maximum),
        )

    @staticmethod
    def of(seconds: Sequence[float]) -> Times:
        """The statistics of at least one time."""
        ordered = sorted(seconds)
        median, total = statistics.median(ordered), math.fsum(ordered)

        def rank(share: float) -> float:
            return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]

        return Times(
            len(ordered),
            ordered[0],
            median,
            statistics.fmean(ordered),
            rank(0.90),
            rank(0.99),
            ordered[-1],
            statistics.pstdev(ordered),
            (rank(0.75) - rank(0.25)) / median if median else 0.0,
            len(ordered) / total if total else 0.0,
        )
