"""The GPU target: generated Triton, compiled with no device for AMD's gfx and NVIDIA's sm archs."""

from argosy.targets.gpu.target import GpuTarget

__all__ = ["GpuTarget"]
