"""Derivatives of convolutions and pooling against central differences: pads, strides, dilations, groups, ranks."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.ops.convolution import Conv, ConvTranspose
from argosy.ops.pooling import Pool
from tests.rewrite.gradient.differences import check, numbers

CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 2, 7), (3, 2, 3), {}),
    ((1, 2, 8), (3, 2, 3), {"strides": (2,), "pads": (1, 2)}),
    ((2, 4, 5), (6, 2, 2), {"group": 2, "dilations": (2,)}),
    ((2, 3, 5, 6), (3, 1, 3, 2), {"group": 3, "strides": (2, 1), "pads": (1, 0, 0, 1)}),
    ((1, 2, 6, 5), (2, 2, 2, 3), {"strides": (3, 2), "dilations": (1, 2)}),
    ((1, 2, 5, 4), (2, 2, 3, 2), {"auto_pad": "same_upper", "strides": (2, 2)}),
    ((1, 2, 5, 4), (2, 2, 3, 2), {"auto_pad": "same_lower"}),
    ((1, 1, 3, 3, 4), (2, 1, 2, 2, 2), {}),
]


def attributes(rank: int, options: dict[str, Any]) -> dict[str, Any]:
    return {"strides": (1,) * rank, "pads": (0,) * (2 * rank), "dilations": (1,) * rank} | options


@pytest.mark.parametrize(("x", "weight", "options"), CONVOLUTIONS)
def test_conv(x: tuple[int, ...], weight: tuple[int, ...], options: dict[str, Any]) -> None:
    op = Conv(**attributes(len(x) - 2, options))
    check(lambda b, x, w: b.add(op, x, w), numbers(*x), numbers(*weight))
    check(lambda b, x, w, c: b.add(op, x, w, c), numbers(*x), numbers(*weight), numbers(weight[0]))


def test_conv_of_symbolic_dims() -> None:
    op = Conv((2,), (1, 1), (1,))
    for size in (7, 8):
        check(lambda b, x, w: b.add(op, x, w), numbers(2, 2, size), numbers(3, 2, 3), symbolic=True)


@pytest.mark.parametrize(
    ("x", "weight", "options"),
    [
        ((2, 2, 4), (2, 3, 3), {}),
        ((1, 2, 4), (2, 3, 3), {"strides": (2,), "pads": (1, 1), "output_padding": (1,)}),
        ((1, 4, 3), (4, 2, 2), {"group": 2, "dilations": (2,)}),
        ((1, 2, 3, 4), (2, 2, 3, 2), {"strides": (2, 3), "output_shape": (6, 9)}),
        ((1, 2, 3, 4), (2, 2, 3, 2), {"strides": (2, 2), "auto_pad": "same_lower"}),
    ],
)
def test_conv_transpose(x: tuple[int, ...], weight: tuple[int, ...], options: dict[str, Any]) -> None:
    op = ConvTranspose(**attributes(len(x) - 2, options))
    outputs = weight[1] * options.get("group", 1)
    check(lambda b, x, w, c: b.add(op, x, w, c), numbers(*x), numbers(*weight), numbers(outputs))


POOLS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 2, 7), {"kernel": (3,)}),
    ((1, 2, 8), {"kernel": (3,), "strides": (2,), "pads": (1, 1)}),
    ((1, 2, 7), {"kernel": (2,), "strides": (2,), "ceil_mode": True}),
    ((1, 2, 6, 5), {"kernel": (2, 3), "strides": (2, 2), "pads": (1, 1, 0, 1), "dilations": (2, 1)}),
    ((1, 2, 5, 6), {"kernel": (3, 2), "strides": (2, 2), "auto_pad": "same_upper"}),
    ((1, 1, 5, 5), {"kernel": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1), "count_include_pad": True}),
    ((1, 1, 6, 6), {"kernel": (3, 3), "strides": (2, 2), "pads": (1, 0, 1, 1), "ceil_mode": True}),
]


@pytest.mark.parametrize("kind", ["max", "average", "lp"])
@pytest.mark.parametrize(("x", "options"), POOLS)
def test_pool(kind: str, x: tuple[int, ...], options: dict[str, Any]) -> None:
    op = Pool(kind, p=3, **attributes(len(x) - 2, options))
    check(lambda b, x: b.add(op, x), numbers(*x), rtol=1e-5)
    check(lambda b, x: b.add(op, x), numbers(*x), symbolic=True, rtol=1e-5)


def test_max_pool_with_indices() -> None:
    op = Pool("max", (2,), (1,), (0, 0), (1,), with_indices=True, column_major=True)
    check(lambda b, x: b.add(op, x), numbers(2, 2, 5))
