"""Measures how long runs take, as a whole and instruction by instruction."""

from argosy.profiling.comparing import Compared
from argosy.profiling.launches import launch_times
from argosy.profiling.profiler import perf
from argosy.profiling.report import InstructionTime, OpTime, Report
from argosy.profiling.spans import Span
from argosy.profiling.times import Times

__all__ = ["Compared", "InstructionTime", "OpTime", "Report", "Span", "Times", "launch_times", "perf"]
