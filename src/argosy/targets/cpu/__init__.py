"""The CPU target: generated C, compiled by zig for any CPU level, run by the host runtime."""

from argosy.targets.cpu.target import CpuTarget

__all__ = ["CpuTarget"]
