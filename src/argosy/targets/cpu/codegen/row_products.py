"""Products of the rows of a matrix with a few vectors, four by four, so that both are read once for four sums."""

from __future__ import annotations

from collections.abc import Callable

from argosy.targets.cpu.codegen.op_kernel import OpKernel

__all__ = ["TILE", "row_products"]

TILE = 4
"""Rows, and vectors, of a tile."""


def row_products(
    kernel: OpKernel,
    rows: tuple[str, str],
    width: str,
    depth: str,
    kind: str,
    left: Callable[[str], str],
    right: Callable[[str], str],
    put: Callable[[str, str, str], str],
) -> None:
    """Sums over `i` of `left(row) * right(vector)` for the rows from begin to end and vectors 0 … `width`-1 (up to 4).

    `left` and `right` give C for element `i`, `put(row, vector, sum)` the statement that takes a sum. All sums are
    of the C type `kind`; `width` and `depth` are C expressions.
    """
    text = kernel.text
    begin, end = rows

    def tile(height: int, vectors: list[str]) -> None:
        sums = [[f"s{row}_{place}" for place in range(len(vectors))] for row in range(height)]
        names = ", ".join(f"{name} = 0" for line in sums for name in line)
        text.line(f"{kind} {names};")
        with text.loop("i", "0", depth):
            text.line("#pragma clang fp reassociate(on)")
            for row in range(height):
                text.line(f"const {kind} a{row} = {left(f'(row + {row})')};")
            for place, vector in enumerate(vectors):
                text.line(f"const {kind} b{place} = {right(vector)};")
            for row in range(height):
                for place in range(len(vectors)):
                    text.line(f"{sums[row][place]} += a{row} * b{place};")
        for row in range(height):
            for place, vector in enumerate(vectors):
                text.line(put(f"(row + {row})", vector, sums[row][place]))

    text.line(f"int64 row = {begin};")
    with text.block(f"for (; row + {TILE} <= {end}; row += {TILE})"):
        with text.block(f"if ({width} == {TILE})"):
            tile(TILE, [str(place) for place in range(TILE)])
        with text.block("else"), text.loop("q", "0", width):
            tile(TILE, ["q"])
    with text.block(f"for (; row < {end}; ++row)"), text.loop("q", "0", width):
        tile(1, ["q"])
