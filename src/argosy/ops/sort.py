"""Ops that put elements in order: top-k, unique, non-maximum suppression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.errors import ModelError
from argosy.ir import dim as dims
from argosy.ir.dim import Dim, DimLike
from argosy.ir.dtype import INT64, Array
from argosy.ir.module import Value
from argosy.ir.op import Op, fresh, register
from argosy.ir.types import TensorType, Type
from argosy.ops.demands import differ
from argosy.ops.operands import number, present, single, steering
from argosy.ops.shapes import normalize_axis, product

__all__ = ["NonMaxSuppression", "TopK", "Unique"]


@register
@dataclass(frozen=True, slots=True)
class TopK(Op):
    """The `k` largest or smallest elements along `axis` and their positions. Operands: x, k. Results: values, indices.

    In order of size, equal ones in order of their positions (also where `sorted` allows any order); NaN counts
    as larger than every number.
    """

    name = "topk"
    axis: int = -1
    largest: bool = True
    sorted: bool = True

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, k = present(operands[0]).tensor, single(operands[1], "k")
        axis = normalize_axis(self.axis, x.rank)
        size = x.shape[axis]
        if isinstance(k, int) and isinstance(size, int) and not 0 <= k <= size:
            raise ModelError(f"k is {k}, expected 0..{size}, the size of axis {axis}")
        kept: DimLike = fresh("k", upper=dims.bounds(size)[1]) if k is None else k
        shape = (*x.shape[:axis], kept, *x.shape[axis + 1 :])
        return (x.with_dims(shape), TensorType(INT64, shape))

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(present(operands[0]).dtype, None), TensorType(INT64, None))

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, k = np.asarray(values[0]), int(number(values[1], "k"))
        axis = normalize_axis(self.axis, x.ndim)
        size = x.shape[axis]
        if not 0 <= k <= size:
            raise ModelError(f"k is {k}, expected 0..{size}, the size of axis {axis}")
        keys = x.astype(np.float32) if x.dtype.kind == "V" else x
        if self.largest:
            # A stable ascending sort of the reversed axis, read backwards, keeps equal elements in order.
            backwards = np.argsort(np.flip(keys, axis), axis, kind="stable")
            order = size - 1 - np.flip(backwards, axis)
        else:
            order = np.argsort(keys, axis, kind="stable")
        indices = np.take(order, np.arange(k), axis).astype(np.int64, copy=False)
        return (np.take_along_axis(x, indices, axis), indices)


@register
@dataclass(frozen=True, slots=True)
class Unique(Op):
    """The distinct elements, or distinct slices along `axis`, in order of size or of their first occurrence.

    Results: the values; the position of the first occurrence of each; for each element of `x` the position of
    its value among the results; how often each occurs.
    """

    name = "unique"
    axis: int | None = None
    sorted: bool = True

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x = present(operands[0]).tensor
        if self.axis is None:
            total = product(x.shape)
            kept = fresh("count", upper=dims.bounds(total)[1])
            return self._types(x.with_dims((kept,)), kept, total)
        axis = normalize_axis(self.axis, x.rank)
        kept = fresh("count", upper=dims.bounds(x.shape[axis])[1])
        return self._types(x.with_dims((*x.shape[:axis], kept, *x.shape[axis + 1 :])), kept, x.shape[axis])

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        kept = fresh("count")
        shape = (kept,) if self.axis is None else None
        return self._types(TensorType(present(operands[0]).dtype, shape), kept, fresh("total"))

    @staticmethod
    def _types(values: TensorType, kept: DimLike, total: DimLike) -> tuple[Type, ...]:
        return (values, TensorType(INT64, (kept,)), TensorType(INT64, (total,)), TensorType(INT64, (kept,)))

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x = np.asarray(values[0])
        axis = 0 if self.axis is None else normalize_axis(self.axis, x.ndim)
        items = x.reshape(-1) if self.axis is None else x
        keys = items.astype(np.float32) if x.dtype.kind == "V" else items
        if x.dtype.kind == "O" and self.axis is not None:
            # numpy sorts no slices of objects; their ranks order them alike
            keys = np.unique(keys, return_inverse=True)[1].reshape(x.shape)
        _, first, inverse, counts = np.unique(
            keys, return_index=True, return_inverse=True, return_counts=True, axis=self.axis
        )
        inverse = inverse.reshape(-1)
        if not self.sorted:
            order = np.argsort(first, kind="stable")
            rank = np.empty_like(order)
            rank[order] = np.arange(order.size)
            first, counts, inverse = first[order], counts[order], rank[inverse]
        found = np.take(items, first, axis)
        return (found, *(np.asarray(array, np.int64) for array in (first, inverse, counts)))


@register
@dataclass(frozen=True, slots=True)
class NonMaxSuppression(Op):
    """Boxes in order of their score, without those that overlap a better one too much: ONNX NonMaxSuppression.

    Operands: boxes [batch, count, 4], scores [batch, class, count], [most boxes for each batch and class],
    [IoU threshold], [score threshold]. Result: int64[selected, 3], rows of batch, class, box. Boxes are
    (y1, x1, y2, x2) of any two opposite corners, or (x, y, width, height) about the centre.
    """

    name = "non_max_suppression"
    center_point_box: bool = False

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        boxes, scores = present(operands[0]).tensor, present(operands[1]).tensor
        if boxes.rank != 3 or scores.rank != 3 or differ(boxes.shape[2], 4):
            expected = "[batch, count, 4] and [batch, class, count]"
            raise ModelError(f"found boxes {boxes} and scores {scores}, expected {expected}")
        if differ(boxes.shape[1], scores.shape[2]) or differ(boxes.shape[0], scores.shape[0]):
            raise ModelError(f"the boxes {boxes} and the scores {scores} differ in batch or count")
        for operand in operands[2:]:
            if operand is not None and operand.tensor.dims is not None and differ(product(operand.shape), 1):
                raise ModelError(f"a limit is {operand.type}, expected one number")
        limit = steering(None, operands[2]) if len(operands) > 2 else (0,)
        most = None
        if limit and not isinstance(limit[0], Dim):
            most = dims.bounds(scores.shape[0] * scores.shape[1] * max(int(limit[0]), 0))[1]
        return (TensorType(INT64, (fresh("selected", upper=most), 3)),)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(INT64, (fresh("selected"), 3)),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        boxes, scores, limit, overlap, least = (*values, None, None, None)[:5]
        most = 0 if limit is None else int(number(limit, "the number of boxes"))
        threshold = 0.0 if overlap is None else float(number(overlap, "the IoU threshold"))
        floor = None if least is None else number(least, "the score threshold")
        rows: list[tuple[int, int, int]] = []
        for batch, (corners, of_classes) in enumerate(zip(self._corners(np.asarray(boxes)), scores, strict=True)):
            for kind, of_boxes in enumerate(of_classes):
                rows.extend((batch, kind, box) for box in _select(corners, of_boxes, most, threshold, floor))
        return (np.array(rows, np.int64).reshape(-1, 3),)

    def _corners(self, boxes: Array) -> Array:
        """Boxes as (low, low, high, high) in either order of the axes, which does not matter for overlaps."""
        a, b = boxes[..., :2], boxes[..., 2:]
        if self.center_point_box:
            a, b = a - b / 2, a + b / 2
        return np.concatenate([np.minimum(a, b), np.maximum(a, b)], -1)


def _select(corners: Array, scores: Array, most: int, threshold: float, floor: Any) -> list[int]:
    """Positions of the boxes that stay, best first; equal scores in order of position."""
    order = np.argsort(-scores, kind="stable")
    if floor is not None:
        order = order[scores[order] > floor]
    areas = np.prod(corners[:, 2:] - corners[:, :2], -1)
    kept: list[int] = []
    while order.size and len(kept) < most:
        best, order = order[0], order[1:]
        kept.append(int(best))
        low = np.maximum(corners[best, :2], corners[order, :2])
        high = np.minimum(corners[best, 2:], corners[order, 2:])
        shared = np.prod(np.maximum(high - low, 0), -1)
        union = areas[best] + areas[order] - shared
        ratio = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
        order = order[ratio <= threshold]
    return kept
