"""Deformable convolution: every tap of the kernel reads at a place of its own."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dim import mod
from argosy.ir.dtype import Array, dtype_of
from argosy.ir.module import Value
from argosy.ir.op import Op, register
from argosy.ir.types import Dims, TensorType, Type
from argosy.ops.demands import differ
from argosy.ops.numpy_scalar import convert
from argosy.ops.operands import present, shape_text
from argosy.ops.sampling import sample_linear
from argosy.ops.shapes import product
from argosy.ops.window import check_windows, extents, output_sizes

__all__ = ["DeformableConv"]


@register
@dataclass(frozen=True, slots=True)
class DeformableConv(Op):
    """A convolution whose taps are moved by `offset` and weighted by `mask`.

    Operands: x `[N, C, *spatial]`, weight `[M, C/group, *kernel]`, offset
    `[N, offset_group * taps * axes, *out]`, [bias `[M]`], [mask `[N, offset_group * taps, *out]`]. Places
    between elements are interpolated linearly, outside is 0. Source: the ONNX operator DeformConv.
    """

    name = "deform_conv"
    strides: tuple[int, ...]
    pads: Dims
    dilations: tuple[int, ...]
    group: int = 1
    offset_group: int = 1

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, weight, offset = (present(operand) for operand in operands[:3])
        if not x.rank == weight.rank == offset.rank or x.rank < 3:
            raise ModelError(f"expected equal ranks of 3 or more, found {x.type}, {weight.type} and {offset.type}")
        if differ(x.shape[1], weight.shape[1] * self.group):
            raise ModelError(f"x has {x.shape[1]} channels, the weight is for {weight.shape[1] * self.group}")
        check_windows(x.rank - 2, weight.shape[2:], self.strides, self.dilations, self.pads)
        extent = extents(weight.shape[2:], self.dilations)
        sizes = output_sizes("explicit", x.shape[2:], extent, self.strides, self.pads)
        if differ(mod(weight.shape[0], self.group), 0) or differ(mod(x.shape[1], self.offset_group), 0):
            raise ModelError(f"{weight.shape[0]} filters or {x.shape[1]} channels do not divide into their groups")
        taps = self.offset_group * product(weight.shape[2:])
        bias, mask = (*operands[3:], None, None)[:2]
        _check("offset", offset, (x.shape[0], taps * (x.rank - 2), *sizes))
        _check("bias", bias, weight.shape[:1])
        _check("mask", mask, (x.shape[0], taps, *sizes))
        return (TensorType(x.dtype, (x.shape[0], weight.shape[0], *sizes)),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, weight, offset, bias, mask = (*values, None, None)[:5]
        dtype = dtype_of(x.dtype)
        wide = x.astype(dtype.compute.numpy, copy=False)
        batch, channels = x.shape[:2]
        kernel, outputs = weight.shape[2:], offset.shape[2:]
        rank, taps, places = len(kernel), math.prod(kernel), math.prod(outputs)
        moves = offset.astype(wide.dtype).reshape(batch, self.offset_group, taps, rank, places)
        factors = None if mask is None else mask.astype(wide.dtype).reshape(batch, self.offset_group, taps, places)
        filters = weight.shape[0] // self.group
        matrix = weight.astype(wide.dtype).reshape(self.group, filters, channels // self.group, taps)
        parts = np.split(wide, self.offset_group, axis=1)
        result = np.zeros((batch, self.group, weight.shape[0] // self.group, places), wide.dtype)
        for tap, position in enumerate(itertools.product(*map(range, kernel))):
            grid = self._grid(position, outputs, wide.dtype)
            sampled = []
            for number, part in enumerate(parts):
                column = sample_linear(part, [grid[axis] + moves[:, number, tap, axis] for axis in range(rank)])
                sampled.append(column if factors is None else column * factors[:, number, None, tap])
            columns = np.concatenate(sampled, axis=1).reshape(batch, self.group, channels // self.group, places)
            result += np.matmul(matrix[..., tap], columns)
        result = result.reshape(batch, weight.shape[0], *outputs)
        if bias is not None:
            result += bias.astype(result.dtype).reshape(-1, *(1 for _ in kernel))
        return (convert(result, dtype),)

    def _grid(self, position: tuple[int, ...], outputs: tuple[int, ...], kind: np.dtype[Any]) -> list[Array]:
        """Where a tap reads without its offset, flattened, for each axis."""
        starts = (
            np.arange(size) * stride + tap * dilation - int(pad)
            for size, stride, tap, dilation, pad in zip(
                outputs, self.strides, position, self.dilations, self.pads[: len(outputs)], strict=True
            )
        )
        return [axis.reshape(-1).astype(kind) for axis in np.meshgrid(*starts, indexing="ij")]


def _check(what: str, operand: Value | None, expected: Dims) -> None:
    """Raise ModelError where an operand that is there has another shape."""
    if operand is None:
        return
    if operand.rank != len(expected) or any(differ(*pair) for pair in zip(operand.shape, expected, strict=True)):
        raise ModelError(f"the {what} is {operand.type}, expected the shape {shape_text(expected)}")
