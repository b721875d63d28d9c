"""How offsets move along the axes of a nest of loops."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.ir.dim import Dim, DimLike, Symbol, symbols_in

__all__ = ["coefficient", "merged_extents"]


def merged_extents(extents: Sequence[DimLike], offsets: Sequence[DimLike]) -> tuple[DimLike, ...]:
    """The extents with merged axes: where axis a and the next are walked as one, a gets extent 1 and that its product.

    `offsets` are the positions of all accesses, over the axes of the nest. An axis of extent 1 stays at place 0, so
    that the positions remain right as they are.
    """
    merged = list(extents)
    for axis in range(len(merged) - 1):
        if all(_walks_as_one(offset, axis, merged[axis + 1]) for offset in offsets):
            merged[axis + 1] = (
                merged[axis + 1] * merged[axis]
                if isinstance(merged[axis + 1], Dim)
                else (merged[axis] * merged[axis + 1])
            )
            merged[axis] = 1
    return tuple(merged)


def _walks_as_one(offset: DimLike, axis: int, inner: DimLike) -> bool:
    """Whether a step along `axis` moves `offset` as far as `inner` steps along the next axis do."""
    left, right = coefficient(offset, axis), coefficient(offset, axis + 1)
    if left is None or right is None:
        return False
    return left == (right * inner if isinstance(right, Dim) else inner * right)


def coefficient(offset: DimLike, axis: int) -> DimLike | None:
    """What a step along `axis` adds to `offset`; None where that is no fixed amount."""
    if isinstance(offset, int):
        return 0
    name = f"@{axis}"
    total: DimLike = 0
    for monomial, number in offset.terms:
        mentions = [atom for atom in monomial if _mentions(atom, name)]
        if not mentions:
            continue
        if len(mentions) > 1 or not isinstance(mentions[0], Symbol):
            return None
        rest = tuple(atom for atom in monomial if atom is not mentions[0])
        total = total + (Dim(((rest, number),)) if rest else number)
    return total


def _mentions(atom: object, name: str) -> bool:
    if isinstance(atom, Symbol):
        return atom.name == name
    return any(symbol.name == name for symbol in symbols_in(Dim((((atom,), 1),))))  # type: ignore[arg-type]
