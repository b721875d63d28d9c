"""Measures how long runs take, as a whole and instruction by instruction."""

from argosy.profiling.launches import launch_times
from argosy.profiling.profiler import perf
from argosy.profiling.report import InstructionTime, OpTime, Report, Times
from argosy.profiling.spans import Span

__all__ = ["InstructionTime", "OpTime", "Report", "Span", "Times", "launch_times", "perf"]
