"""Counting n-grams of tokens: ONNX TfIdfVectorizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dtype import FLOAT32, INT64, Array
from argosy.ir.module import Value
from argosy.ir.op import Op, fresh, register
from argosy.ir.types import Dims, TensorType, Type
from argosy.ops.demands import demand_room, differ
from argosy.ops.operands import present, shape_text, steering

__all__ = ["CountNGrams"]


@register
@dataclass(frozen=True, slots=True)
class CountNGrams(Op):
    """How often each n-gram of a pool occurs in a sequence of tokens, or in each row of a matrix: ONNX TfIdfVectorizer.

    The pool holds the tokens of all 1-grams, then of all 2-grams and so on; `starts` says where each length
    begins. Grams of `shortest` to `longest` tokens are looked for, with 0 to `skips` tokens left out between two
    neighbours. `mode`: TF counts; IDF gives the weight where there is one; TFIDF multiplies. Operands: tokens,
    pool, the column of each n-gram, [weights].
    """

    name = "count_ngrams"
    mode: str
    starts: tuple[int, ...]
    shortest: int
    longest: int
    skips: int

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, columns = present(operands[0]).tensor, steering(None, operands[2])
        if x.rank not in (1, 2):
            raise ModelError(f"the tokens are {x}, expected rank 1 or 2")
        self._check(*(None if operand is None else operand.shape for operand in (*operands, None)[1:4]))
        numbers = [column for column in columns or () if isinstance(column, int)]
        if numbers and min(numbers) < 0:
            raise ModelError(f"an n-gram has the column {min(numbers)}, expected 0 or more")
        width = max(numbers) + 1 if numbers else fresh("columns")
        return (TensorType(FLOAT32, (*x.shape[:-1], width)),)

    def _check(self, pool: Dims | None, columns: Dims | None, weights: Dims | None) -> None:
        """Raise ModelError where the pool is not cut between n-grams, or one has no column or no weight."""
        if pool is None or columns is None or len(pool) != 1 or len(columns) != 1 or not isinstance(pool[0], int):
            raise ModelError(f"the pool is {pool}, its columns {columns}, expected lists, the pool of a known length")
        grams = 0
        ends = (*self.starts[1:], pool[0])
        for length, (start, end) in enumerate(zip(self.starts, ends, strict=False), start=1):
            if not 0 <= start <= end or (end - start) % length:
                raise ModelError(f"tokens {start} to {end} of {pool[0]} are no list of n-grams of {length}")
            grams += (end - start) // length
        demand_room(columns[0] - grams)
        if isinstance(columns[0], int) and columns[0] < grams:
            raise ModelError(f"{columns[0]} columns are given for {grams} n-grams")
        if weights is not None and (len(weights) != 1 or differ(weights[0], columns[0])):
            raise ModelError(f"the weights have the shape {shape_text(weights)}, expected one for each of the columns")

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        return (TensorType(FLOAT32, None),)

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        x, pool, columns, weights = (*values, None)[:4]
        x, pool, columns = np.asarray(x), np.asarray(pool), np.asarray(columns)
        rows = x if x.ndim == 2 else x.reshape(1, -1)
        if pool.dtype.kind != "O":
            rows = rows.astype(np.int64)
        if columns.min(initial=0) < 0:
            raise ModelError(f"an n-gram has the column {columns.min()}, expected 0 or more")
        counts = np.zeros((rows.shape[0], int(columns.max(initial=-1)) + 1), np.float32)
        known, pool_ids = np.unique(pool, return_inverse=True)
        tokens = _look_up(known, rows)
        first_gram = 0
        for size, start in enumerate(self.starts, start=1):
            end = self.starts[size] if size < len(self.starts) else pool.size
            grams = pool_ids.reshape(-1)[start:end].reshape(-1, size)
            if self.shortest <= size <= self.longest and len(grams):
                places = columns[first_gram : first_gram + len(grams)]
                for skip in range((min(self.skips, rows.shape[1]) if size > 1 else 0) + 1):
                    self._count(tokens, grams, known.size, skip + 1, places, counts)
            first_gram += len(grams)
        if self.mode == "IDF":
            counts = np.minimum(counts, np.float32(1))
        if self.mode != "TF" and weights is not None:
            scale = np.zeros(counts.shape[1], np.float32)
            scale[columns] = np.asarray(weights)
            counts = counts * scale
        return (counts.reshape((*x.shape[:-1], counts.shape[1])),)

    @staticmethod
    def _count(tokens: Array, grams: Array, vocabulary: int, stride: int, places: Array, counts: Array) -> None:
        """Add the occurrences of grams whose tokens lie `stride` apart."""
        size = grams.shape[1]
        windows = tokens.shape[1] - stride * (size - 1)
        if windows <= 0:
            return
        # Prefix by prefix, the pool's grams and the windows get numbers that are equal where the prefixes are.
        pool_rank, rank = grams[:, 0], tokens[:, :windows]
        for position in range(1, size):
            token = tokens[:, position * stride : position * stride + windows]
            keys, pool_rank = np.unique(pool_rank * vocabulary + grams[:, position], return_inverse=True)
            rank = _look_up(keys, np.where((rank < 0) | (token < 0), -1, rank * vocabulary + token))
        order = np.argsort(pool_rank, kind="stable")
        found = _look_up(pool_rank[order], rank)
        row, column = np.nonzero(found >= 0)
        np.add.at(counts, (row, places[order[found[row, column]]]), np.float32(1))


def _look_up(ordered: Array, values: Array) -> Array:
    """The position of each value in a sorted array, -1 where it is not in it."""
    if not ordered.size:
        return np.full(values.shape, -1, INT64.numpy)
    places = np.minimum(np.searchsorted(ordered, values), ordered.size - 1)
    return np.where(ordered[places] == values, places, -1)
