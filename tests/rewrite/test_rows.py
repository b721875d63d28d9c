"""Where a module works on whole rows: what `find_rows` takes together, and what it leaves."""

from __future__ import annotations

import pytest

from argosy.ir.module import Module
from argosy.ir.parser import parse_program
from argosy.rewrite.rows import find_rows

NORM = """
module main(%x: float32[4, 8], %g: float32[8]) {
  %m = reduce(%x) {kind = "mean", axes = [1]} : float32[4, 1]
  %d = pointwise(%x, %m) {formula = |x0, x1| sub(x0, x1)} : float32[4, 8]
  %s = pointwise(%d) {formula = |x0| mul(x0, x0)} : float32[4, 8]
  %v = reduce(%s) {kind = "mean", axes = [1]} : float32[4, 1]
  %r = pointwise(%v) {formula = |x0| sqrt(x0)} : float32[4, 1]
  %q = pointwise(%d, %r) {formula = |x0, x1| div(x0, x1)} : float32[4, 8]
  %y = pointwise(%q, %g) {formula = |x0, x1| mul(x0, x1)} : float32[4, 8]
  return y = %y
}
"""

PRODUCT = """
module main(%x: float32[4, 8], %w: float32[8, 8], %b: float32[8]) {
  %p = dot(%x, %w) : float32[4, 8]
  %a = pointwise(%p, %b) {formula = |x0, x1| add(x0, x1)} : float32[4, 8]
  %s = softmax(%a) {axis = 1} : float32[4, 8]
  %y = pointwise(%s) {formula = |x0| neg(x0)} : float32[4, 8]
  return y = %y
}
"""

LONE = """
module main(%x: float32[4, 8]) {
  %m = reduce(%x) {kind = "sum", axes = [1]} : float32[4, 1]
  %y = pointwise(%m) {formula = |x0| exp(x0)} : float32[4, 1]
  return y = %y
}
"""

COLUMNS = """
module main(%x: float32[4, 8]) {
  %m = reduce(%x) {kind = "mean", axes = [0]} : float32[1, 8]
  %y = pointwise(%x, %m) {formula = |x0, x1| sub(x0, x1)} : float32[4, 8]
  return y = %y
}
"""

CODES = """
module main(%x: int8[4, 8], %k: float32[], %z: int8[]) {
  %f = dequantize(%x, %k) {dtype = float32} : float32[4, 8]
  %s = softmax(%f) {axis = 1} : float32[4, 8]
  %y = quantize(%s, %k, %z) {dtype = int8} : int8[4, 8]
  return y = %y
}
"""

READ_OUTSIDE = """
module main(%x: float32[4, 8]) {
  %m = reduce(%x) {kind = "max", axes = [1]} : float32[4, 1]
  %d = pointwise(%x, %m) {formula = |x0, x1| sub(x0, x1)} : float32[4, 8]
  return m = %m, d = %d
}
"""


def main_of(text: str) -> Module:
    return parse_program(f"argosy 1\n{text}").main


def groups(text: str) -> list[tuple[str, list[str]]]:
    """The name of each group's last value, and those of the others in order."""
    module = main_of(text)
    return [
        (root.names[0], [each.names[0] for each in module.instructions if each in inner])
        for root, inner in find_rows(module).items()
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NORM, [("y", ["m", "d", "s", "v", "r", "q"])]),
        (PRODUCT, [("y", ["s"])]),  # the sum belongs to the product
        (CODES, [("y", ["f", "s"])]),
        (LONE, []),  # nothing goes over the row again
        (COLUMNS, []),  # its rows are not the last axis
        (READ_OUTSIDE, []),  # the greatest leaves the module
    ],
    ids=["norm", "product", "codes", "lone", "columns", "outside"],
)
def test_what_works_on_rows(text: str, expected: list[tuple[str, list[str]]]) -> None:
    assert groups(text) == expected
