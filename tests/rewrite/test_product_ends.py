"""Where the kernels of products end before views: at the last place where elements are shortest."""

from __future__ import annotations

import pytest

from argosy.ir.parser import parse_program
from argosy.rewrite.product_ends import product_ends

VIEWS = ("transpose", "reshape")

FLOATS = """
module main(%x: float32[4, 8], %w: float32[8, 8], %b: float32[8]) {
  %p = dot(%x, %w) : float32[4, 8]
  %a = pointwise(%p, %b) {formula = |x0, x1| add(x0, x1)} : float32[4, 8]
  %n = pointwise(%a) {formula = |x0| neg(x0)} : float32[4, 8]
  %t = transpose(%n) {permutation = [1, 0]} : float32[8, 4]
  %y = pointwise(%t) {formula = |x0| exp(x0)} : float32[8, 4]
  return y = %y
}
"""

CODES = """
module main(%x: float32[4, 8], %w: float32[8, 8], %k: float32[], %z: int8[]) {
  %p = dot(%x, %w) : float32[4, 8]
  %a = pointwise(%p) {formula = |x0| neg(x0)} : float32[4, 8]
  %q = quantize(%a, %k, %z) {dtype = int8} : int8[4, 8]
  %f = dequantize(%q, %k, %z) {dtype = float32} : float32[4, 8]
  %n = pointwise(%f) {formula = |x0| neg(x0)} : float32[4, 8]
  %t = transpose(%n) {permutation = [1, 0]} : float32[8, 4]
  return t = %t
}
"""

TWO_READERS = """
module main(%x: float32[4, 8], %w: float32[8, 8]) {
  %p = dot(%x, %w) : float32[4, 8]
  %a = pointwise(%p) {formula = |x0| neg(x0)} : float32[4, 8]
  %t = transpose(%a) {permutation = [1, 0]} : float32[8, 4]
  return a = %a, t = %t
}
"""

NO_VIEW = """
module main(%x: float32[4, 8], %w: float32[8, 8]) {
  %p = dot(%x, %w) : float32[4, 8]
  %a = pointwise(%p) {formula = |x0| neg(x0)} : float32[4, 8]
  %y = dot(%a, %w) : float32[4, 8]
  return y = %y
}
"""

BARE = """
module main(%x: float32[4, 8], %w: float32[8, 8]) {
  %p = dot(%x, %w) : float32[4, 8]
  %t = transpose(%p) {permutation = [1, 0]} : float32[8, 4]
  return t = %t
}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [(FLOATS, ["n"]), (CODES, ["q"]), (TWO_READERS, []), (NO_VIEW, []), (BARE, [])],
    ids=["floats", "codes", "two readers", "no view", "bare"],
)
def test_where_products_end(text: str, expected: list[str]) -> None:
    module = parse_program(f"argosy 1\n{text}").main
    assert sorted(each.names[0] for each in product_ends(module, VIEWS)) == expected
