"""Recipes for seeded inputs: what a model is to be run with, for dims that are bound when it runs."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Input", "make_feeds"]


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a model and the recipe for a value of it.

    A dim of `shape` that is a word is bound when a value is made. `fill` is one of `normal` (times `scale`, plus
    `mean` where it is given: some recurrent models amplify rounding errors without bound around 0, far from what
    they are made for), `strokes` (a page of dark marks, for models that read text: on noise they see nothing and
    answer with rounding errors), `integers` (in `low` ≤ x < `high`), `constant` (`value`, broadcast), `prefix` (a
    mask: each row is ones up to a random length, the first row throughout), `lengths` (from 1 up to the dim named
    `of`, the first being that dim) and `length` (the last dim of the input named `of`).
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    fill: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def bind(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape with its named dims replaced."""
        return tuple(sizes[dim] if isinstance(dim, str) else dim for dim in self.shape)

    def make(self, sizes: Mapping[str, int], seed: int, inputs: Mapping[str, Input]) -> NDArray[Any]:
        """A value of this input with its dims bound by `sizes`; equal arguments give equal values."""
        shape = self.bind(sizes)
        generator = np.random.default_rng([seed, zlib.crc32(self.name.encode())])
        given = self.parameters
        match self.fill:
            case "normal":
                return (generator.standard_normal(shape) * given["scale"] + given.get("mean", 0.0)).astype(self.dtype)
            case "strokes":
                return _strokes(generator, shape).astype(self.dtype)
            case "integers":
                return generator.integers(given["low"], given["high"], shape).astype(self.dtype)
            case "constant":
                dtype = object if self.dtype == "string" else self.dtype
                return np.broadcast_to(np.array(given["value"], dtype), shape).copy()
            case "prefix":
                rows, columns = shape
                return (np.arange(columns) < _lengths(generator, rows, columns)[:, None]).astype(self.dtype)
            case "lengths":
                longest = given["of"]
                top = sizes[longest] if isinstance(longest, str) else longest
                return _lengths(generator, shape[0], top).astype(self.dtype)
            case "length":
                return np.full(shape, inputs[given["of"]].bind(sizes)[-1], self.dtype)
        raise ValueError(f"input {self.name!r}: unknown fill {self.fill!r}")


def _lengths(generator: np.random.Generator, count: int, longest: int) -> NDArray[np.int64]:
    """Random lengths from 1 to `longest`; the first is `longest`."""
    lengths = generator.integers(1, longest + 1, count)
    lengths[0] = longest
    return lengths


def _strokes(generator: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Pages [batch, channels, height, width]: lines of marks like letters, 12 by 6 pixels, -1 on 1, and some noise."""
    batch, _, height, width = shape
    pages = np.ones((batch, 1, height, width))
    for page in pages[:, 0]:
        for top in range(6, height - 14, 24):
            for left in range(6, width - 10, 9):
                page[top : top + 12, left : left + 6] -= 2 * np.kron(generator.integers(0, 2, (4, 2)), np.ones((3, 3)))
    return pages + 0.1 * generator.standard_normal(shape)


def make_feeds(inputs: Sequence[Input], sizes: Mapping[str, int], seed: int = 0) -> dict[str, NDArray[Any]]:
    """A value for every input, in their order."""
    by_name = {entry.name: entry for entry in inputs}
    return {name: entry.make(sizes, seed, by_name) for name, entry in by_name.items()}
