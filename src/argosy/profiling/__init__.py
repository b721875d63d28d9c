"""Measures how long runs take, as a whole and instruction by instruction."""

from argosy.profiling.comparing import Compared
from argosy.profiling.footprint import Footprint
from argosy.profiling.instructions import InstructionTime, OpTime, ShapeTime
from argosy.profiling.launches import launch_times
from argosy.profiling.outside import Outside
from argosy.profiling.profiler import perf
from argosy.profiling.report import Report
from argosy.profiling.spans import Span
from argosy.profiling.times import Times

__all__ = [
    "Compared",
    "Footprint",
    "InstructionTime",
    "OpTime",
    "Outside",
    "Report",
    "ShapeTime",
    "Span",
    "Times",
    "launch_times",
    "perf",
]
