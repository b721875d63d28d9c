"""Columns back to an image: the sum of overlapping blocks."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.errors import ModelError
from argosy.ir import dim as dims
from argosy.ir.dim import DimLike
from argosy.ir.dtype import STRING, dtype_of
from argosy.ir.module import Value
from argosy.ir.op import Op, fresh, register
from argosy.ir.types import Type
from argosy.ops.operands import ints, length, present, steering
from argosy.ops.shapes import product

__all__ = ["Col2Im"]


@register
@dataclass(frozen=True, slots=True)
class Col2Im(Op):
    """Columns [batch, channels × block size, blocks] to an image [batch, channels, *image]: ONNX Col2Im.

    The inverse of cutting a padded image into blocks, where overlapping elements add up. `strides`,
    `dilations` (1 where None) and `pads` (all begins, then all ends; 0 where None) are as for a convolution.
    Operands: columns, image shape, block shape.
    """

    name = "col2im"
    strides: tuple[int, ...] | None = None
    pads: tuple[int, ...] | None = None
    dilations: tuple[int, ...] | None = None

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, image, block = (present(operand) for operand in operands)
        if x.rank != 3:
            raise ModelError(f"the columns are {x.type}, expected rank 3: batch, channels × block size, blocks")
        if x.dtype is STRING:
            raise ModelError("strings have no sum, expected columns of numbers")
        sizes, blocks = steering(None, image), steering(None, block)
        rank = length(image) if sizes is None else len(sizes)
        if rank is None:
            return (x.tensor.with_dims(None),)
        channels: DimLike = fresh("channels") if blocks is None else dims.floordiv(x.shape[1], product(blocks))
        spatial = tuple(fresh(f"{axis}_") for axis in range(rank)) if sizes is None else sizes
        return (x.tensor.with_dims((x.shape[0], channels, *spatial)),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x = np.asarray(values[0])
        image, block = ints(None, values[1], "the image shape"), ints(None, values[2], "the block shape")
        rank = len(image)
        strides, dilations = self.strides or (1,) * rank, self.dilations or (1,) * rank
        pads = self.pads or (0,) * (2 * rank)
        if not len(block) == len(strides) == len(dilations) == rank or len(pads) != 2 * rank:
            raise ModelError(f"block, strides, dilations and pads do not fit an image of {rank} axes")
        padded = [size + pads[axis] + pads[rank + axis] for axis, size in enumerate(image)]
        counts = [
            (size - by * (extent - 1) - 1) // stride + 1
            for size, extent, stride, by in zip(padded, block, strides, dilations, strict=True)
        ]
        if x.shape[1] % math.prod(block) or x.shape[2] != math.prod(counts):
            expected = f"blocks {list(block)} of an image {list(image)}"
            raise ModelError(f"columns of the shape {list(x.shape)} do not fit {expected}")
        channels = x.shape[1] // math.prod(block)
        columns = x.astype(dtype_of(x.dtype).compute.numpy).reshape(x.shape[0], channels, *block, *counts)
        columns = np.moveaxis(columns, range(2, 2 + rank), range(rank))  # places in a block first
        total = np.zeros((x.shape[0], channels, *padded), columns.dtype)
        for place in itertools.product(*map(range, block)):
            window: list[slice] = [
                slice(at * by, at * by + stride * (count - 1) + 1, stride)
                for at, by, stride, count in zip(place, dilations, strides, counts, strict=True)
            ]
            window_index: tuple[slice, ...] = (slice(None), slice(None), *window)
            total[window_index] += columns[place]
        inside = [slice(pads[axis], pads[axis] + size) for axis, size in enumerate(image)]
        return (total[:, :, *inside].astype(x.dtype, copy=False),)
