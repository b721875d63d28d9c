"""Ops on images and their regions: a lane for each element of the result."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from argosy.ops.pooling import Pool
from argosy.targets.gpu.codegen.columns import image_kernel, image_sizes
from argosy.targets.gpu.codegen.deformable import deformable_kernel
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.pool_positions import positions_kernel
from argosy.targets.gpu.codegen.region import align_kernel, max_region_kernel
from argosy.targets.gpu.codegen.sampling import grid_sample_kernel
from argosy.targets.gpu.lone_op import LoneOp
from argosy.targets.gpu.solution import Problem, Steps, register_solution
from argosy.targets.gpu.solutions.steered import define_sizes

__all__ = ["DeformableWindows", "GridSamples", "ImageFromColumns", "MaxRegions", "PoolPositions", "RegionSamples"]


class _OneKernel(LoneOp):
    """Base of the ops that one kernel does."""

    @abstractmethod
    def kernel(self, problem: Problem) -> Kernel:
        """The kernel; raises DeclinedError where it can't be generated."""

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        self.call(problem, steps, self.kernel(problem))


@register_solution
class GridSamples(_OneKernel):
    """The neighbours of a place, weighted."""

    name = "grid samples"
    anchors: ClassVar = frozenset({"grid_sample"})

    def kernel(self, problem: Problem) -> Kernel:
        return grid_sample_kernel(problem.module)


@register_solution
class RegionSamples(_OneKernel):
    """The samples of a bin."""

    name = "region samples"
    anchors: ClassVar = frozenset({"roi_align"})

    def kernel(self, problem: Problem) -> Kernel:
        return align_kernel(problem.module)


@register_solution
class MaxRegions(_OneKernel):
    """The greatest element of a bin."""

    name = "max regions"
    anchors: ClassVar = frozenset({"max_roi_pool"})

    def kernel(self, problem: Problem) -> Kernel:
        return max_region_kernel(problem.module)


@register_solution
class DeformableWindows(_OneKernel):
    """The taps of a window, each read between elements."""

    name = "deformable windows"
    anchors: ClassVar = frozenset({"deform_conv"})

    def kernel(self, problem: Problem) -> Kernel:
        return deformable_kernel(problem.module)


@register_solution
class PoolPositions(_OneKernel):
    """The greatest element of a window, and where it is."""

    name = "pool positions"
    anchors: ClassVar = frozenset({"pool"})
    rank = 1

    def applies(self, problem: Problem) -> str:
        op = problem.anchor_instruction.op
        return super().applies(problem) if isinstance(op, Pool) and op.with_indices else "no positions are asked for"

    def kernel(self, problem: Problem) -> Kernel:
        return positions_kernel(problem.module)


@register_solution
class ImageFromColumns(LoneOp):
    """Every element of the image is the sum of those places of blocks that lie on it."""

    name = "image from columns"
    anchors: ClassVar = frozenset({"col2im"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        define_sizes(problem, steps, image_sizes)
        self.call(problem, steps, image_kernel(problem.module))
